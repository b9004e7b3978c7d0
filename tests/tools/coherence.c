/* SPDX-License-Identifier: MIT */

/*
 * A host writer beside readers on the mount: is what is read after a barrier
 * what the disk says, and how long does a running reader wait for it.
 *
 *	coherence [-1xe] [-W how] [-M watches] [-r rounds] [-t] [-o n] [-s seed] DIR
 *
 * Starts fsmount on DIR/w and DIR/m.  -1: as in a world of an ordinary user.
 * Each round changes one thing on the host (create, remove, rename, replace,
 * write, truncate, append, chmod, link, directories), asks for a barrier, and
 * compares names, attributes and content, while three threads read all the
 * time.  -t: no barrier; says how long each change took to be seen.  -o: n times
 * more events than the kernel keeps come while the server is stopped.  -x: the
 * writer works through a second mount instead, on DIR/x.  -e: somebody watches
 * everything by inotify, which is told of all changes.
 */

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DIRS	2
#define NAMES	6
#define READERS 3
#define BYTES	4096
#define CHANGES                                                         \
	(IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVE | IN_CREATE | \
	 IN_DELETE | IN_DELETE_SELF)

static char host[512], mount[600], writer[600];
static bool second_mount; /* the writer works through another one */
static pid_t server, other_server;
static atomic_bool ending;
static atomic_ulong looks, told;
static unsigned long torn; /* stats that came while the kernel learnt */
static bool watched;

static unsigned int
pick(unsigned int *seed, unsigned int n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 12) % n;
}

static double
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
path_of(char *path, const char *top, unsigned int dir, unsigned int name)
{
	(void)snprintf(path, 700, "%s/d%u/n%u", top, dir, name);
}

/* ---- the server ---- */

struct pipes {
	int to;
	FILE *from;
};

/* `place`: where it is mounted, and then how to get there. */
static pid_t
start_server(char **options, char *place, struct pipes *ret_pipes)
{
	char line[256], binary[600], *argv[32], *tool = getenv("PALE_TOOLS");
	int to[2], from[2], n = 0, pid = 0;
	pid_t child;

	(void)snprintf(binary, sizeof(binary), "%s/fsmount",
		       tool ? tool : "build/tests/tools");
	argv[n++] = binary;
	while (*options)
		argv[n++] = *options++;
	argv[n++] = (char *)"-c";
	argv[n++] = (char *)"-m";
	argv[n++] = (char *)"workspace-write";
	argv[n++] = host;
	argv[n++] = place;
	argv[n] = NULL;
	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		err(1, "pipe");
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		(void)dup2(to[0], 0);
		(void)dup2(from[1], 1);
		(void)execv(binary, argv);
		err(1, "%s", binary);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	ret_pipes->to = to[1];
	ret_pipes->from = fdopen(from[0], "r");
	if (!ret_pipes->from || !fgets(line, sizeof(line), ret_pipes->from) ||
	    sscanf(line, "ready %d", &pid) != 1)
		errx(1, "no server");
	if (pid > 0) {
		char inside[600];

		(void)snprintf(inside, sizeof(inside), "/proc/%d/root%.500s",
			       pid, place);
		memcpy(place, inside, sizeof(inside));
	}
	return child;
}

static struct pipes server_pipes;

static void
command(char letter, char *line, size_t size)
{
	if (write(server_pipes.to, &letter, 1) != 1 ||
	    !fgets(line, (int)size, server_pipes.from))
		errx(1, "the server is gone");
}

/* It gives up when a disk stands still for seconds, and says so. */
static void
barrier(void)
{
	char line[256];

	for (int i = 0; i < 10; i++) {
		command('b', line, sizeof(line));
		if (strcmp(line, "done\n") == 0)
			return;
		printf("late barrier\n");
	}
	errx(1, "no barrier");
}

static void
end_server(pid_t pid)
{
	int status;

	(void)kill(pid, SIGTERM);
	(void)waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		errx(1, "a server ended with %d", status);
}

/* ---- readers ---- */

static ssize_t
read_file(const char *path, char *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, BYTES);

	if (fd >= 0)
		(void)close(fd);
	return n;
}

static void
list(const char *path, unsigned int *ret_names)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	*ret_names = 0;
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] == 'n')
			*ret_names |= 1u << (entry->d_name[1] - '0');
	if (dir)
		(void)closedir(dir);
}

static void *
reader(void *data)
{
	unsigned int seed = (unsigned int)(uintptr_t)data;
	char path[700], bytes[BYTES];
	unsigned int names;
	struct stat st;

	while (!atomic_load(&ending)) {
		unsigned int dir = pick(&seed, DIRS);

		path_of(path, mount, dir, pick(&seed, NAMES));
		switch (pick(&seed, 4)) {
		case 0:
		case 1:
			(void)stat(path, &st);
			break;
		case 2:
			(void)read_file(path, bytes);
			break;
		default:
			*strrchr(path, '/') = '\0';
			list(path, &names);
			break;
		}
		atomic_fetch_add(&looks, 1);
	}
	return NULL;
}

/* Directories, and what is in them itself: what is replaced is watched anew. */
static void *
watcher(void *data)
{
	int fd = watched ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;
	const struct timespec nap = { .tv_nsec = 1000000 };
	char path[700], bytes[65536];
	ssize_t n;

	while (fd >= 0 && !atomic_load(&ending)) {
		for (unsigned int i = 0; i < DIRS * NAMES; i++) {
			path_of(path, mount, i % DIRS, i / DIRS);
			(void)inotify_add_watch(fd, path, CHANGES);
			*strrchr(path, '/') = '\0';
			(void)inotify_add_watch(fd, path, CHANGES);
		}
		(void)nanosleep(&nap, NULL);
		n = read(fd, bytes, sizeof(bytes));
		if (n > 0)
			atomic_fetch_add(&told,
					 (unsigned long)n /
						 sizeof(struct inotify_event));
	}
	if (fd >= 0)
		(void)close(fd);
	return data;
}

/* ---- the writer ---- */

static unsigned int version;

static void
put(const char *path, int flags, size_t size)
{
	char bytes[BYTES];
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);

	version++;
	for (size_t i = 0; i + sizeof(version) <= sizeof(bytes);
	     i += sizeof(version))
		memcpy(bytes + i, &version, sizeof(version));
	if (fd < 0)
		return;
	if (write(fd, bytes, size) < 0)
		err(1, "write");
	(void)close(fd);
}

static const char *
change(unsigned int *seed, unsigned int dir, unsigned int name)
{
	char path[700], other[700], temp[700];
	size_t size = (size_t)1024 * (1 + pick(seed, 4));
	int r = 0; /* what cannot be done is not done */

	path_of(path, writer, dir, name);
	path_of(other, writer, pick(seed, DIRS), pick(seed, NAMES));
	(void)snprintf(temp, sizeof(temp), "%s/d%u/.t", writer, dir);
	switch (pick(seed, 12)) {
	case 0:
	case 1:
		put(path, O_CREAT | O_EXCL, size);
		return "create";
	case 2:
		(void)unlink(path);
		return "remove";
	case 3:
		(void)rename(path, other);
		return "rename";
	case 4:
	case 5:
		put(temp, O_CREAT | O_TRUNC, size);
		(void)rename(temp, path);
		return "replace";
	case 6:
	case 7:
		put(path, 0, 1024);
		return "write";
	case 8:
		r = truncate(path, (off_t)pick(seed, 4000));
		return r < 0 ? "no truncate" : "truncate";
	case 9:
		put(path, O_APPEND, 4);
		return "append";
	case 10:
		(void)chmod(path, 0600 + pick(seed, 64));
		return "chmod";
	default:
		if (pick(seed, 2))
			r = link(path, other);
		else if (mkdir(path, 0755) < 0)
			(void)rmdir(path);
		return r < 0 ? "no link" : "link";
	}
}

/* ---- comparing ---- */

static bool
same_stat(const char *a, const char *b, char *why)
{
	struct stat x = { 0 }, y = { 0 };
	int rx = lstat(a, &x) < 0 ? errno : 0,
	    ry = lstat(b, &y) < 0 ? errno : 0;

	(void)sprintf(why,
		      "%d/%d mode %o/%o size %ld/%ld ino %lu/%lu nlink "
		      "%lu/%lu mtime %ld.%09ld/%ld.%09ld",
		      rx, ry, x.st_mode, y.st_mode, (long)x.st_size,
		      (long)y.st_size, (unsigned long)x.st_ino,
		      (unsigned long)y.st_ino, (unsigned long)x.st_nlink,
		      (unsigned long)y.st_nlink, (long)x.st_mtim.tv_sec,
		      x.st_mtim.tv_nsec, (long)y.st_mtim.tv_sec,
		      y.st_mtim.tv_nsec);
	return rx == ry && x.st_mode == y.st_mode && x.st_size == y.st_size &&
	       x.st_ino == y.st_ino && x.st_nlink == y.st_nlink &&
	       x.st_mtim.tv_sec == y.st_mtim.tv_sec &&
	       x.st_mtim.tv_nsec == y.st_mtim.tv_nsec &&
	       /* overlayfs changes a directory's without telling. */
	       (S_ISDIR(x.st_mode) || x.st_ctim.tv_nsec == y.st_ctim.tv_nsec);
}

static bool
same_content(const char *a, const char *b, char *why)
{
	char x[BYTES], y[BYTES];
	ssize_t nx = read_file(a, x), ny = read_file(b, y);
	unsigned int vx = 0, vy = 0;

	if (nx >= 4 && ny >= 4) {
		memcpy(&vx, x, 4);
		memcpy(&vy, y, 4);
	}
	(void)sprintf(why, "content: %zd/%zd bytes, version %u/%u", nx, ny, vx,
		      vy);
	return nx == ny && (nx <= 0 || memcmp(x, y, (size_t)nx) == 0);
}

/* A description of the first difference, or false. */
static bool
differs(unsigned int dir, unsigned int name, char *why)
{
	char a[700], b[700];
	unsigned int x, y;

	path_of(a, host, dir, name);
	path_of(b, mount, dir, name);
	if (!same_stat(a, b, why) || !same_content(a, b, why))
		return true;
	*strrchr(a, '/') = '\0';
	*strrchr(b, '/') = '\0';
	if (!same_stat(a, b, why))
		return true;
	list(a, &x);
	list(b, &y);
	(void)sprintf(why, "list %x/%x", x, y);
	return x != y;
}

/*
 * Behind a second mount the end of a change may come after its system call has
 * returned, which no barrier of the first can know: there it may show within
 * the time that a running reader is promised.
 *
 * The kernel may give a stat() old attributes for the nanoseconds in which it
 * takes in the new ones for another reader (docs/CONFORMANCE.md): a second look
 * must be right, and such a case be rare.
 */
static bool
stays_different(unsigned int dir, unsigned int name, char *why)
{
	double until = now() + (second_mount ? 0.1 : 0);

	if (!differs(dir, name, why))
		return false;
	if (!second_mount && strncmp(why, "content", 7) != 0) {
		torn++;
		return differs(dir, name, why);
	}
	while (differs(dir, name, why))
		if (now() >= until)
			return true;
	return false;
}

static void
compare_all(const char *what)
{
	char why[512];

	for (unsigned int d = 0; d < DIRS; d++)
		for (unsigned int k = 0; k < NAMES; k++)
			if (stays_different(d, k, why))
				errx(1, "%s: d%u/n%u %s", what, d, k, why);
}

static void
overflow(unsigned int *seed)
{
	char path[700];

	(void)kill(server, SIGSTOP);
	for (unsigned int i = 0; i < 10000; i++) {
		(void)snprintf(path, sizeof(path), "%s/d%u/x%u", writer,
			       i % DIRS, i);
		put(path, O_CREAT, 4);
		(void)unlink(path);
	}
	for (int i = 0; i < 20; i++)
		(void)change(seed, pick(seed, DIRS), pick(seed, NAMES));
	(void)kill(server, SIGCONT);
	barrier();
	compare_all("after too many events");
}

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double
wait_seen(unsigned int dir, unsigned int name, const char *what)
{
	double start = now();
	char why[512];

	while (differs(dir, name, why)) {
		if (now() - start > 5)
			errx(1, "%s of d%u/n%u is not seen: %s", what, dir,
			     name, why);
	}
	return now() - start;
}

static void
rounds(unsigned long n, unsigned int seed, bool timed)
{
	double *times = calloc(n, sizeof(*times)), start = now();
	char why[512];

	if (!times)
		err(1, "memory");
	for (unsigned long i = 0; i < n; i++) {
		unsigned int dir = pick(&seed, DIRS), name = pick(&seed, NAMES);
		const char *what = change(&seed, dir, name);

		if (timed) {
			times[i] = wait_seen(dir, name, what);
			continue;
		}
		barrier();
		for (unsigned int d = 0; d < DIRS; d++)
			for (unsigned int k = 0; k < NAMES; k++)
				if (i % 16 == 0 || (d == dir && k == name))
					if (stays_different(d, k, why))
						errx(1,
						     "round %lu, %s d%u/n%u: "
						     "d%u/n%u %s",
						     i, what, dir, name, d, k,
						     why);
	}
	printf("%lu rounds in %.1f s, %lu looks beside, %lu torn\n", n,
	       now() - start, atomic_load(&looks), torn);
	if (torn > 1 + n / 1000)
		errx(1, "%lu stats were old at the first look", torn);
	if (watched)
		printf("told of %lu events\n", atomic_load(&told));
	if (timed) {
		qsort(times, n, sizeof(*times), compare_doubles);
		printf("seen after: p50 %.3f p99 %.3f max %.3f ms\n",
		       times[n / 2] * 1e3, times[n * 99 / 100] * 1e3,
		       times[n - 1] * 1e3);
	}
	free(times);
}

int
main(int argc, char **argv)
{
	char *options[16] = { 0 }, path[700];
	pthread_t threads[READERS + 1];
	unsigned long n = 1000;
	unsigned int seed = 1, overflows = 0;
	bool timed = false, crossed = false;
	struct pipes other_pipes;
	char line[256];
	int c, k = 0;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt(argc, argv, "1xeW:M:r:ts:o:")) != -1) {
		switch (c) {
		case '1':
			options[k++] = (char *)"-1n";
			break;
		case 'e':
			watched = true;
			options[k++] = (char *)"-ne";
			break;
		case 'x':
			crossed = second_mount = true;
			break;
		case 'W':
			options[k++] = (char *)"-W";
			options[k++] = optarg;
			break;
		case 'M':
			options[k++] = (char *)"-M";
			options[k++] = optarg;
			break;
		case 'r':
			n = strtoul(optarg, NULL, 10);
			break;
		case 't':
			timed = true;
			break;
		case 'o':
			overflows = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 's':
			seed = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 1 || n == 0)
		errx(2, "usage: coherence [options] DIR");
	(void)snprintf(host, sizeof(host), "%.400s/w", argv[optind]);
	(void)snprintf(mount, sizeof(mount), "%.400s/m", argv[optind]);
	(void)mkdir(host, 0755);
	(void)mkdir(mount, 0755);
	for (unsigned int d = 0; d < DIRS; d++) {
		(void)snprintf(path, sizeof(path), "%s/d%u", host, d);
		(void)mkdir(path, 0755);
	}
	server = start_server(options, mount, &server_pipes);
	memcpy(writer, host, sizeof(host));
	if (crossed) {
		(void)snprintf(writer, sizeof(writer), "%.400s/x",
			       argv[optind]);
		(void)mkdir(writer, 0755);
		other_server = start_server(options, writer, &other_pipes);
	}
	for (size_t i = 0; i <= READERS; i++)
		if (pthread_create(&threads[i], NULL,
				   i == READERS ? watcher : reader,
				   (void *)(uintptr_t)(i + seed)) != 0)
			errx(1, "thread");
	rounds(n, seed, timed);
	for (unsigned int i = 0; i < overflows; i++)
		overflow(&seed);
	atomic_store(&ending, true);
	for (size_t i = 0; i <= READERS; i++)
		(void)pthread_join(threads[i], NULL);
	command('s', line, sizeof(line));
	fputs(line, stdout);
	if (crossed)
		end_server(other_server);
	end_server(server);
	return 0;
}
