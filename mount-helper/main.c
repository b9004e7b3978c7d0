/* SPDX-License-Identifier: MIT */

/*
 * pale-mount-helper: makes one world from a plan and keeps it.
 *
 * Started by pale and by nobody else; what it shall do is in the plan, which is
 * decoded and checked again here.  Static and libc only: it is started before
 * every command.  With `enter` it is the way into a world that stands.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "mount-helper/enter.h"
#include "mount-helper/helper.h"
#include "mount-helper/steps.h"

static int
parse_fd(const char *text)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (*end || end == text || fd < 0 || fd > INT_MAX ||
	    fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	return (int)fd;
}

static bool
parse_arguments(int argc, char **argv, struct helper *h, int *ret_plan_fd)
{
	struct {
		const char *name;
		int *fd;
	} const rows[] = {
		{ "--plan-fd", ret_plan_fd },
		{ "--control-fd", &h->control },
		{ "--warden-fd", &h->warden_sock },
		{ "--world-fd", &h->world_sock },
	};

	for (int i = 1; i < argc; i++) {
		bool known = false;

		if (strcmp(argv[i], "--require-limits") == 0) {
			h->require_limits = true;
			continue;
		}
		if (strcmp(argv[i], "--require-full") == 0) {
			h->require_full = true;
			continue;
		}
		if (strcmp(argv[i], "--warden-pid") == 0 && i + 1 < argc) {
			h->warden = (pid_t)strtol(argv[++i], NULL, 10);
			if (h->warden <= 0)
				return false;
			continue;
		}
		for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++) {
			if (strcmp(argv[i], rows[j].name) != 0 || i + 1 >= argc)
				continue;
			*rows[j].fd = parse_fd(argv[++i]);
			known = *rows[j].fd >= 0;
			break;
		}
		if (!known)
			return false;
	}
	return *ret_plan_fd >= 0 && h->control >= 0;
}

/* What the caller of pale left open is none of the world's. */
static void
close_strays(const struct helper *h, int plan_fd)
{
	int keep[] = { plan_fd, h->control, h->warden_sock, h->world_sock };

	(void)fd_close_others(3, keep, sizeof(keep) / sizeof(keep[0]));
}

static int
read_plan(int fd, struct plan *ret_plan, struct errmsg *why)
{
	_cleanup_(freep) char *bytes = NULL;
	size_t len;
	int r;

	r = step_setup(why);
	if (r < 0)
		return r;
	r = step_begin(STEP_PLAN, why);
	if (r < 0)
		return r;
	r = fd_read_file(fd, LIMIT_PLAN_BYTES, &bytes, &len);
	if (r < 0)
		return errmsg_set(why, r, "cannot read the mount plan: %s",
				  strerror(-r));
	return plan_decode(bytes, len, ret_plan, why);
}

int
main(int argc, char **argv)
{
	struct helper h = { .control = -1,
			    .warden_sock = -1,
			    .world_sock = -1,
			    .init_sock = -1,
			    .ruleset = -1 };
	struct errmsg why = { "" };
	int plan_fd = -1, r;

	stdfiles_init(&h.stdfiles);
	namespaces_init(&h.namespaces);
	if (argc == 2 && strcmp(argv[1], "--list-steps") == 0) {
		for (int i = 0; i < STEP_COUNT; i++)
			puts(step_name((enum step)i));
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "enter") == 0)
		return enter_main(argc - 1, argv + 1);
	if (!parse_arguments(argc, argv, &h, &plan_fd)) {
		fputs("pale-mount-helper: started by pale, not by people\n",
		      stderr);
		return 125;
	}
	close_strays(&h, plan_fd);
	r = read_plan(plan_fd, &h.plan, &why);
	(void)close(plan_fd);
	if (r < 0) {
		(void)wire_send_failed(h.control, r, &why);
		return 125;
	}
	return keeper_run(&h);
}
