/* SPDX-License-Identifier: MIT */

/*
 * What will the kernel say?  The order of its checks decides which errno the
 * inmate gets, and whether it gets one because of the fence:
 *
 *   mkdir, mknod, symlink, link   EEXIST, then EROFS, then permission bits
 *   open that creates             EROFS, then permission bits
 *   open of what exists           EISDIR …; with O_TRUNC EROFS, then bits;
 *                                 without it the bits (EACCES), then EROFS
 *   unlink, rmdir, rename         EROFS, before the name is even looked up
 *   truncate, chmod, …            EROFS, then bits
 *
 * Denied is what the policy refuses *and* a read-only mount stops, or Landlock
 * where nothing is mounted.  What would
 * fail in the same way without a fence (nothing there, something in the way, a
 * directory where a file is wanted) is no denial.
 */

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "warden/observer_priv.h"

/* Memory devices: null zero full random urandom; and 5:0, the tty. */
#define MAJOR_MEM 1
#define MAJOR_TTY 5

static bool
allows(const struct look_rule *rule, const char *path)
{
	return policy_decide_path(rule->policy, rule->op, path, false).error ==
	       0;
}

/* Whether this end of the call meets the fence, and by which rule. */
static bool
meets_fence(const struct policy *policy, enum policy_op op,
	    const struct place *place, struct policy_verdict *ret_verdict)
{
	if (place->settled || (place->area && place->area->kind == AREA_FUSE))
		return false;
	*ret_verdict =
		policy_decide_path(policy, op, place->path,
				   place->exists && S_ISDIR(place->st.st_mode));
	return ret_verdict->error != 0 && (place->readonly || policy->landlock);
}

static void
deny(struct finding *finding, enum policy_op op, int error)
{
	finding->denied = true;
	finding->op = op;
	finding->error = error;
}

/* By the permission bits; the inmate has no capability that overrides them. */
static bool
bits_allow_writing(pid_t pid, const struct stat *st)
{
	char path[32];
	struct stat who;

	/* The owner of /proc/PID is who its process acts as. */
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &who) < 0)
		return true;
	if (who.st_uid == st->st_uid)
		return st->st_mode & S_IWUSR;
	if (who.st_gid == st->st_gid)
		return st->st_mode & S_IWGRP;
	return st->st_mode & S_IWOTH;
}

static void
judge_device(const struct place *place, struct finding *finding)
{
	unsigned int major_number = major(place->st.st_rdev);

	if (place->nodev) {
		deny(finding, POLICY_OP_OPEN_WRITE, EACCES);
		return;
	}
	if (S_ISCHR(place->st.st_mode) &&
	    (major_number == MAJOR_MEM || major_number == MAJOR_TTY))
		return;
	deny(finding, POLICY_OP_OPEN_WRITE, EACCES);
	finding->forbidden = true;
}

static void
judge_open_existing(const struct call *call, const struct place *place,
		    struct finding *finding)
{
	uint64_t flags = call->flags;
	bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);

	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return;
	switch (place->st.st_mode & S_IFMT) {
	case S_IFREG:
		if (!writes || (flags & O_DIRECTORY) || place->slash)
			return;
		if (!(flags & O_TRUNC) &&
		    !bits_allow_writing(call->pid, &place->st))
			deny(finding, POLICY_OP_OPEN_WRITE, EACCES);
		else
			deny(finding, POLICY_OP_OPEN_WRITE, EROFS);
		return;
	case S_IFDIR:
		if ((flags & O_TMPFILE) == O_TMPFILE)
			deny(finding, POLICY_OP_TMPFILE, EROFS);
		return;
	case S_IFIFO:
		/* A read-only mount does not stop what goes through a pipe. */
		if ((flags & O_ACCMODE) == O_RDONLY)
			return;
		deny(finding, POLICY_OP_OPEN_WRITE, EACCES);
		finding->forbidden = true;
		return;
	case S_IFCHR:
	case S_IFBLK:
		if (writes)
			judge_device(place, finding);
		return;
	default:
		return;
	}
}

static void
judge_open(const struct call *call, const struct place *place,
	   struct finding *finding)
{
	if (place->exists)
		judge_open_existing(call, place, finding);
	else if ((call->flags & O_CREAT) && !(call->flags & O_DIRECTORY) &&
		 place->parent_exists && !place->slash)
		deny(finding, POLICY_OP_CREATE, EROFS);
}

/* The call meets the fence at its one name: does it get that far? */
static void
judge_one(const struct call *call, const struct place *place,
	  struct finding *finding)
{
	bool is_dir = place->exists && S_ISDIR(place->st.st_mode);

	switch (call->kind) {
	case CALL_OPEN:
		judge_open(call, place, finding);
		return;
	case CALL_NEW:
		if (!place->exists && place->parent_exists &&
		    (!place->slash || call->op == POLICY_OP_MKDIR))
			deny(finding, call->op, EROFS);
		return;
	case CALL_GONE:
		if (place->exists && is_dir == (call->op == POLICY_OP_RMDIR))
			deny(finding, call->op, EROFS);
		return;
	case CALL_CHANGE:
		if (place->exists && (call->op != POLICY_OP_TRUNCATE ||
				      S_ISREG(place->st.st_mode)))
			deny(finding, call->op, EROFS);
		return;
	case CALL_RENAME:
	case CALL_LINK:
	case CALL_CONNECT:
		return;
	}
}

static bool
rename_goes_on(const struct call *call, const struct place *from,
	       const struct place *to)
{
	if (!from->exists || (!to->exists && !to->parent_exists))
		return false;
	if ((call->flags & RENAME_NOREPLACE) && to->exists)
		return false;
	if ((call->flags & RENAME_EXCHANGE) && !to->exists)
		return false;

	/* Another file system: EXDEV, fence or not. */
	return from->parent_dev == to->parent_dev;
}

/*
 * Both ends count.  Where one is inside, on a mount of its own, the kernel says
 * EXDEV for what the host would do.
 */
static void
judge_rename(const struct policy *policy, const struct call *call,
	     struct finding *finding)
{
	const struct place *from = &finding->place, *to = &finding->place2;
	struct policy_verdict verdict = { 0 }, verdict2 = { 0 };
	bool at_from = meets_fence(policy, call->op, from, &verdict);
	bool at_to = meets_fence(policy, call->op, to, &verdict2);

	if ((!at_from && !at_to) || !rename_goes_on(call, from, to))
		return;
	finding->verdict = at_from ? verdict : verdict2;
	deny(finding, call->op, at_from && at_to ? EROFS : EXDEV);
}

/* Only the new name counts: it is looked at before EXDEV is found. */
static void
judge_link(const struct policy *policy, const struct call *call,
	   struct finding *finding)
{
	const struct place *from = &finding->place, *to = &finding->place2;

	if (meets_fence(policy, call->op, to, &finding->verdict) &&
	    from->exists && !S_ISDIR(from->st.st_mode) && !to->exists &&
	    to->parent_exists)
		deny(finding, call->op, EROFS);
}

/*
 * A directory on the way may not be searched: whether anything is there cannot
 * be known, the call is refused anyhow.
 */
static void
judge_unsearchable(const struct policy *policy, const struct call *call,
		   struct finding *finding)
{
	const struct place *place = &finding->place;

	finding->verdict =
		policy_decide_path(policy, call->op, place->path, false);
	if (finding->verdict.error != 0 && !place->area &&
	    (call->kind != CALL_OPEN || (call->flags & O_ACCMODE) != O_RDONLY ||
	     (call->flags & O_TRUNC)))
		deny(finding, call->op, EACCES);
}

/* Both names.  Where one end is inside, what it is matters all the same. */
static int
look_up_two(struct look *look, const struct call *call, struct look_rule *rule,
	    struct finding *finding)
{
	struct place *from = &finding->place, *to = &finding->place2;
	int r = look_up(look, call->pid, &call->name, rule, from);

	if (r == 0)
		r = look_up(look, call->pid, &call->name2, rule, to);
	if (r < 0 || from->settled == to->settled)
		return r;
	rule->always_look = true;
	return from->settled ? look_up(look, call->pid, &call->name, rule, from)
			     : look_up(look, call->pid, &call->name2, rule, to);
}

void
judge_call(struct look *look, const struct policy *policy,
	   const struct call *call, struct finding *ret_finding)
{
	struct finding *finding = ret_finding;
	struct look_rule rule = { .allows = allows,
				  .policy = policy,
				  .op = call->op };
	int r;

	finding->denied = false;
	finding->forbidden = false;
	finding->has_place2 =
		call->kind == CALL_RENAME || call->kind == CALL_LINK;
	if (finding->has_place2) {
		r = look_up_two(look, call, &rule, finding);
		if (r == 0 && call->kind == CALL_RENAME)
			judge_rename(policy, call, finding);
		else if (r == 0)
			judge_link(policy, call, finding);
	} else {
		r = look_up(look, call->pid, &call->name, &rule,
			    &finding->place);
		if (r == -EACCES)
			judge_unsearchable(policy, call, finding);
		else if (r == 0 &&
			 meets_fence(policy, call->op, &finding->place,
				     &finding->verdict))
			judge_one(call, &finding->place, finding);
	}

	/*
	 * Landlock would say EACCES, and to what it does not know (chmod, chown,
	 * times, attributes) nothing.  So the answer is ours; one who races
	 * gains no more than without it.
	 */
	if (policy->landlock)
		finding->forbidden = finding->denied;

	/* Names in a view of its own are not those that were looked at. */
	if (finding->denied && look_is_nested(look, call->pid))
		finding->denied = finding->forbidden = false;
}
