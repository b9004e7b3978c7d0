/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_TERMS_ROW_H
#define WARDEN_TERMS_ROW_H

/*
 * The record of a terminal in words and as JSON, the same from a warden and
 * from the store alone; where its files are; its screen, made from these; and
 * what is done for terminals whose warden is no more (warden/spool_dir.h).
 *
 *	raw.*	 what it wrote (base/segments.h)
 *	screen	 the model as it was at one position of `raw`: with the rest of
 *		 `raw` it is the screen of the last moment
 *
 * Thread: any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/segments.h"
#include "policy/store_terms.h"
#include "warden/terms.h"

struct vt;

/* "t3"; a bare number is taken as well.  -EINVAL. */
int terms_id_parse(const char *text, uint64_t *ret_id);
void terms_id_text(uint64_t id, char text[TERMS_ID_MAX]);

#define TERMS_NAME_MAX 64
/* 1 to 64 bytes, no control character, no slash, no id. */
bool terms_name_is_valid(const char *name);

/* "running 1234 since …Z", "exited 0"; NUL-terminated, cut to `size`. */
void terms_row_line(const struct store_term *row, char *text, size_t size);

/* One object; `row->spec`, where there is one, gives its members too. */
void terms_row_json(const struct store_term *row, struct buf *out);

/* What `pale term wait --for exit` exits with; −1: it has not ended. */
int terms_row_exit(const struct store_term *row);

extern const struct segments_limits terms_raw_limits;

/* STATE/worlds/WORLD/terminals/tN; fresh, NULL: no memory. */
char *terms_dir_path(const char *state, const char *world, uint64_t id);

/*
 * The model of an ended terminal, which answers nothing and tells nothing;
 * `dir` -1: it has no files.  Errors: -ENOENT (it was removed), -ENOMEM, what read(2) says.
 */
int terms_load_screen(int dir, const struct store_term *row,
		      struct vt **ret_vt);

enum terms_format {
	TERMS_TEXT,
	TERMS_ANSI,
	TERMS_JSON,
};
/* "text", "ansi", "json"; -EINVAL. */
int terms_format_parse(const char *name, enum terms_format *ret_format);
/* What a person would see. */
void terms_put_screen(const struct vt *vt, enum terms_format format,
		      unsigned int scrollback, struct buf *out);

/* The same of an ended one, for who knows nothing of models.  As above. */
int terms_dump_screen(int dir, const struct store_term *row,
		      enum terms_format format, unsigned int scrollback,
		      struct buf *out);
/* `count` logical lines that end `offset` before the newest. */
int terms_dump_lines(int dir, const struct store_term *row, unsigned int offset,
		     unsigned int count, struct buf *out);

/*
 * Settles what has no owner any more: by what its keeper wrote down, or as
 * lost.  `id` 0: all.
 */
int terms_settle_dead(struct store *store, const char *state, uint64_t id);

/* Removes the files, then the record.  -EBUSY: something of it lives. */
int terms_remove_row(struct store *store, const char *state,
		     const struct store_term *row);

#define TERMS_KEPT	100
#define TERMS_KEPT_DAYS 30

/*
 * Removes what is more than shall be kept; 0 means the default.  `gone` (NULL
 * allowed) is told each id.  Returns the number, or a negative errno.
 */
int terms_prune(struct store *store, const char *state, uint64_t kept,
		void (*gone)(uint64_t id, void *data), void *data);

#endif
