/* SPDX-License-Identifier: MIT */

/*
 * The record of a refusal.  This is the one place on a request's way where a
 * path is built; see denial.h for how the record survives us.
 */

#include "fusefs/fence_record.h"

#include "policy/denial.h"

static void
fill_remedy(struct denial *denial, const struct policy_verdict *verdict)
{
	if (verdict->code == POLICY_CODE_SANDBOX_DENIED &&
	    denial->mode < POLICY_WORKSPACE_WRITE) {
		denial->remedy = DENIAL_REMEDY_ESCALATE;
		denial->remedy_text = policy_mode_name(POLICY_WORKSPACE_WRITE);
	}
}

static void
record(struct fs_call *call, struct denial *denial,
       const struct policy_verdict *verdict)
{
	const struct fs_config *config = &call->fs->config;

	if (!config->denials)
		return;
	denial->origin = config->origin ? config->origin : "run";
	denial->source = DENIAL_FUSE;
	denial->code = verdict->code;
	denial->mode = call->policy->mode;
	denial->rule = verdict->rule;
	denial->error = -verdict->error;
	fill_remedy(denial, verdict);
	(void)denial_record(config->denials, denial);
}

int
fence_record_name(struct fs_call *call, enum policy_op op,
		  const struct policy_verdict *verdict,
		  const struct fence_at *at, const struct fence_at *second)
{
	_cleanup_(freep) char *path = NULL, *path2 = NULL;
	struct denial denial = {
		.op = op, .pid = call->pid, .uid = call->uid, .gid = call->gid
	};

	if (verdict->code == POLICY_CODE_NONE)
		return verdict->error;
	(void)fs_inode_path(call->fs, at->dir, at->name, &path);
	if (second)
		(void)fs_inode_path(call->fs, second->dir, second->name,
				    &path2);
	denial.path = path;
	denial.path2 = path2;
	record(call, &denial, verdict);
	return verdict->error;
}

int
fence_record_inode(struct fs_call *call, enum policy_op op,
		   const struct policy_verdict *verdict, struct fs_inode *inode,
		   const struct fs_handle *handle)
{
	_cleanup_(freep) char *path = NULL;
	struct denial denial = {
		.op = op, .pid = call->pid, .uid = call->uid, .gid = call->gid
	};

	if (verdict->code == POLICY_CODE_NONE)
		return verdict->error;
	/* Write-back has no caller. */
	if (handle && call->pid == 0) {
		denial.pid = handle->pid;
		denial.uid = handle->uid;
		denial.gid = handle->gid;
	}
	(void)fs_inode_path(call->fs, inode, NULL, &path);
	denial.path = path;
	record(call, &denial, verdict);
	return verdict->error;
}
