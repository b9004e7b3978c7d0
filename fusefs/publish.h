/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_PUBLISH_H
#define FUSEFS_PUBLISH_H

/*
 * The one way in which a verb changes the content of a file: verify the
 * version and publish new bytes in one step against everyone.
 *
 *   - others who come this way: the lock of the directory (temp.h);
 *   - programs of the host: a read lease on the file, which is granted when
 *     nobody has it open for writing, and tells when somebody wants to;
 *   - a rename over the file, which neither waits for a lease nor breaks it:
 *     the new content *changes places* with the file, and what came out must
 *     be what was verified, else they change back.
 *
 * A file that has several names, or whose owner the caller cannot give to a
 * new one, is filled in place under a write lease: nobody has it open then,
 * and who opens it waits.
 *
 * A kill leaves the old bytes or the new ones; journal.h has the rest.
 *
 * Thread: any; SIGIO must be ignored or blocked (leases).
 */

#include "fusefs/fsfail.h"

#define PUBLISH_MAX (16u << 20)

/* The file as it was verified; data is NULL when nobody asked for it. */
struct publish_old {
	const char *data;
	size_t len;
};

struct publish_request {
	struct policy *policy;
	const char *path;     /* canonical */
	const char *expect;   /* a version, VERSION_ABSENT; NULL: anything */
	const char *journals; /* a directory, which exists */
	bool make_parents;
	/*
	 * The new content, given the old: borrowed until the next call.  An
	 * edit needs a file; may be called several times.
	 */
	bool is_edit;
	int (*make)(void *data, const struct publish_old *old,
		    struct publish_old *ret_new, struct fsfail *fail);
	void *data;
};

struct publish_result {
	struct version version;
	bool created;
	size_t size;
};

int publish(const struct publish_request *request,
	    struct publish_result *ret_result, struct fsfail *fail);

/*
 * Where PALE_STOP_AT names the place (and others, maybe), the process stops
 * itself (SIGSTOP), so that a test can kill it there.  Nothing else comes of it.
 */
void publish_point(const char *place);

#endif
