/* SPDX-License-Identifier: MIT */

/*
 * The warden's command line is written by pale itself, never typed; it is
 * checked all the same, since everything later trusts it.
 */

#include "warden/warden_priv.h"

#include <fcntl.h>
#include <getopt.h>
#include <string.h>

#include "base/units.h"

enum option_kind {
	OPTION_FD,
	OPTION_TEXT,
	OPTION_NUMBER,
	OPTION_FLAG
};

struct option_row {
	const char *name;
	enum option_kind kind;
	size_t offset;
};

#define AT(field) offsetof(struct warden_options, field)

static const struct option_row rows[] = {
	{ "policy-fd", OPTION_FD, AT(policy_fd) },
	{ "policy-here", OPTION_FLAG, AT(policy_here) },
	{ "world-fd", OPTION_FD, AT(world_fd) },
	{ "keeper-fd", OPTION_FD, AT(keeper_fd) },
	{ "client-fd", OPTION_FD, AT(client_fd) },
	{ "guard-fd", OPTION_FD, AT(guard_fd) },
	{ "world", OPTION_TEXT, AT(world) },
	{ "socket-dir", OPTION_TEXT, AT(socket_dir) },
	{ "state-dir", OPTION_TEXT, AT(state_dir) },
	{ "mountpoint", OPTION_TEXT, AT(mountpoint) },
	{ "call", OPTION_TEXT, AT(call) },
	{ "own-mounts", OPTION_FLAG, AT(own_mounts) },
	{ "standing", OPTION_FLAG, AT(standing) },
	{ "passthrough", OPTION_FLAG, AT(passthrough) },
	{ "for-mount", OPTION_FLAG, AT(for_mount) },
	{ "idle-ms", OPTION_NUMBER, AT(idle_ms) },
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

/* A descriptor that is open, close-on-exec from now on. */
static int
parse_fd(const char *text, int *ret_fd)
{
	char *end;
	long fd;

	errno = 0;
	fd = strtol(text, &end, 10);
	if (errno || end == text || *end || fd < 3 || fd > 1 << 20)
		return -EINVAL;
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	*ret_fd = (int)fd;
	return 0;
}

static int
store(struct warden_options *opt, const struct option_row *row,
      const char *value, struct errmsg *why)
{
	char *field = (char *)opt + row->offset;
	int r;

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)field = value;
		return 0;
	case OPTION_NUMBER:
		r = units_number(value, (uint64_t *)field);
		break;
	case OPTION_FD:
		r = parse_fd(value, (int *)field);
		break;
	default:
		r = -EINVAL;
	}
	if (r < 0)
		return errmsg_set(why, r, "warden: --%s '%s': %s", row->name,
				  value, strerror(-r));
	return 0;
}

/* The id becomes a name in two directories. */
static bool
is_world_id(const char *id)
{
	size_t len = strlen(id);

	return len >= 4 && len <= 32 &&
	       strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") == len;
}

static int
check(const struct warden_options *opt, struct errmsg *why)
{
	if (!opt->world || !is_world_id(opt->world))
		return errmsg_set(why, -EINVAL,
				  "warden: --world must be an id");
	if ((opt->policy_fd < 0 && !opt->policy_here) || opt->world_fd < 0 ||
	    opt->keeper_fd < 0)
		return errmsg_set(why, -EINVAL,
				  "warden: --policy-fd, --world-fd and "
				  "--keeper-fd are needed");
	return 0;
}

int
warden_options_parse(int argc, char **argv, struct warden_options *ret_opt,
		     struct errmsg *why)
{
	struct warden_options opt = { .policy_fd = -1,
				      .world_fd = -1,
				      .keeper_fd = -1,
				      .client_fd = -1,
				      .guard_fd = -1 };
	struct option longs[N_ROWS + 1] = { 0 };
	int index, r;

	for (size_t i = 0; i < N_ROWS; i++) {
		longs[i].name = rows[i].name;
		longs[i].has_arg = rows[i].kind == OPTION_FLAG
					   ? no_argument
					   : required_argument;
	}

	opterr = 0;
	optind = 0;
	while ((r = getopt_long(argc, argv, "", longs, &index)) != -1) {
		if (r != 0)
			return errmsg_set(why, -EINVAL,
					  "warden: bad option '%s'",
					  argv[optind - 1]);
		r = store(&opt, &rows[index], optarg, why);
		if (r < 0)
			return r;
	}
	if (optind != argc)
		return errmsg_set(why, -EINVAL, "warden: '%s' is no option",
				  argv[optind]);
	r = check(&opt, why);
	if (r < 0)
		return r;
	*ret_opt = opt;
	return 0;
}
