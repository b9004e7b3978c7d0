/* SPDX-License-Identifier: MIT */

/*
 * pale fs glob, and pale fs grep.
 *
 * A file is searched whole, and what is found is told by its line: the search
 * goes on behind that, so a line is told once.  A pattern that takes too many
 * steps on a file leaves the rest of that file out, which is told, too.
 */

#define PCRE2_CODE_UNIT_WIDTH 8

#include <errno.h>
#include <fcntl.h>
#include <pcre2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "cli/fs_walk.h"
#include "fusefs/target.h"
#include "policy/rules.h"

#define STEPS	       10000000
#define HEAP_KIB       65536
#define NUL_SEEN       8192
#define LINE_MAX_SHOWN 2000

struct search {
	struct fs_verb *verb;
	const char *start; /* the operand that paths begin with; "" for none */
	struct rules *globs; /* NULL: any name */
	uint64_t found, max;
	bool cut;
	/* grep */
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *context;
	unsigned char *text; /* of one file; LIMIT bytes and one */
	uint64_t too_large, too_long, unread;
};

static char *
shown_path(const struct search *search, const char *path)
{
	size_t len = strlen(search->start);
	char *shown;

	if (asprintf(&shown, "%s%s%s", search->start,
		     len && search->start[len - 1] != '/' ? "/" : "", path) < 0)
		return NULL;
	return shown;
}

/* ---- names ---- */

/* A pattern with a slash in it begins at the start, others are for any depth. */
static int
take_glob(struct search *search, const char *glob)
{
	struct errmsg why = { "" };
	int r = rules_new(&search->globs);

	if (r == 0)
		r = rules_add(search->globs, RULE_HIDE, glob, "glob", &why);
	if (r == 0 && rules_empty(search->globs))
		r = -EINVAL;
	if (r < 0)
		cli_error("'%s' is no pattern%s%s; see pale fs glob --help",
			  glob, why.text[0] ? ": " : "", why.text);
	return r;
}

static bool
is_wanted(const struct search *search, const char *path)
{
	struct rule_match match = { 0 };

	return !search->globs ||
	       (rules_match_path(search->globs, path, false, &match) == 0 &&
		match.hide.text);
}

/* 1: that was the last one. */
static int
count_one(struct search *search)
{
	search->found++;
	return 0;
}

static int
is_full(struct search *search)
{
	search->cut = search->found >= search->max;
	return search->cut;
}

static void
print_name(const struct search *search, const char *path, const struct stat *st)
{
	struct buf out = { 0 };

	if (search->verb->options->common.json) {
		jsonw_begin(&out, '{');
		jsonw_pair(&out, "path", path);
		jsonw_pair_uint(&out, "size", (uint64_t)st->st_size);
		jsonw_end(&out, '}');
		(void)cli_print_json(&out);
		return;
	}
	escape_controls(&out, path, strlen(path));
	printf("%.*s\n", (int)out.len, out.data ? (const char *)out.data : "");
	buf_fini(&out);
}

static int
glob_file(void *data, const struct fs_file *file)
{
	struct search *search = data;
	_cleanup_(freep) char *path = NULL;

	if (!is_wanted(search, file->path))
		return 0;
	if (is_full(search))
		return 1;
	path = shown_path(search, file->path);
	if (!path)
		return -ENOMEM;
	print_name(search, path, file->st);
	return count_one(search);
}

/* ---- lines ---- */

static int
compile(struct search *search, const char *pattern)
{
	const struct fs_options *options = search->verb->options;
	uint32_t flags = PCRE2_MULTILINE | PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
	unsigned char said[128];
	size_t at = 0;
	int error = 0;

	flags |= options->fixed ? PCRE2_LITERAL : 0;
	flags &= options->fixed ? ~(uint32_t)PCRE2_MULTILINE : ~UINT32_C(0);
	flags |= options->ignore_case ? PCRE2_CASELESS : 0;
	search->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
				     flags, &error, &at, NULL);
	if (!search->code) {
		(void)pcre2_get_error_message(error, said, sizeof(said));
		cli_error("'%s' is no pattern: %s, at byte %zu", pattern,
			  (const char *)said, at);
		return -EINVAL;
	}
	/* Slower without, that is all. */
	(void)pcre2_jit_compile(search->code, PCRE2_JIT_COMPLETE);
	search->match =
		pcre2_match_data_create_from_pattern(search->code, NULL);
	search->context = pcre2_match_context_create(NULL);
	search->text = malloc((size_t)PUBLISH_MAX + 1);
	if (!search->match || !search->context || !search->text)
		return -ENOMEM;
	(void)pcre2_set_match_limit(search->context, STEPS);
	(void)pcre2_set_heap_limit(search->context, HEAP_KIB);
	return 0;
}

static void
print_line(const struct search *search, const char *path, uint64_t number,
	   const unsigned char *line, size_t len)
{
	bool cut = len > LINE_MAX_SHOWN;
	struct buf out = { 0 };

	len = cut ? LINE_MAX_SHOWN : len;
	/* Not in the middle of a character. */
	while (cut && len > 0 && (line[len] & 0xc0) == 0x80)
		len--;
	if (search->verb->options->common.json) {
		jsonw_begin(&out, '{');
		jsonw_pair(&out, "path", path);
		jsonw_pair_uint(&out, "line", number);
		jsonw_key(&out, "text");
		jsonw_bytes(&out, line, len);
		jsonw_pair_bool(&out, "cut", cut);
		jsonw_end(&out, '}');
		(void)cli_print_json(&out);
		return;
	}
	escape_controls(&out, path, strlen(path));
	printf("%.*s:%llu:", (int)out.len,
	       out.data ? (const char *)out.data : "",
	       (unsigned long long)number);
	(void)fwrite(line, 1, len, stdout);
	puts(cut ? "..." : "");
	buf_fini(&out);
}

static uint64_t
count_lines(const unsigned char *from, const unsigned char *to)
{
	uint64_t n = 0;

	while (from < to && (from = memchr(from, '\n', (size_t)(to - from)))) {
		from++;
		n++;
	}
	return n;
}

/* 1: no more. */
static int
search_text(struct search *search, const struct fs_file *file, size_t len)
{
	const unsigned char *text = search->text, *end, *line, *counted = text;
	_cleanup_(freep) char *path = shown_path(search, file->path);
	uint64_t number = 1;
	size_t at = 0;

	while (path && at < len) {
		const size_t *found;
		int r = pcre2_match(search->code, text, len, at, 0,
				    search->match, search->context);

		if (r == PCRE2_ERROR_NOMATCH)
			return 0;
		if (r < 0) {
			search->too_long++;
			return 0;
		}
		if (is_full(search))
			return 1;
		found = pcre2_get_ovector_pointer(search->match);
		if (found[0] >= len)
			return 0;
		line = memrchr(text, '\n', found[0]);
		line = line ? line + 1 : text;
		end = memchr(text + found[0], '\n', len - found[0]);
		end = end ? end : text + len;
		number += count_lines(counted, line);
		counted = line;
		if (search->verb->options->files) {
			print_name(search, path, file->st);
			return count_one(search);
		}
		print_line(search, path, number, line, (size_t)(end - line));
		(void)count_one(search);
		at = (size_t)(end - text) + 1;
	}
	return path ? 0 : -ENOMEM;
}

static int
grep_file(void *data, const struct fs_file *file)
{
	struct search *search = data;
	_cleanup_(closep) int fd = -1;
	ssize_t n;

	if (!is_wanted(search, file->path))
		return 0;
	if (file->st->st_size > (off_t)PUBLISH_MAX) {
		search->too_large++;
		return 0;
	}
	fd = openat(file->dirfd, file->name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	n = fd < 0 ? -errno
		   : fd_read_all(fd, search->text, (size_t)PUBLISH_MAX + 1);
	if (n < 0) {
		search->unread++;
		return 0;
	}
	if (n > (ssize_t)PUBLISH_MAX) {
		search->too_large++;
		return 0;
	}
	if (memchr(search->text, '\0', (size_t)(n < NUL_SEEN ? n : NUL_SEEN)))
		return 0;
	return search_text(search, file, (size_t)n);
}

/* ---- either ---- */

static void
note(const struct search *search, uint64_t n, const char *what)
{
	if (n > 0 && !search->verb->options->common.quiet)
		cli_error("note: %llu %s", (unsigned long long)n, what);
}

static void
search_fini(struct search *search)
{
	rules_free(search->globs);
	pcre2_code_free(search->code);
	pcre2_match_data_free(search->match);
	pcre2_match_context_free(search->context);
	free(search->text);
}

/* Below the operand, or in it, when it is a file. */
static int
search_below(struct search *search, struct fs_walk *walk, const char *operand)
{
	_cleanup_(target_fini) struct target target = TARGET_NONE;
	struct fs_verb *verb = search->verb;
	_cleanup_(freep) char *path = NULL;
	_cleanup_(closep) int fd = -1;
	struct stat st = { .st_mode = 0 };
	int r = fs_verb_find(verb, operand ? operand : ".", &path, &target,
			     &st);

	if (r != 0)
		return r;
	search->start = operand ? operand : "";
	if (S_ISREG(st.st_mode)) {
		const struct fs_file file = { .dirfd = target.dirfd,
					      .name = target.name,
					      .path = operand,
					      .st = &st };

		search->start = "";
		r = walk->file(search, &file);
		return r > 0 ? 0 : r;
	}
	fd = openat(target.dirfd, target.name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : fs_walk(walk, path, fd);
	if (r < 0)
		return fsfail_errno(&verb->fail, r, "search",
				    operand ? operand : ".");
	return 0;
}

static int
search_all(struct search *search, struct fs_walk *walk, const char *operand)
{
	struct fs_verb *verb = search->verb;
	int r;

	search->max = verb->options->max ? verb->options->max : LIMIT_LIST_ROWS;
	walk->verb = verb;
	walk->no_ignore = verb->options->no_ignore;
	walk->data = search;
	r = search_below(search, walk, operand);
	if (r < 0)
		return fs_verb_failed(verb, operand ? operand : ".");
	if (search->cut)
		note(search, search->found, "found, and more; --max shows it");
	note(search, search->too_large, "files of more than 16 MiB left out");
	note(search, search->too_long,
	     "files left out from where the pattern took too long");
	note(search, search->unread + walk->unread,
	     "files and directories could not be read");
	return 0;
}

int
fs_run_glob(struct fs_verb *verb, char **operands)
{
	_cleanup_(search_fini) struct search search = { .verb = verb };
	struct fs_walk walk = { .file = glob_file };

	if (take_glob(&search, operands[0]) < 0)
		return FS_EXIT_USAGE;
	return search_all(&search, &walk, operands[1]);
}

int
fs_run_grep(struct fs_verb *verb, char **operands)
{
	_cleanup_(search_fini) struct search search = { .verb = verb };
	struct fs_walk walk = { .file = grep_file };

	if (compile(&search, operands[0]) < 0 ||
	    (verb->options->glob &&
	     take_glob(&search, verb->options->glob) < 0))
		return FS_EXIT_USAGE;
	return search_all(&search, &walk, operands[1]);
}
