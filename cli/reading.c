/* SPDX-License-Identifier: MIT */

#include "cli/reading.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK	  262144u
#define FOLLOW_MS 30000

int
reading_init(struct reading *reading, uint64_t max, struct errmsg *why)
{
	reading->left = max ? max : UINT64_MAX;
	reading->bytes = malloc(CHUNK);
	return reading->bytes ? 0 : errmsg_set(why, -ENOMEM, "out of memory");
}

void
reading_fini(struct reading *reading)
{
	free(reading->bytes);
	reading->bytes = NULL;
}

int
reading_parse(const struct reading *reading, const char *text,
	      uint64_t *ret_value, bool *ret_back, struct errmsg *why)
{
	bool back = text[0] == '-';
	char *rest;
	uint64_t value = strtoull(text + back, &rest, 10);

	if (!text[back] || *rest || text[back] == '-' || text[back] == '+')
		return errmsg_set(why, -EINVAL, "--%s takes a number",
				  reading->kind->position);
	*ret_value = value;
	*ret_back = back;
	return 0;
}

/* ---- what there is ---- */

static void
tell_lost(const struct reading *reading, const struct segments_view *view)
{
	if (view->reason == SEGMENTS_KEPT || reading->common->quiet ||
	    reading->common->json)
		return;
	/* Before the bytes that follow, if both go to one place. */
	(void)fflush(stdout);
	cli_error("bytes %llu to %llu are not there: %s",
		  (unsigned long long)view->lost_from,
		  (unsigned long long)view->lost_to,
		  view->reason == SEGMENTS_CAP ? "more was written than is kept"
					       : "they could not be stored");
}

static int
read_piece(struct reading *reading, struct segments_view *ret_view,
	   struct errmsg *why)
{
	const struct reading_kind *kind = reading->kind;
	size_t size = reading->left < CHUNK ? (size_t)reading->left : CHUNK;
	int r = kind->read(reading, size, ret_view);

	if (r == -ERANGE)
		return errmsg_set(why, r, "%s %llu is beyond the end, %llu",
				  kind->position,
				  (unsigned long long)reading->offset,
				  (unsigned long long)kind->end(reading));
	return r < 0 ? errmsg_set(why, r, "cannot read the output: %s",
				  strerror(-r))
		     : 0;
}

/* All that there is now, or as much as is wanted. */
static int
read_all(struct reading *reading, struct errmsg *why)
{
	const struct reading_kind *kind = reading->kind;
	int r = kind->open(reading, why);
	bool more = r > 0, opened = more;

	while (more) {
		struct segments_view view = { 0 };

		r = read_piece(reading, &view, why);
		if (r < 0)
			break;
		tell_lost(reading, &view);
		more = view.len > 0 || view.reason != SEGMENTS_KEPT;
		r = more || !reading->common->json ? kind->put(reading, &view)
						   : 0;
		if (r < 0) {
			(void)errmsg_set(why, r, "cannot write the output: %s",
					 strerror(-r));
			break;
		}
		reading->offset = view.next;
		reading->left -= view.len;
		more = more && reading->left > 0;
	}
	if (opened)
		kind->close(reading);
	return r;
}

/* ---- what comes ---- */

static int
follow(struct reading *reading, struct errmsg *why)
{
	bool final = false;
	int r = 0;

	while (r == 0 && reading->left > 0 && !final) {
		uint64_t before = reading->offset;

		r = reading->kind->await(reading, FOLLOW_MS, &final, why);
		if (r == 0)
			r = read_all(reading, why);
		/* On a full disk, what is told may be ahead of the files. */
		if (r == 0 && reading->offset == before)
			(void)poll(NULL, 0, (int)reading->kind->pause_ms);
	}
	return r;
}

int
reading_run(struct reading *reading, bool follow_it, uint64_t wait_ms,
	    struct errmsg *why)
{
	uint64_t before = reading->offset;
	int r = read_all(reading, why);
	bool final;

	if (r < 0)
		return r;
	if (follow_it)
		return follow(reading, why);
	if (wait_ms == 0 || reading->offset != before)
		return 0;
	r = reading->kind->await(reading, wait_ms, &final, why);
	return r < 0 ? r : read_all(reading, why);
}

bool
reading_is_final(const struct reading *reading, const json_t *answer)
{
	json_int_t end = json_integer_value(json_object_get(answer, "end"));

	return json_is_true(json_object_get(answer, "final")) &&
	       (uint64_t)end <= reading->offset;
}
