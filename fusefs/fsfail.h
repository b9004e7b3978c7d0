/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_FSFAIL_H
#define FUSEFS_FSFAIL_H

/*
 * Why a verb on files (read, write, edit, ...) was not done: one of a closed
 * set of codes, and a sentence that says what to do.
 *
 * Thread: any (the caller owns the struct).
 */

#include <stdbool.h>
#include <stddef.h>

#include "fusefs/fs.h"
#include "fusefs/version.h"

/* Name, text, errno that functions return, exit status of `pale fs`. */
#define FSFAIL_CODES(X)                                          \
	X(NONE, "", 0, 0)                                        \
	X(NOT_FOUND, "FS_NOT_FOUND", ENOENT, 66)                 \
	X(EXISTS, "FS_EXISTS", EEXIST, 75)                       \
	X(NOT_DIRECTORY, "FS_NOT_DIRECTORY", ENOTDIR, 66)        \
	X(IS_DIRECTORY, "FS_IS_DIRECTORY", EISDIR, 65)           \
	X(NOT_REGULAR_FILE, "FS_NOT_REGULAR_FILE", EINVAL, 65)   \
	X(NOT_TEXT, "FS_NOT_TEXT", EILSEQ, 65)                   \
	X(TOO_LARGE, "FS_TOO_LARGE", EFBIG, 65)                  \
	X(PERMISSION_DENIED, "FS_PERMISSION_DENIED", EACCES, 13) \
	X(SANDBOX_DENIED, "FS_SANDBOX_DENIED", EROFS, 13)        \
	X(PROTECTED, "FS_PROTECTED", EACCES, 13)                 \
	X(HIDDEN, "FS_HIDDEN", EACCES, 13)                       \
	X(STALE_VERSION, "FS_STALE_VERSION", ESTALE, 75)         \
	X(NOT_OBSERVED, "FS_NOT_OBSERVED", EPERM, 75)            \
	X(AMBIGUOUS_EDIT, "FS_AMBIGUOUS_EDIT", ENOTUNIQ, 65)     \
	X(EDIT_NOT_FOUND, "FS_EDIT_NOT_FOUND", ENODATA, 65)      \
	X(NO_SPACE, "FS_NO_SPACE", ENOSPC, 74)                   \
	X(IO_ERROR, "FS_IO_ERROR", EIO, 74)                      \
	X(ABORTED, "FS_ABORTED", ECANCELED, 74)

enum fsfail_code {
#define X(id, name, error, status) FSFAIL_##id,
	FSFAIL_CODES(X)
#undef X
};

struct fsfail {
	enum fsfail_code code;
	char text[512];
	const char *reason;	/* "open_for_write" ...; NULL: none */
	struct version version; /* the present one; "" when not known */
	size_t count;		/* matches of an edit that is ambiguous */
	size_t edit;		/* which edit, from 0 */
	/* A refusal of the fence, to be put on record. */
	bool denied;
	enum policy_op op;
	char path[4096];
	struct fence_answer answer;
};

const char *fsfail_name(enum fsfail_code code);
int fsfail_status(enum fsfail_code code);

/* Both return the negative errno of the code. */
int fsfail_set(struct fsfail *fail, enum fsfail_code code, const char *format,
	       ...) __attribute__((format(printf, 3, 4)));
/* What a system call said; `doing` is "write", "open" ... */
int fsfail_errno(struct fsfail *fail, int r, const char *doing,
		 const char *path);

/*
 * Asks the fence about a mutation of `path` (canonical), as an inmate's would
 * be judged; a refusal fills all that is to be recorded.
 */
int fsfail_judge(struct fsfail *fail, struct policy *policy, enum policy_op op,
		 const char *path);

/* The same for looking: a hidden name does not answer whether it is there. */
int fsfail_judge_look(struct fsfail *fail, const struct policy *policy,
		      const char *path, bool is_dir);

#endif
