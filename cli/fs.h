/* SPDX-License-Identifier: MIT */
#ifndef CLI_FS_H
#define CLI_FS_H

/*
 * pale fs: what its verbs share.  They work in this process, on the host's own
 * files, and are judged by the policy of the standing world of the workspace,
 * or by the one that `pale run` would resolve where there is none.
 *
 * Thread: main.
 */

#include "cli/cli.h"
#include "cli/worlds.h"
#include "fusefs/fsfail.h"
#include "fusefs/publish.h"

/* Exit statuses besides those of the codes. */
#define FS_EXIT_USAGE 2

struct fs_options {
	struct cli_common common;
	struct cli_policy_options policy;
	const char *world;
	const char *expect;
	bool make_parents, force;
	const char *old, *new, *edits;
	bool all, text;
	const char *lines, *bytes;
	bool number;
	uint64_t max;
	const char *glob;
	bool no_ignore, fixed, ignore_case, files;
};

/* One verb at work. */
struct fs_verb {
	const struct fs_options *options;
	struct policy *policy;
	char world[WORLD_ID_LEN + 1]; /* "-": there is none */
	char *journals;
	struct fsfail fail;
};

/* The policy, and what an earlier command left is swept; errors are told. */
int fs_verb_init(struct fs_verb *verb, const struct fs_options *options);
void fs_verb_fini(struct fs_verb *verb);

/* For who changes something: where journal.h keeps what is under way. */
int fs_verb_make_journals(struct fs_verb *verb);

/* The canonical path of an operand, fresh; fills verb->fail. */
int fs_verb_locate(struct fs_verb *verb, const char *operand, char **ret_path);

/*
 * Tells why it was not done and puts a refusal on record; returns the exit
 * status.
 */
int fs_verb_failed(struct fs_verb *verb, const char *operand);

/*
 * The place of an operand, if it may be seen; *ret_target borrows *ret_path.
 * Fills verb->fail.
 */
struct target;
struct stat;
int fs_verb_find(struct fs_verb *verb, const char *operand, char **ret_path,
		 struct target *ret_target, struct stat *ret_st);

/* Each does one operand's work and returns the exit status. */
int fs_run_write(struct fs_verb *verb, char **operands);
int fs_run_edit(struct fs_verb *verb, char **operands);
int fs_run_version(struct fs_verb *verb, char **operands);
int fs_run_read(struct fs_verb *verb, char **operands);
int fs_run_stat(struct fs_verb *verb, char **operands);
int fs_run_list(struct fs_verb *verb, char **operands);
int fs_run_glob(struct fs_verb *verb, char **operands);
int fs_run_grep(struct fs_verb *verb, char **operands);

#endif
