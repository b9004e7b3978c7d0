/* SPDX-License-Identifier: MIT */

/* pale fs write, and pale fs edit */

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/fs.h"
#include "fusefs/textedit.h"

#define EDITS_MAX 10000

/* ---- both ---- */

static int
prepare(struct fs_verb *verb, const char *operand, char **ret_path)
{
	const char *expect = verb->options->expect;
	int r;

	if (expect && !version_is_valid(expect))
		return fsfail_set(&verb->fail, FSFAIL_STALE_VERSION,
				  "'%s' is no version; pale fs version tells "
				  "that of a file",
				  expect);
	r = fs_verb_locate(verb, operand, ret_path);
	return r < 0 ? r : fs_verb_make_journals(verb);
}

static int
print_result(const struct fs_verb *verb, const char *path,
	     const struct publish_result *result, size_t replaced)
{
	struct buf out = { 0 };

	if (!verb->options->common.json) {
		puts(result->version.text);
		return 0;
	}
	jsonw_begin(&out, '{');
	jsonw_pair(&out, "path", path);
	jsonw_pair(&out, "version", result->version.text);
	jsonw_pair_bool(&out, "created", result->created);
	jsonw_pair_uint(&out, "size", result->size);
	if (replaced > 0)
		jsonw_pair_uint(&out, "replaced", replaced);
	jsonw_end(&out, '}');
	return cli_print_json(&out) < 0 ? fsfail_status(FSFAIL_IO_ERROR) : 0;
}

/* All that comes, if it is at most 16 MiB. */
static int
read_input(struct fs_verb *verb, const char *name, char **ret_data,
	   size_t *ret_len)
{
	bool is_stdin = strcmp(name, "-") == 0;
	_cleanup_(closep) int fd =
		is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
			 : open(name, O_RDONLY | O_CLOEXEC);
	_cleanup_(freep) char *data = malloc((size_t)PUBLISH_MAX + 1);
	ssize_t n;

	if (fd < 0)
		return fsfail_errno(&verb->fail, -errno, "read", name);
	if (!data)
		return fsfail_errno(&verb->fail, -ENOMEM, "read", name);
	n = fd_read_all(fd, data, (size_t)PUBLISH_MAX + 1);
	if (n < 0)
		return fsfail_errno(&verb->fail, (int)n, "read", name);
	if (n > (ssize_t)PUBLISH_MAX)
		return fsfail_set(&verb->fail, FSFAIL_TOO_LARGE,
				  "what '%s' says is more than 16 MiB; write "
				  "it with a program instead",
				  name);
	*ret_data = take_ptr(&data);
	*ret_len = (size_t)n;
	return 0;
}

/* ---- write ---- */

static int
give(void *data, const struct publish_old *old, struct publish_old *ret_new,
     struct fsfail *fail)
{
	const struct publish_old *content = data;

	(void)old;
	(void)fail;
	*ret_new = *content;
	return 0;
}

int
fs_run_write(struct fs_verb *verb, char **operands)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(freep) char *data = NULL;
	struct publish_old content = { NULL, 0 };
	struct publish_result result = { .created = false };
	int r = prepare(verb, operands[0], &path);

	if (r == 0)
		r = read_input(verb, operands[1], &data, &content.len);
	content.data = data;
	if (r == 0 && verb->options->text &&
	    !textedit_is_text(data, content.len))
		r = fsfail_set(&verb->fail, FSFAIL_NOT_TEXT,
			       "what '%s' says is not text (UTF-8 without NUL)",
			       operands[1]);
	if (r == 0) {
		const struct publish_request request = {
			.policy = verb->policy,
			.path = path,
			.expect = verb->options->expect,
			.journals = verb->journals,
			.make_parents = verb->options->make_parents,
			.make = give,
			.data = &content,
		};

		r = publish(&request, &result, &verb->fail);
	}
	if (r < 0)
		return fs_verb_failed(verb, operands[0]);
	return print_result(verb, path, &result, 0);
}

/* ---- edit ---- */

struct edits {
	struct textedit *items;
	size_t count;
	bool text_only;
	const char *path;
	json_t *json; /* owner of the texts; NULL: the command line */
	struct buf texts[2];
	size_t replaced;
};

static void
edits_fini(struct edits *edits)
{
	free(edits->items);
	json_decref(edits->json);
	buf_fini(&edits->texts[0]);
	buf_fini(&edits->texts[1]);
}

static int
not_applied(const struct edits *edits, size_t i, size_t count, int r,
	    struct fsfail *fail)
{
	char which[40] = "";

	fail->edit = i;
	fail->count = count;
	if (edits->count > 1)
		(void)snprintf(which, sizeof(which), " of edit %zu", i + 1);
	if (r == -ENOENT)
		return fsfail_set(fail, FSFAIL_EDIT_NOT_FOUND,
				  "the old text%s is not in '%s'; re-read the "
				  "file and give it exactly",
				  which, edits->path);
	if (r == -ENOTUNIQ)
		return fsfail_set(fail, FSFAIL_AMBIGUOUS_EDIT,
				  "the old text%s is in '%s' %zu times; give "
				  "more of it, or replace --all",
				  which, edits->path, count);
	if (r == -EFBIG)
		return fsfail_set(fail, FSFAIL_TOO_LARGE,
				  "'%s' would become larger than 16 MiB",
				  edits->path);
	return fsfail_errno(fail, r, "edit", edits->path);
}

static int
apply(void *data, const struct publish_old *old, struct publish_old *ret_new,
      struct fsfail *fail)
{
	struct edits *edits = data;
	const void *text = old->data;
	size_t len = old->len, count;
	int r;

	if (edits->text_only && !textedit_is_text(text, len))
		return fsfail_set(fail, FSFAIL_NOT_TEXT,
				  "'%s' is not text (UTF-8 without NUL); edit "
				  "it by bytes, without --text and --edits",
				  edits->path);
	edits->replaced = 0;
	for (size_t i = 0; i < edits->count; i++) {
		struct buf *out = &edits->texts[i % 2];

		buf_fini(out);
		*out = (struct buf){ 0 };
		r = textedit_apply(&edits->items[i], text, len, PUBLISH_MAX,
				   out, &count);
		if (r < 0)
			return not_applied(edits, i, count, r, fail);
		edits->replaced += count;
		text = out->data;
		len = out->len;
	}
	*ret_new = (struct publish_old){ text, len };
	return 0;
}

static bool
edit_of_json(const json_t *json, struct textedit *ret_edit)
{
	const json_t *old = json_object_get(json, "old");
	const json_t *new = json_object_get(json, "new");
	const json_t *all = json_object_get(json, "all");

	if (!json_is_string(old) || !json_is_string(new) ||
	    (all && !json_is_boolean(all)))
		return false;
	*ret_edit = (struct textedit){ .old = json_string_value(old),
				       .new = json_string_value(new),
				       .old_len = json_string_length(old),
				       .new_len = json_string_length(new),
				       .all = json_is_true(all) };
	return true;
}

static int
load_edits(struct fs_verb *verb, const char *name, struct edits *edits)
{
	_cleanup_(freep) char *text = NULL;
	json_error_t error;
	size_t len = 0;
	int r = read_input(verb, name, &text, &len);

	if (r < 0)
		return r;
	edits->json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	edits->count = json_array_size(edits->json);
	if (edits->count == 0 || edits->count > EDITS_MAX)
		return fsfail_set(&verb->fail, FSFAIL_EDIT_NOT_FOUND,
				  "'%s' is not a list of edits: "
				  "[{\"old\": \"…\", \"new\": \"…\", "
				  "\"all\": false}, …]",
				  name);
	edits->items = calloc(edits->count, sizeof(*edits->items));
	if (!edits->items)
		return fsfail_errno(&verb->fail, -ENOMEM, "read", name);
	for (size_t i = 0; i < edits->count; i++)
		if (!edit_of_json(json_array_get(edits->json, i),
				  &edits->items[i]))
			return fsfail_set(&verb->fail, FSFAIL_EDIT_NOT_FOUND,
					  "edit %zu of '%s' has no texts "
					  "\"old\" and \"new\"",
					  i + 1, name);
	edits->text_only = true;
	return 0;
}

static int
take_edits(struct fs_verb *verb, struct edits *edits)
{
	const struct fs_options *options = verb->options;

	edits->text_only = options->text;
	if (options->edits)
		return load_edits(verb, options->edits, edits);
	edits->items = calloc(1, sizeof(*edits->items));
	if (!edits->items)
		return fsfail_errno(&verb->fail, -ENOMEM, "edit", edits->path);
	edits->count = 1;
	edits->items[0] = (struct textedit){ .old = options->old,
					     .new = options->new,
					     .old_len = strlen(options->old),
					     .new_len = strlen(options->new),
					     .all = options->all };
	return 0;
}

int
fs_run_edit(struct fs_verb *verb, char **operands)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(edits_fini) struct edits edits = { .path = operands[0] };
	struct publish_result result = { .created = false };
	int r = prepare(verb, operands[0], &path);

	if (r == 0)
		r = take_edits(verb, &edits);
	if (r == 0) {
		const struct publish_request request = {
			.policy = verb->policy,
			.path = path,
			.expect = verb->options->expect,
			.journals = verb->journals,
			.is_edit = true,
			.make = apply,
			.data = &edits,
		};

		r = publish(&request, &result, &verb->fail);
	}
	if (r < 0)
		return fs_verb_failed(verb, operands[0]);
	return print_result(verb, path, &result, edits.replaced);
}
