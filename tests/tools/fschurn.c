/* SPDX-License-Identifier: MIT */

/*
 * Does anything to a few names, as fast as it can: several of these at once,
 * inside and outside, are how a filesystem meets its races.
 *
 *	fschurn DIR MILLISECONDS SEED
 *
 * Prints how often each errno came, "NAME COUNT" a line, and "calls COUNT".
 */

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define FILES	  8
#define ERRNO_MAX 200
#define BYTES	  9000

struct churn {
	unsigned int seed;
	long calls, errors[ERRNO_MAX];
	int fds[FILES];
	char a[64], b[64]; /* two names, picked anew for each call */
};

static unsigned int
pick(struct churn *churn, unsigned int n)
{
	return (unsigned int)rand_r(&churn->seed) % n;
}

static void
pick_name(struct churn *churn, char name[64])
{
	unsigned int depth = pick(churn, 3);
	size_t at = 0;

	for (unsigned int i = 0; i < depth; i++)
		at += (size_t)snprintf(name + at, 64 - at, "d%u/",
				       pick(churn, 3));
	(void)snprintf(name + at, 64 - at, "%s%u", pick(churn, 3) ? "f" : "d",
		       pick(churn, 4));
}

static void
count(struct churn *churn, long result)
{
	churn->calls++;
	if (result < 0)
		churn->errors[errno]++;
}

static void
open_one(struct churn *churn, int *fd)
{
	int flags = O_CREAT | O_RDWR | O_CLOEXEC |
		    (pick(churn, 2) ? O_TRUNC : 0) |
		    (pick(churn, 4) ? 0 : O_APPEND);
	int opened = open(churn->a, flags, 0644);

	count(churn, opened);
	if (opened < 0)
		return;
	if (*fd >= 0)
		(void)close(*fd);
	*fd = opened;
}

static void
list(struct churn *churn)
{
	DIR *dir = opendir(pick(churn, 2) ? "." : churn->a);

	count(churn, dir ? 0 : -1);
	if (!dir)
		return;
	while (readdir(dir))
		;
	(void)closedir(dir);
}

static void
map(int fd)
{
	void *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at != MAP_FAILED)
		(void)munmap(at, 8192);
}

static void
by_name(struct churn *churn, unsigned int what)
{
	static const unsigned int rename_flags[] = { 0, 0, RENAME_EXCHANGE,
						     RENAME_NOREPLACE };
	char target[256];
	struct stat st;

	switch (what) {
	case 0:
		count(churn, mkdir(churn->a, 0755));
		break;
	case 1:
	case 2:
		count(churn,
		      syscall(SYS_renameat2, AT_FDCWD, churn->a, AT_FDCWD,
			      churn->b, rename_flags[pick(churn, 4)]));
		break;
	case 3:
		count(churn, link(churn->a, churn->b));
		break;
	case 4:
		count(churn, unlink(churn->a));
		break;
	case 5:
		count(churn, rmdir(churn->a));
		break;
	case 6:
		count(churn, lstat(churn->a, &st));
		break;
	case 7:
		/* An ordinary user is soon shut out of everything else. */
		count(churn, chmod(churn->a, (pick(churn, 8) ? 0700 : 0600) +
						     pick(churn, 0100)));
		break;
	case 8:
		count(churn, truncate(churn->a, pick(churn, 2 * BYTES)));
		break;
	case 9:
		count(churn, symlink(churn->b, churn->a));
		break;
	case 10:
		count(churn, readlink(churn->a, target, sizeof(target)));
		break;
	default:
		list(churn);
		break;
	}
}

static void
by_handle(struct churn *churn, unsigned int what, int *fd)
{
	char bytes[BYTES] = { 0 };
	struct stat st;

	switch (what) {
	case 0:
		count(churn, write(*fd, bytes, pick(churn, BYTES)));
		break;
	case 1:
		count(churn, pread(*fd, bytes, BYTES, pick(churn, BYTES)));
		break;
	case 2:
		count(churn, fstat(*fd, &st));
		break;
	case 3:
		count(churn, ftruncate(*fd, pick(churn, BYTES)));
		break;
	case 4:
		count(churn, fchmod(*fd, 0600 + pick(churn, 0100)));
		break;
	case 5:
		map(*fd);
		break;
	default:
		(void)close(*fd);
		*fd = -1;
		break;
	}
}

int
main(int argc, char **argv)
{
	struct churn churn = { 0 };
	int64_t end;

	if (argc != 4)
		errx(2, "usage: fschurn DIR MILLISECONDS SEED");
	if (chdir(argv[1]) < 0)
		err(1, "%s", argv[1]);
	churn.seed = (unsigned int)strtoul(argv[3], NULL, 10);
	for (int i = 0; i < FILES; i++)
		churn.fds[i] = -1;

	end = clock_mono_ns() + strtoll(argv[2], NULL, 10) * 1000000;
	while (clock_mono_ns() < end) {
		int *fd = &churn.fds[pick(&churn, FILES)];

		pick_name(&churn, churn.a);
		pick_name(&churn, churn.b);
		if (pick(&churn, 3))
			by_name(&churn, pick(&churn, 12));
		else if (*fd < 0 || pick(&churn, 4) == 0)
			open_one(&churn, fd);
		else
			by_handle(&churn, pick(&churn, 7), fd);
	}
	for (int i = 0; i < ERRNO_MAX; i++)
		if (churn.errors[i] > 0)
			printf("%s %ld\n", strerrorname_np(i), churn.errors[i]);
	printf("calls %ld\n", churn.calls);
	return 0;
}
