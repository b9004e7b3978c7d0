/* SPDX-License-Identifier: MIT */

#include "jobs/output.h"

#include <string.h>

#include "base/clock.h"

#define STREAMS 2

/* A record tells the time of its beginning, so it does not last. */
#define RECORD_NS    250000000LL
#define RECORD_BYTES (1u << 30)

struct record {
	int64_t time_ns;
	uint64_t at[STREAMS];
	uint32_t len;
	uint32_t stream;
};
_Static_assert(sizeof(struct record) == OUTPUT_RECORD, "records are packed");
_Static_assert(SEGMENT_BYTES % OUTPUT_RECORD == 0, "none is cut in two");

/* Of the index; a job that alternates byte by byte must not fill the disk. */
static const struct segments_limits index_limits = { 1u << 20, 4u << 20 };

struct output {
	struct segments *streams[STREAMS], *index;
	/* The newest record, by the writer alone. */
	struct record last;
	uint64_t last_at; /* its place in the index */
	bool has_last;
};

static const char *const names[] = {
	[OUTPUT_STDOUT] = "stdout",
	[OUTPUT_STDERR] = "stderr",
	[OUTPUT_BOTH] = "both",
};

const char *
output_stream_name(enum output_stream stream)
{
	return names[stream];
}

int
output_stream_parse(const char *name, enum output_stream *ret_stream)
{
	if (strcmp(name, "output") == 0)
		name = names[OUTPUT_BOTH];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*ret_stream = (enum output_stream)i;
		return 0;
	}
	return -EINVAL;
}

int
output_open(int dir, const struct segments_limits *limits,
	    struct output **ret_output)
{
	_cleanup_(output_freep) struct output *output = NULL;
	int r = 0;

	output = calloc(1, sizeof(*output));
	if (!output)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < STREAMS; i++)
		r = segments_open(dir, names[i], limits, &output->streams[i]);
	if (r == 0)
		r = segments_open(dir, "index", limits ? &index_limits : NULL,
				  &output->index);
	if (r < 0)
		return r;
	*ret_output = take_ptr(&output);
	return 0;
}

struct output *
output_free(struct output *output)
{
	if (!output)
		return NULL;
	for (size_t i = 0; i < STREAMS; i++)
		segments_free(output->streams[i]);
	segments_free(output->index);
	free(output);
	return NULL;
}

/* ---- writing ---- */

/* `len` bytes came to the end of `stream`. */
static void
note(struct output *output, enum output_stream stream, size_t len)
{
	struct record *last = &output->last;
	int64_t now = clock_real_ns();
	struct record fresh = { .time_ns = now,
				.len = (uint32_t)len,
				.stream = stream };

	if (output->has_last && last->stream == (uint32_t)stream &&
	    now - last->time_ns < RECORD_NS &&
	    last->len + len <= RECORD_BYTES) {
		last->len += (uint32_t)len;
		if (segments_amend(output->index, output->last_at, last,
				   sizeof(*last)) == 0)
			return;
		last->len -= (uint32_t)len;
	}
	for (size_t i = 0; i < STREAMS; i++)
		fresh.at[i] = segments_end(output->streams[i]);
	fresh.at[stream] -= len;
	*last = fresh;
	output->last_at = segments_end(output->index);
	output->has_last = true;
	segments_append(output->index, last, sizeof(*last));
}

ssize_t
output_splice(struct output *output, enum output_stream stream, int pipe,
	      size_t max)
{
	ssize_t n = segments_splice(output->streams[stream], pipe, max);

	if (n > 0)
		note(output, stream, (size_t)n);
	return n;
}

int
output_recover(struct output *output)
{
	static const char *const tails[] = { "stdout.tail", "stderr.tail" };

	for (size_t i = 0; i < STREAMS; i++) {
		int r = segments_adopt(output->streams[i], tails[i]);

		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}

void
output_finish(struct output *output)
{
	for (size_t i = 0; i < STREAMS; i++)
		segments_finish(output->streams[i]);
	segments_finish(output->index);
}

uint64_t
output_end(const struct output *output, enum output_stream stream)
{
	if (stream != OUTPUT_BOTH)
		return segments_end(output->streams[stream]);
	return segments_end(output->streams[OUTPUT_STDOUT]) +
	       segments_end(output->streams[OUTPUT_STDERR]);
}

uint64_t
output_stored(const struct output *output)
{
	return segments_stored(output->streams[OUTPUT_STDOUT]) +
	       segments_stored(output->streams[OUTPUT_STDERR]) +
	       segments_stored(output->index);
}

/* ---- reading the order ---- */

void
output_cursor_fini(struct output_cursor *cursor)
{
	for (size_t i = 0; i < 3; i++)
		segments_file_fini(&cursor->files[i]);
	*cursor = (struct output_cursor){ 0 };
}

/* A part of the joint stream that lies in one of the two. */
struct piece {
	enum output_stream stream;
	uint64_t at, len;
};

static uint64_t
joint(const struct record *record)
{
	return record->at[0] + record->at[1];
}

static struct record
record_at(const struct output_cursor *cursor, size_t i)
{
	struct record record;

	memcpy(&record, cursor->records + i * sizeof(record), sizeof(record));
	/* The file is a file: nothing that it says may lead astray. */
	record.stream &= 1;
	for (size_t s = 0; s < STREAMS; s++)
		if (record.at[s] > UINT64_MAX / 4)
			record.at[s] = 0;
	return record;
}

/*
 * Gets records from number `from` on, at most `count`, into the cursor; those
 * that retention took are passed over.  False: there are none.
 */
static bool
load(struct output *output, struct output_cursor *cursor, uint64_t from,
     size_t count)
{
	uint64_t end = segments_end(output->index) / OUTPUT_RECORD, at = from;
	struct segments_view view;

	cursor->count = 0;
	while (at < end) {
		if (segments_read(output->index, &cursor->files[2],
				  at * OUTPUT_RECORD, cursor->records,
				  count * OUTPUT_RECORD, &view) < 0)
			return false;
		cursor->count = view.len / OUTPUT_RECORD;
		if (cursor->count > 0) {
			cursor->first =
				view.next / OUTPUT_RECORD - cursor->count;
			return true;
		}
		if (view.next / OUTPUT_RECORD <= at)
			return false;
		at = view.next / OUTPUT_RECORD;
	}
	return false;
}

/* The last record that begins at or before `offset`; false: none does. */
static bool
search(struct output *output, struct output_cursor *cursor, uint64_t offset,
       struct record *ret_record, uint64_t *ret_number)
{
	uint64_t low = 0, high = segments_end(output->index) / OUTPUT_RECORD;
	bool found = false;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		struct record record;

		if (!load(output, cursor, mid, 1) || cursor->first >= high) {
			high = mid;
			continue;
		}
		record = record_at(cursor, 0);
		if (joint(&record) > offset) {
			high = mid;
			continue;
		}
		found = true;
		*ret_record = record;
		*ret_number = cursor->first;
		low = cursor->first + 1;
	}
	return found;
}

static bool
inside(const struct record *record, uint64_t offset, struct piece *ret_piece)
{
	uint64_t begin = joint(record);

	if (offset < begin || offset - begin >= record->len)
		return false;
	*ret_piece = (struct piece){
		.stream = (enum output_stream)record->stream,
		.at = record->at[record->stream] + (offset - begin),
		.len = record->len - (offset - begin),
	};
	return true;
}

/* What lies between a record (or the beginning) and the next one. */
static bool
between(const struct output *output, const struct record *before,
	const struct record *next, uint64_t offset, struct piece *ret_piece)
{
	uint64_t from[STREAMS] = { 0 }, left = offset;

	if (before) {
		memcpy(from, before->at, sizeof(from));
		from[before->stream] += before->len;
	}
	if (left < from[0] + from[1])
		return false;
	left -= from[0] + from[1];
	for (size_t i = 0; i < STREAMS; i++) {
		uint64_t to =
			next ? next->at[i] : segments_end(output->streams[i]);
		uint64_t len = to > from[i] ? to - from[i] : 0;

		if (left < len) {
			*ret_piece = (struct piece){
				.stream = (enum output_stream)i,
				.at = from[i] + left,
				.len = len - left,
			};
			return true;
		}
		left -= len;
	}
	return false;
}

/* Where the byte `offset` of the joint stream is; false: not there yet. */
static bool
locate(struct output *output, struct output_cursor *cursor, uint64_t offset,
       struct piece *ret_piece)
{
	struct record before, next;
	bool has_before, has_next;
	uint64_t number = 0;

	for (size_t i = 0; i < cursor->count; i++) {
		before = record_at(cursor, i);
		if (inside(&before, offset, ret_piece))
			return true;
	}
	has_before = search(output, cursor, offset, &before, &number);
	if (has_before)
		number++;
	has_next = load(output, cursor, number, OUTPUT_RECORDS);
	if (has_next)
		next = record_at(cursor, 0);
	if (has_before && inside(&before, offset, ret_piece))
		return true;
	return between(output, has_before ? &before : NULL,
		       has_next ? &next : NULL, offset, ret_piece);
}

/* ---- reading ---- */

/*
 * Adds what one piece yields to what was read already; false: this is as far
 * as one answer can tell.
 */
static bool
add_piece(const struct piece *piece, const struct segments_view *part,
	  struct segments_view *view)
{
	uint64_t lost = 0, len;

	if (part->reason != SEGMENTS_KEPT) {
		if (view->len > 0 || (view->reason != SEGMENTS_KEPT &&
				      view->reason != part->reason))
			return false;
		lost = part->lost_to - part->lost_from;
		lost = lost < piece->len ? lost : piece->len;
		if (view->reason == SEGMENTS_KEPT)
			view->lost_from = view->next;
		view->reason = part->reason;
		view->next += lost;
		view->lost_to = view->next;
	}
	len = piece->len - lost;
	len = part->len < len ? part->len : len;
	view->len += (size_t)len;
	view->next += len;
	return lost + len > 0;
}

static int
read_both(struct output *output, struct output_cursor *cursor, uint64_t offset,
	  unsigned char *buf, size_t size, struct segments_view *ret_view)
{
	struct segments_view view = { .next = offset }, part;
	struct piece piece;
	int r;

	view.end = output_end(output, OUTPUT_BOTH);
	if (offset > view.end)
		return -ERANGE;
	while (view.len < size && view.next < view.end &&
	       locate(output, cursor, view.next, &piece)) {
		size_t want = size - view.len;

		/* Whatever the index says, there is no more than that. */
		if (piece.len > view.end - view.next)
			piece.len = view.end - view.next;
		if (want > piece.len)
			want = (size_t)piece.len;
		r = segments_read(output->streams[piece.stream],
				  &cursor->files[piece.stream], piece.at,
				  buf + view.len, want, &part);
		if (r == -ERANGE)
			break;
		if (r < 0)
			return r;
		if (!add_piece(&piece, &part, &view))
			break;
	}
	*ret_view = view;
	return 0;
}

int
output_read(struct output *output, struct output_cursor *cursor,
	    uint64_t offset, void *buf, size_t size,
	    struct segments_view *ret_view)
{
	enum output_stream stream = cursor->stream;

	if (stream == OUTPUT_BOTH)
		return read_both(output, cursor, offset, buf, size, ret_view);
	return segments_read(output->streams[stream], &cursor->files[stream],
			     offset, buf, size, ret_view);
}
