/* SPDX-License-Identifier: MIT */

/*
 * pale fs version, and pale fs read: the file is read once, from its start to
 * its end, for the version; what was asked for is kept on the way.  So the
 * version is that of the very bytes that are shown, also while somebody writes.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/fs.h"
#include "fusefs/target.h"
#include "fusefs/textedit.h"

#define CHUNK (256u << 10)
#define LINES 2000 /* of a window whose end is not told */

/* What is asked for: lines, or bytes, counted from 1 and from 0. */
struct window {
	bool by_lines, whole;
	uint64_t first, last; /* inclusive; bytes: last is beyond the end */
};

struct reading {
	struct window window;
	struct buf kept;
	uint64_t at, line;   /* of the next byte */
	uint64_t shown_last; /* the last line of which anything is kept */
	bool cut, ends_in_line;
	struct digest digest;
};

/* ---- the window ---- */

/* "A-B", "A-" or "A". */
static int
parse_lines(const char *text, struct window *window)
{
	char first[24];
	const char *dash = strchr(text, '-');
	size_t len = dash ? (size_t)(dash - text) : strlen(text);

	if (len == 0 || len >= sizeof(first))
		return -EINVAL;
	(void)snprintf(first, sizeof(first), "%.*s", (int)len, text);
	if (units_number(first, &window->first) < 0 || window->first == 0)
		return -EINVAL;
	window->by_lines = true;
	if (!dash)
		window->last = window->first;
	else if (!dash[1])
		window->last = window->first + LINES - 1;
	else if (units_number(dash + 1, &window->last) < 0 ||
		 window->last < window->first)
		return -EINVAL;
	return 0;
}

/* "OFFSET", or "OFFSET+LENGTH". */
static int
parse_bytes(const char *text, struct window *window)
{
	char first[24];
	const char *plus = strchr(text, '+');
	size_t len = plus ? (size_t)(plus - text) : strlen(text);
	uint64_t length = PUBLISH_MAX;

	if (len == 0 || len >= sizeof(first))
		return -EINVAL;
	(void)snprintf(first, sizeof(first), "%.*s", (int)len, text);
	if (units_number(first, &window->first) < 0 ||
	    (plus && units_size(plus + 1, &length) < 0))
		return -EINVAL;
	if (__builtin_add_overflow(window->first, length, &window->last))
		return -EINVAL;
	return 0;
}

static int
parse_window(struct fs_verb *verb, struct window *ret_window)
{
	const struct fs_options *options = verb->options;
	struct window window = { .first = 0, .last = PUBLISH_MAX };
	int r = 0;

	if (options->lines)
		r = parse_lines(options->lines, &window);
	else if (options->bytes)
		r = parse_bytes(options->bytes, &window);
	else if (options->number)
		r = parse_lines("1-", &window);
	else
		window.whole = true;
	if (r == 0)
		*ret_window = window;
	return r;
}

/* ---- reading ---- */

static void
keep(struct reading *reading, const char *data, size_t len)
{
	size_t room = PUBLISH_MAX - reading->kept.len;

	reading->cut = reading->cut || len > room;
	buf_put(&reading->kept, data, len < room ? len : room);
}

static void
take_bytes(struct reading *reading, const char *data, size_t len)
{
	const struct window *window = &reading->window;
	uint64_t from = reading->at, to = from + len;

	from = from > window->first ? from : window->first;
	to = to < window->last ? to : window->last;
	if (from < to)
		keep(reading, data + (from - reading->at), (size_t)(to - from));
}

static void
take_lines(struct reading *reading, const char *data, size_t len)
{
	const struct window *window = &reading->window;
	const char *end = data + len;

	while (data < end) {
		const char *line = memchr(data, '\n', (size_t)(end - data));
		const char *next = line ? line + 1 : end;

		if (reading->line >= window->first &&
		    reading->line <= window->last) {
			keep(reading, data, (size_t)(next - data));
			reading->shown_last = reading->line;
		}
		reading->ends_in_line = !line;
		reading->line += line ? 1 : 0;
		data = next;
	}
}

static int
read_through(struct reading *reading, int fd)
{
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	ssize_t n;

	if (!chunk)
		return -ENOMEM;
	digest_init(&reading->digest);
	reading->line = 1;
	/* Files of /proc say what they are only when they are read. */
	while ((n = read(fd, chunk, CHUNK)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		digest_add(&reading->digest, chunk, (size_t)n);
		if (reading->window.by_lines)
			take_lines(reading, chunk, (size_t)n);
		else
			take_bytes(reading, chunk, (size_t)n);
		reading->at += (uint64_t)n;
		if (reading->window.whole && reading->at > PUBLISH_MAX)
			return -EFBIG;
	}
	return buf_error(&reading->kept);
}

/* Opens what the operand names, if it may be seen.  -ENOENT: not there. */
static int
open_seen(struct fs_verb *verb, const char *operand, char **ret_path,
	  int *ret_fd)
{
	_cleanup_(target_fini) struct target target = TARGET_NONE;
	bool missing = false;
	struct stat st;
	int r = fs_verb_locate(verb, operand, ret_path);

	if (r == 0)
		r = fsfail_judge_look(&verb->fail, verb->policy, *ret_path,
				      false);
	if (r == 0)
		r = target_open(verb->policy, *ret_path, &target, &missing,
				&verb->fail);
	if (r == 0 && !missing)
		r = target_open_file(&target, ret_fd, &st, &verb->fail);
	if (missing || (r == -ENOENT && !verb->fail.code))
		r = fsfail_set(&verb->fail, FSFAIL_NOT_FOUND,
			       "'%s' is not there", operand);
	return r;
}

/* ---- version ---- */

int
fs_run_version(struct fs_verb *verb, char **operands)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(closep) int fd = -1;
	struct version version = { VERSION_ABSENT };
	struct buf out = { 0 };
	int r = open_seen(verb, operands[0], &path, &fd);

	if (r == 0)
		r = version_of_fd(fd, &version);
	if (r < 0 && verb->fail.code != FSFAIL_NOT_FOUND &&
	    verb->fail.code != FSFAIL_NOT_DIRECTORY) {
		if (!verb->fail.code)
			(void)fsfail_errno(&verb->fail, r, "read", operands[0]);
		return fs_verb_failed(verb, operands[0]);
	}
	if (!verb->options->common.json) {
		puts(version.text);
		return 0;
	}
	jsonw_begin(&out, '{');
	jsonw_pair(&out, "path", path ? path : operands[0]);
	jsonw_pair(&out, "version", version.text);
	jsonw_end(&out, '}');
	return cli_print_json(&out) < 0 ? fsfail_status(FSFAIL_IO_ERROR) : 0;
}

/* ---- read ---- */

static uint64_t
total_lines(const struct reading *reading)
{
	return reading->line - (reading->ends_in_line ? 0 : 1);
}

static bool
is_partial(const struct reading *reading)
{
	const struct window *window = &reading->window;

	if (reading->cut)
		return true;
	return window->by_lines
		       ? window->first > 1 ||
				 reading->shown_last < total_lines(reading)
		       : window->first + reading->kept.len < reading->at ||
				 window->first > 0;
}

static void
print_numbered(const struct reading *reading)
{
	const char *at = (const char *)reading->kept.data;
	const char *end = at + reading->kept.len;
	uint64_t number = reading->window.first;

	while (at < end) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		const char *next = line ? line + 1 : end;

		printf("%6llu\t", (unsigned long long)number++);
		(void)fwrite(at, 1, (size_t)(next - at), stdout);
		at = next;
	}
	if (reading->kept.len > 0 && end[-1] != '\n')
		putchar('\n');
}

static void
note_partial(const struct fs_verb *verb, const struct reading *reading)
{
	const struct window *window = &reading->window;

	if (verb->options->common.quiet || !is_partial(reading))
		return;
	if (reading->cut)
		cli_error("note: cut after 16 MiB");
	if (!window->by_lines)
		cli_error("note: bytes %llu+%zu of %llu",
			  (unsigned long long)window->first, reading->kept.len,
			  (unsigned long long)reading->at);
	else if (reading->shown_last == 0)
		cli_error("note: there are only %llu lines",
			  (unsigned long long)total_lines(reading));
	else if (reading->shown_last < total_lines(reading))
		cli_error("note: lines %llu-%llu of %llu; go on with "
			  "--lines %llu-",
			  (unsigned long long)window->first,
			  (unsigned long long)reading->shown_last,
			  (unsigned long long)total_lines(reading),
			  (unsigned long long)reading->shown_last + 1);
	else
		cli_error("note: lines %llu-%llu of %llu",
			  (unsigned long long)window->first,
			  (unsigned long long)reading->shown_last,
			  (unsigned long long)total_lines(reading));
}

static int
print_as_json(const char *path, const struct reading *reading,
	      const struct version *version, bool is_text)
{
	struct buf out = { 0 };

	jsonw_begin(&out, '{');
	jsonw_pair(&out, "path", path);
	jsonw_pair(&out, "version", version->text);
	jsonw_pair_uint(&out, "size", reading->at);
	jsonw_pair_bool(&out, "text", is_text);
	if (reading->window.by_lines) {
		jsonw_pair_uint(&out, "first_line", reading->window.first);
		jsonw_pair_uint(&out, "last_line", reading->shown_last);
		jsonw_pair_uint(&out, "lines", total_lines(reading));
	} else {
		jsonw_pair_uint(&out, "offset", reading->window.first);
	}
	jsonw_pair_bool(&out, "truncated", is_partial(reading));
	jsonw_key(&out, "content");
	jsonw_bytes(&out, reading->kept.data, reading->kept.len);
	jsonw_end(&out, '}');
	return cli_print_json(&out) < 0 ? fsfail_status(FSFAIL_IO_ERROR) : 0;
}

static int
show(struct fs_verb *verb, const char *operand, const char *path,
     struct reading *reading)
{
	const struct buf *kept = &reading->kept;
	bool is_text = textedit_is_text(kept->data, kept->len);
	struct version version;

	if (!is_text && (verb->options->text || reading->window.by_lines)) {
		(void)fsfail_set(&verb->fail, FSFAIL_NOT_TEXT,
				 "'%s' is not text (UTF-8 without NUL); read "
				 "it by --bytes",
				 operand);
		return fs_verb_failed(verb, operand);
	}
	version_of_digest(&reading->digest, &version);
	if (verb->options->common.json)
		return print_as_json(path, reading, &version, is_text);
	if (verb->options->number)
		print_numbered(reading);
	else
		(void)fwrite(kept->data ? (const char *)kept->data : "", 1,
			     kept->len, stdout);
	note_partial(verb, reading);
	return 0;
}

int
fs_run_read(struct fs_verb *verb, char **operands)
{
	struct reading reading = { .at = 0 };
	_cleanup_(freep) char *path = NULL;
	_cleanup_(closep) int fd = -1;
	int status, r;

	if (parse_window(verb, &reading.window) < 0) {
		cli_error("--lines takes FIRST-LAST, --bytes OFFSET+LENGTH; "
			  "see pale fs read --help");
		return FS_EXIT_USAGE;
	}
	r = open_seen(verb, operands[0], &path, &fd);
	if (r == 0)
		r = read_through(&reading, fd);
	if (r == -EFBIG && !verb->fail.code)
		(void)fsfail_set(&verb->fail, FSFAIL_TOO_LARGE,
				 "'%s' is larger than 16 MiB; read it by "
				 "--lines or --bytes",
				 operands[0]);
	else if (r < 0 && !verb->fail.code)
		(void)fsfail_errno(&verb->fail, r, "read", operands[0]);
	status = r < 0 ? fs_verb_failed(verb, operands[0])
		       : show(verb, operands[0], path, &reading);
	buf_fini(&reading.kept);
	return status;
}
