/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_JOURNAL_H
#define FUSEFS_JOURNAL_H

/*
 * What a guarded change has begun, so that whoever comes next can bring to an
 * end what a kill interrupted: old bytes or new ones, and no temporary left.
 *
 * One file for each change under way, in a directory of the user's state, with
 * flock(2) held for as long as its maker lives.  It names the directory, the
 * file and the temporary beside it, by name and by inode number; a temporary
 * whose inode is neither the old nor the new content came from somebody else
 * and is not thrown away.
 *
 * Thread: any.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"

enum journal_kind {
	JOURNAL_MAKING,	    /* the temporary is of no use yet */
	JOURNAL_EXCHANGING, /* it changes places with the file */
	JOURNAL_FILLING,    /* its bytes are being copied into the file */
};

struct journal {
	int fd; /* -1: none */
	char path[4096];
};
#define JOURNAL_NONE                 \
	{                            \
		.fd = -1, .path = "" \
	}

/* `dir` is where journals are; parent, name and temp are what is changed. */
struct journal_about {
	const char *dir;
	const char *parent, *name, *temp;
	int dirfd; /* of the parent */
};
int journal_begin(const struct journal_about *about,
		  struct journal *ret_journal);

/* From now on. */
int journal_say(struct journal *journal, enum journal_kind kind,
		const struct stat *old, const struct stat *new);

/* The change is done or undone, the temporary is gone. */
void journal_end(struct journal *journal);

/*
 * Brings to an end what those left in `dir` that live no more.  `kept` (NULL
 * allowed) is called with the path of what was saved from being lost.
 */
void journal_sweep(const char *dir, void (*kept)(const char *path));

/*
 * Changes the places of `temp` and `name` back, after an exchange brought out
 * what was not expected.  Whatever others did meanwhile, the latest of theirs
 * has the name in the end, and `temp` is gone.
 */
int journal_put_back(int dirfd, const char *temp, const char *name,
		     const struct stat *mine);

/* Copies the whole of one file over another. */
int journal_fill(int to, int from);

#endif
