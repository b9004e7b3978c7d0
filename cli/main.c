/* SPDX-License-Identifier: MIT */

/*
 * pale: finds the command and calls it.
 *
 * mount(8) runs the type's helper as `mount.fuse.pale`, a link to this binary;
 * argv[0] then names the command.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "warden/warden.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	bool hidden;
	const char *summary;
};

static const struct command commands[] = {
#define X(name, fn, hidden, summary) { name, fn, hidden, summary },
	CLI_COMMANDS(X)
#undef X
};

int
cmd_warden(int argc, char **argv)
{
	return warden_main(argc, argv);
}

static const struct command *
find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static void
print_usage(void)
{
	puts("usage: pale [-H HOST] COMMAND [options] [--] ...\n\n"
	     "Runs programs in a fenced workspace and keeps a record of every "
	     "refusal.\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!commands[i].hidden)
			printf("  %-10s%s\n", commands[i].name,
			       commands[i].summary);
	puts("\n  -H, --host ssh://[user@]host[:port]\n"
	     "              run the command there\n"
	     "\nSee pale COMMAND --help, and pale(1).");
}

/*
 * A descriptor that the caller closed would be given to the first file that we
 * open, and what is written to stdout would land there.  The stand-in fails
 * as a closed one does: it cannot be written to (0: read from).
 */
static void
hold_stdio(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

/* A full disk behind stdout is told, whatever the command printed. */
static int
finish(int status)
{
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == 0) {
		cli_error("cannot write the output: %s", strerror(errno));
		return 1;
	}
	return status;
}

/* -H ssh://[user@]host[:port], before the command: it runs there. */
static const char *
remote_host(int argc, char **argv, int *ret_first)
{
	*ret_first = 1;
	if (argc > 2 &&
	    (strcmp(argv[1], "-H") == 0 || strcmp(argv[1], "--host") == 0)) {
		*ret_first = 3;
		return argv[2];
	}
	if (argc > 1 && strncmp(argv[1], "--host=", 7) == 0) {
		*ret_first = 2;
		return argv[1] + 7;
	}
	return NULL;
}

int
main(int argc, char **argv)
{
	const char *self = argc > 0 ? strrchr(argv[0], '/') : NULL;
	const struct command *command;
	const char *host;
	int first;

	hold_stdio();
	self = self ? self + 1 : argc > 0 ? argv[0] : "pale";
	if (strcmp(self, "mount.fuse.pale") == 0)
		return finish(cmd_mount_fuse(argc, argv));

	host = remote_host(argc, argv, &first);
	if (host)
		return remote_run(host, argv + first);
	if (argc < 2) {
		fputs("pale: no command; see pale --help\n", stderr);
		return 2;
	}
	if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		print_usage();
		return finish(0);
	}
	if (strcmp(argv[1], "--version") == 0)
		return finish(cmd_version(1, argv + 1));

	command = find_command(argv[1]);
	if (!command) {
		fprintf(stderr, "pale: no command '%s'; see pale --help\n",
			argv[1]);
		return 2;
	}
	return finish(command->run(argc - 1, argv + 1));
}
