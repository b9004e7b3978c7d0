/* SPDX-License-Identifier: MIT */

/*
 * mount -t fuse.pale WORKSPACE MOUNTPOINT -o mode=…, and the fstab line.
 *
 * mount(8) runs mount.fuse.pale SPEC DIR [-sfnvrw] [-N NS] [-t TYPE]
 * [-o OPTIONS].  Its options are words of three kinds: ours, what concerns
 * mount(8) alone, and what every mount of ours is or cannot be changed by.
 * `ro` asks for the mode, not for the kernel's flag: that one would refuse
 * before the fence sees the call, and nothing would be on record.
 */

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/host_world.h"

/* mount(8)'s exit status for a mount that failed, and for wrong usage. */
#define STATUS_FAILED 32
#define STATUS_USAGE  1

enum word_kind {
	WORD_STRING, /* const char * of the request */
	WORD_LIST,   /* one more item */
	WORD_NOTHING,
};

struct word {
	const char *name;
	enum word_kind kind;
	size_t offset;
};

#define AT(field) offsetof(struct policy_request, field)

static const struct word words[] = {
	{ "mode", WORD_STRING, AT(mode) },
	{ "session", WORD_STRING, AT(session) },
	{ "preset", WORD_STRING, AT(preset) },
	{ "config", WORD_STRING, AT(config_path) },
	{ "hide", WORD_LIST, AT(hide) },
	{ "protect", WORD_LIST, AT(protect) },
	{ "allow", WORD_LIST, AT(allow) },
	/* For mount(8) and the system's start. */
	{ "defaults", WORD_NOTHING, 0 },
	{ "auto", WORD_NOTHING, 0 },
	{ "noauto", WORD_NOTHING, 0 },
	{ "nofail", WORD_NOTHING, 0 },
	{ "_netdev", WORD_NOTHING, 0 },
	{ "user", WORD_NOTHING, 0 },
	{ "nouser", WORD_NOTHING, 0 },
	{ "users", WORD_NOTHING, 0 },
	{ "owner", WORD_NOTHING, 0 },
	{ "group", WORD_NOTHING, 0 },
	{ "comment", WORD_NOTHING, 0 },
	/* What a mount of ours is anyhow, or is not. */
	{ "rw", WORD_NOTHING, 0 },
	{ "exec", WORD_NOTHING, 0 },
	{ "suid", WORD_NOTHING, 0 },
	{ "nosuid", WORD_NOTHING, 0 },
	{ "dev", WORD_NOTHING, 0 },
	{ "nodev", WORD_NOTHING, 0 },
	{ "async", WORD_NOTHING, 0 },
	{ "atime", WORD_NOTHING, 0 },
	{ "noatime", WORD_NOTHING, 0 },
	{ "relatime", WORD_NOTHING, 0 },
	{ "allow_other", WORD_NOTHING, 0 },
	{ "default_permissions", WORD_NOTHING, 0 },
};

#define N_WORDS (sizeof(words) / sizeof(words[0]))

static const struct cli_usage usage = {
	.command = "mount.fuse.pale",
	.synopsis = "WORKSPACE MOUNTPOINT [-o OPTIONS]",
	.about = "The helper of: mount -t fuse.pale WORKSPACE MOUNTPOINT -o "
		 "OPTIONS.\n"
		 "Options: mode=, session=, preset=, config=, hide=, "
		 "protect=, allow=, ro.",
	.usage_status = STATUS_USAGE,
};

static const struct word *
find_word(const char *name)
{
	for (size_t i = 0; i < N_WORDS; i++)
		if (strcmp(words[i].name, name) == 0)
			return &words[i];
	return NULL;
}

static int
take_word(struct policy_request *request, char *text)
{
	char *value = strchr(text, '=');
	const struct word *word;
	void *field;

	if (value)
		*value++ = '\0';
	if (strncmp(text, "x-", 2) == 0 || !*text)
		return 0;
	if (strcmp(text, "ro") == 0) {
		if (!request->mode)
			request->mode = "read-only";
		return 0;
	}
	word = find_word(text);
	if (!word)
		return cli_usage_error(&usage, "unknown option '%s'", text);
	field = (char *)request + word->offset;
	if (word->kind != WORD_NOTHING && (!value || !*value))
		return cli_usage_error(&usage, "%s= needs a value", text);
	if (word->kind == WORD_STRING)
		*(const char **)field = value;
	else if (word->kind == WORD_LIST && strv_add(field, value) < 0)
		return cli_usage_error(&usage, "out of memory");
	return 0;
}

/* Splits at commas; a backslash keeps the next byte ("hide=a\,b"). */
static int
take_options(struct policy_request *request, char *options)
{
	char *to = options, *word = options;

	for (char *at = options;; at++) {
		bool end = *at == '\0';

		if (*at == '\\' && at[1]) {
			*to++ = *++at;
			continue;
		}
		if (!end && *at != ',') {
			*to++ = *at;
			continue;
		}
		*to++ = '\0';
		if (take_word(request, word) != 0)
			return STATUS_USAGE;
		if (end)
			return 0;
		word = to;
	}
}

static int
mount_it(const struct policy_request *request, const char *mountpoint)
{
	_cleanup_(policy_unrefp) struct policy *policy = NULL;
	struct host_world world = { .request = request,
				    .mountpoint = mountpoint };
	struct errmsg why = { "" };

	if (policy_resolve(request, &policy, &why) == 0) {
		world.policy = policy;
		if (host_world_start(&world, &why) == 0)
			return 0;
	}
	cli_error("%s", why.text);
	return STATUS_FAILED;
}

/* Returns the first operand's index, or −1 after telling what is wrong. */
static int
parse(int argc, char **argv, struct policy_request *request, bool *ret_fake)
{
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt(argc, argv, "sfnvrwhN:t:o:")) != -1) {
		if (c == '?') {
			(void)cli_usage_error(&usage, "unknown option '-%c'",
					      optopt);
			return -1;
		}
		if (c == 'f')
			*ret_fake = true;
		if (c == 'r' && !request->mode)
			request->mode = "read-only";
		if (c == 'o' && take_options(request, optarg) != 0)
			return -1;
	}
	if (argc - optind != 2) {
		(void)cli_usage_error(&usage, "a WORKSPACE and a MOUNTPOINT");
		return -1;
	}
	return optind;
}

int
cmd_mount_fuse(int argc, char **argv)
{
	struct cli_policy_options options = CLI_POLICY_INIT;
	const struct cli_group none[] = { { 0 } };
	bool fake = false;
	int first, status = STATUS_USAGE;

	if (argc > 1 &&
	    (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)) {
		cli_usage_print(&usage, none);
		return 0;
	}
	first = parse(argc, argv, &options.request, &fake);
	if (first > 0) {
		options.request.workspace = argv[first];
		status = fake ? 0 : mount_it(&options.request, argv[first + 1]);
	}
	cli_policy_fini(&options);
	return status;
}
