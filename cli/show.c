/* SPDX-License-Identifier: MIT */

#include "cli/show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/records.h"

void
show_safe(struct buf *out, const char *text)
{
	escape_controls(out, text, strlen(text));
}

void
show_row_begin(struct buf *out, char letter, uint64_t id, int64_t since_ns,
	       char *line)
{
	time_t seconds = (time_t)(since_ns / 1000000000);
	char *cut = strstr(line, " since ");
	char text[32] = "";
	struct tm tm;

	if (cut)
		*cut = '\0';
	if (localtime_r(&seconds, &tm))
		(void)strftime(text, sizeof(text), "%F %T", &tm);
	buf_putf(out, "%c%-6llu  %-19s  %-15.40s  ", letter,
		 (unsigned long long)id, text, line);
}

void
show_row_command(struct buf *out, const char *name, const char *label)
{
	if (name) {
		show_safe(out, name);
		buf_puts(out, ": ");
	}
	show_safe(out, label);
}

int
show_row_end(struct buf *out)
{
	buf_puts(out, "\n");
	if (buf_error(out) < 0)
		return -ENOMEM;
	(void)fwrite(out->data, 1, out->len, stdout);
	return 0;
}

static void
show_value(const char *key, const json_t *value)
{
	_cleanup_(buf_fini) struct buf out = { 0 };
	_cleanup_(freep) char *text = NULL;

	if (json_is_string(value)) {
		show_safe(&out, json_string_value(value));
	} else {
		text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		show_safe(&out, text ? text : "");
	}
	printf("%s: %.*s\n", key, (int)out.len, (const char *)out.data);
}

int
show_members(const struct buf *json)
{
	const json_t *value;
	const char *key;
	json_t *object = buf_error(json) < 0
				 ? NULL
				 : json_loadb((const char *)json->data,
					      json->len, 0, NULL);

	if (!object)
		return RECORD_EXIT_FAILED;
	json_object_foreach(object, key, value)
	{
		/* Its argv says it better; its env is long. */
		if (strcmp(key, "command") != 0 && strcmp(key, "env") != 0 &&
		    !json_is_null(value))
			show_value(key, value);
	}
	json_decref(object);
	return 0;
}

int
show_line(const char *prefix, const char *line)
{
	_cleanup_(buf_fini) struct buf out = { 0 };

	show_safe(&out, line);
	if (buf_error(&out) < 0)
		return RECORD_EXIT_FAILED;
	printf("%s", prefix);
	(void)fwrite(out.data, 1, out.len, stdout);
	putchar('\n');
	return 0;
}

int
show_started(const struct cli_common *common, const json_t *result)
{
	const char *id = json_string_value(json_object_get(result, "id"));
	const char *state = json_string_value(json_object_get(result, "state"));
	const char *line = json_string_value(json_object_get(result, "status"));

	if (common->json) {
		if (json_dumpf(result, stdout, JSON_COMPACT) < 0)
			return RECORD_EXIT_FAILED;
		putchar('\n');
	} else {
		puts(id ? id : "");
	}
	if (!common->quiet && state && strcmp(state, "failed") == 0)
		cli_error("%s %s", id, line);
	return 0;
}
