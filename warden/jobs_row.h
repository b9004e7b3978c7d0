/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_JOBS_ROW_H
#define WARDEN_JOBS_ROW_H

/*
 * The record of a job in words and as JSON, the same from a warden and from
 * the store alone; where its files are; and what is done for jobs whose warden
 * is no more.
 *
 * Who owns a job holds flock(2) on STATE/worlds/ID/jobs (the warden) or on the
 * directory of the job (the warden and its keeper, by one open file): whoever
 * can have both locks may settle it, and nobody trusts a process id.
 *
 * Thread: any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/segments.h"
#include "policy/store_jobs.h"

/* Room for "j18446744073709551615" and its NUL. */
#define JOBS_ID_MAX 24

/* "j3"; a bare number is taken as well.  -EINVAL. */
int jobs_id_parse(const char *text, uint64_t *ret_id);
void jobs_id_text(uint64_t id, char text[JOBS_ID_MAX]);

/* "running 1234 since …Z", "exited 0"; NUL-terminated, cut to `size`. */
void jobs_row_line(const struct store_job *row, char *text, size_t size);

/* One object; `row->spec`, where there is one, gives its members too. */
void jobs_row_json(const struct store_job *row, struct buf *out);

/* Its members about what became of it; those of what was asked for. */
void jobs_row_put_state(const struct store_job *row, struct buf *out);
void jobs_row_put_spec(const char *spec, struct buf *out);

/* What `pale job wait` exits with; −1: it has not ended. */
int jobs_row_exit(const struct store_job *row);

/* Bytes as a JSON string, and back.  -EINVAL, -ENOMEM. */
void jobs_put_base64(struct buf *out, const unsigned char *bytes, size_t len);
int jobs_base64_decode(const char *text, size_t len, struct buf *out);

/* Of each stream. */
extern const struct segments_limits jobs_output_limits;

/* STATE/worlds/WORLD/jobs/jN; fresh, NULL: no memory. */
char *jobs_dir_path(const char *state, const char *world, uint64_t id);

/*
 * Settles what has no owner any more: by what its keeper wrote down, or as
 * lost.  `id` 0: all.  *ret_busy (NULL allowed): how many a keeper still has
 * in hand.
 */
int jobs_settle_dead(struct store *store, const char *state, uint64_t id,
		     unsigned int *ret_busy);

/* No warden of this world lives. */
bool jobs_owner_is_dead(const char *state, const char *world);

/* Removes the files, then the record.  -EBUSY: something of it lives. */
int jobs_remove_row(struct store *store, const char *state,
		    const struct store_job *row);

#define JOBS_KEPT	200
#define JOBS_KEPT_DAYS	30
#define JOBS_KEPT_BYTES (2ull << 30)

/*
 * Removes what is more than shall be kept; 0 means the default.  `gone` (NULL
 * allowed) is told each id.  Returns the number, or a negative errno.
 */
int jobs_prune(struct store *store, const char *state, uint64_t kept,
	       uint64_t bytes, void (*gone)(uint64_t id, void *data),
	       void *data);

#endif
