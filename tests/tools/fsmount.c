/* SPDX-License-Identifier: MIT */

/*
 * Mounts a policy on a directory, in the foreground, as root or, with -1n,
 * as anybody: the filesystem alone, for tests of the filesystem.
 *
 *	fsmount [-1nce] [-d DIR] [-W inotify|none] [-M WATCHES] -m MODE
 *		[-p PROTECT]… [-H HIDE]… WORKSPACE MOUNT
 *
 * -c: commands of one letter on stdin, answered by a line: b is a barrier, o is
 * as if events had been lost, s prints what it has.
 * -1: serve root only (no per-request ids); -d: denials go to DIR; -n: as in a
 * world, MOUNT in a mount namespace of its own, whose process is told, so that
 * MOUNT may be WORKSPACE (`nsenter -m -t PID` goes there).  -e, with -n: inotify
 * there tells of what the host changes, and all is told always.
 * Says "ready PID" on stdout.  SIGUSR1 and SIGUSR2 change the mode to read-only
 * and workspace-write and say "mode".  SIGTERM and SIGINT unmount and end it.
 */

#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "fusefs/fs.h"
#include "fusefs/watch.h"
#include "mount-helper/echo.h"
#include "policy/denial.h"

struct options {
	struct policy_request request;
	const char *denials_dir;
	const char *mountpoint;
	bool single_uid;
	bool own_namespace;
	bool commands;
	bool echo;
	int echo_sock; /* to who holds the namespaces */
	enum fs_watch_how watch;
	unsigned int watch_max;
	bool passthrough;
	pid_t namespace_pid;
};

static void
parse(int argc, char **argv, struct options *options)
{
	int c;

	while ((c = getopt(argc, argv, "1Pnced:m:p:H:W:M:")) != -1) {
		struct strv *list = c == 'p' ? &options->request.protect
					     : &options->request.hide;

		switch (c) {
		case '1':
			options->single_uid = true;
			break;
		case 'P':
			options->passthrough = true;
			break;
		case 'n':
			options->own_namespace = true;
			break;
		case 'c':
			options->commands = true;
			break;
		case 'e':
			options->echo = true;
			break;
		case 'W':
			options->watch = strcmp(optarg, "inotify") == 0
						 ? FS_WATCH_INOTIFY
						 : FS_WATCH_NONE;
			break;
		case 'M':
			options->watch_max =
				(unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'd':
			options->denials_dir = optarg;
			break;
		case 'm':
			options->request.mode = optarg;
			break;
		case 'p':
		case 'H':
			if (strv_add(list, optarg) < 0)
				errx(1, "out of memory");
			break;
		default:
			exit(2);
		}
	}
	if (argc - optind != 2)
		errx(2, "usage: fsmount -m MODE [options] WORKSPACE MOUNT");
	options->request.workspace = argv[optind];
	options->mountpoint = argv[optind + 1];
}

/* /dev/fuse, mounted; the opener's user namespace must be the mounter's. */
static int
open_and_mount(const struct options *options)
{
	char fs_options[256], data[300];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		err(1, "/dev/fuse");
	if (fs_mount_options(getuid(), getgid(), !options->single_uid,
			     fs_options, sizeof(fs_options)) < 0)
		errx(1, "mount options");
	(void)snprintf(data, sizeof(data), "fd=%d,%s", fd, fs_options);
	if (mount("pale", options->mountpoint, "fuse.pale",
		  MS_NOSUID | MS_NODEV, data) < 0)
		err(1, "mount %s", options->mountpoint);
	return fd;
}

static void
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(1, "%s", path);
	(void)close(fd);
}

static void
enter_namespaces(uid_t uid, gid_t gid)
{
	char map[64];

	if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) < 0)
		err(1, "unshare");
	if (uid) {
		write_file("/proc/self/setgroups", "deny");
		(void)snprintf(map, sizeof(map), "%u %u 1", uid, uid);
		write_file("/proc/self/uid_map", map);
		(void)snprintf(map, sizeof(map), "%u %u 1", gid, gid);
		write_file("/proc/self/gid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		err(1, "propagation");
}

/* Whose names must lead to the mount, as in a world. */
static void
make_echoes(const struct options *options, int sock)
{
	int fds[FD_PASS_MAX];
	size_t n;
	char byte;

	if (mount(options->mountpoint, options->request.workspace, NULL,
		  MS_BIND, NULL) < 0)
		err(1, "bind");
	(void)signal(SIGCHLD, SIG_IGN);
	while (fd_recv(sock, &byte, 1, fds, &n) == 1) {
		if (n == 1 && echo_fork(fds[0]) < 0)
			errx(1, "cannot make an echo");
		while (n > 0)
			(void)close(fds[--n]);
	}
}

static int
ask_echo(void *data, int sock)
{
	const struct options *options = data;
	char byte = 'e';

	return fd_send(options->echo_sock, &byte, 1, &sock, 1);
}

/* A process that holds the namespaces until it is killed. */
static int
mount_in_namespace(struct options *options)
{
	int sock[2], fds[FD_PASS_MAX], fd;
	struct stat st;
	uid_t uid = getuid();
	gid_t gid = getgid();
	size_t n = 0;
	char byte = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
		err(1, "socketpair");
	options->namespace_pid = fork();
	if (options->namespace_pid < 0)
		err(1, "fork");
	if (options->namespace_pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		enter_namespaces(uid, gid);
		fd = open_and_mount(options);
		if (fd_send(sock[1], &byte, 1, &fd, 1) < 0)
			errx(1, "cannot send the descriptor");
		/* Only the server may hold the connection. */
		(void)fd_close_others(3, &sock[1], 1);
		/*
		 * Until somebody asks, the kernel takes uid 0 for the root's
		 * owner, and without a map for it nobody may write there.
		 */
		(void)stat(options->mountpoint, &st);
		if (options->echo)
			make_echoes(options, sock[1]);
		for (;;)
			pause();
	}
	(void)close(sock[1]);
	if (fd_recv(sock[0], &byte, 1, fds, &n) != 1 || n != 1)
		exit(1);
	options->echo_sock = sock[0];
	return fds[0];
}

static int
mount_fuse(struct options *options)
{
	return options->own_namespace ? mount_in_namespace(options)
				      : open_and_mount(options);
}

static void
set_mode(struct fs *fs, struct policy **policy, enum policy_mode mode)
{
	struct policy *other;
	int r = policy_with_mode(*policy, mode, &other);

	if (r == 0)
		r = fs_set_policy(fs, other);
	if (r < 0)
		errx(1, "mode: %s", strerror(-r));
	policy_unref(*policy);
	*policy = other;
	puts("mode");
}

static void
serve(struct fs *fs, const struct options *options, struct policy **policy)
{
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	printf("ready %d\n", options->namespace_pid);
	while (sigwait(&set, &signal) == 0) {
		if (signal == SIGUSR1)
			set_mode(fs, policy, POLICY_READ_ONLY);
		else if (signal == SIGUSR2)
			set_mode(fs, policy, POLICY_WORKSPACE_WRITE);
		else
			break;
	}
}

static void print_stats(struct fs *fs);

/* Until its end is closed; the process ends by a signal. */
static void *
obey(void *data)
{
	struct fs *fs = data;
	char command;

	while (read(STDIN_FILENO, &command, 1) == 1) {
		if (command == 's')
			print_stats(fs);
		else if (command == 'o')
			fs_watch_lost(fs);
		if (command != 's')
			puts(fs_barrier(fs) == 0 ? "done" : "failed");
	}
	return NULL;
}

static void
print_stats(struct fs *fs)
{
	struct rusage usage;
	struct fs_stats stats;

	fs_stats(fs, &stats);
	(void)getrusage(RUSAGE_SELF, &usage);
	printf("requests %lu inodes %lu fds %lu bytes %lu rss %ld "
	       "watched %lu inotify %lu untold %lu\n",
	       (unsigned long)stats.requests, (unsigned long)stats.inodes,
	       (unsigned long)stats.open_fds, (unsigned long)stats.inode_bytes,
	       usage.ru_maxrss, (unsigned long)stats.watched,
	       (unsigned long)stats.by_inotify, (unsigned long)stats.untold);
}

int
main(int argc, char **argv)
{
	struct options options = { .request = { .tmp = -1, .nest = -1 } };
	struct denials *denials = NULL;
	struct fs_config config = { .origin = "test" };
	struct policy *policy = NULL;
	struct errmsg why = { "" };
	pthread_t thread;
	struct fs *fs = NULL;
	sigset_t set;
	char db[512];
	int r;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	parse(argc, argv, &options);
	/* Waited for in serve(); no thread may take them. */
	sigfillset(&set);
	sigdelset(&set, SIGRTMAX - 3);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);

	if (policy_resolve(&options.request, &policy, &why) < 0)
		errx(1, "%s", why.text);
	if (options.denials_dir) {
		struct denials_config denials_config = {
			.dir = options.denials_dir,
			.db_path = db,
			.session = "test",
			.world = "fsmount",
		};

		(void)snprintf(db, sizeof(db), "%s/pale.db",
			       options.denials_dir);
		if (denials_open(&denials_config, &denials, &why) < 0)
			errx(1, "%s", why.text);
	}
	config.policy = policy;
	config.denials = denials;
	config.multi_uid = !options.single_uid;
	config.host_visible = true;
	config.watch = options.watch;
	config.watch_max = options.watch_max;
	config.passthrough = options.passthrough;
	if (options.echo) {
		config.echo_ask = ask_echo;
		config.echo_data = &options;
	}
	if (fs_new(&config, &fs, &why) < 0 ||
	    fs_start(fs, mount_fuse(&options), &why) < 0)
		errx(1, "%s", why.text);
	fs_echo(fs);

	if (options.commands) {
		r = pthread_create(&thread, NULL, obey, fs);
		if (r != 0)
			errx(1, "thread: %s", strerror(r));
	}
	serve(fs, &options, &policy);
	if (options.commands) {
		(void)pthread_cancel(thread);
		(void)pthread_join(thread, NULL);
	}
	print_stats(fs);
	if (options.own_namespace) {
		(void)kill(options.namespace_pid, SIGKILL);
		(void)waitpid(options.namespace_pid, NULL, 0);
	} else {
		(void)umount2(options.mountpoint, MNT_DETACH);
	}
	fs_free(fs);
	denials_close(denials);
	policy_unref(policy);
	strv_fini(&options.request.protect);
	strv_fini(&options.request.hide);
	return 0;
}
