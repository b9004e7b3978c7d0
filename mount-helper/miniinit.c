/* SPDX-License-Identifier: MIT */

/*
 * Until the command runs, no inmate can see this process: nobody else is in
 * its pid namespace, and every other command has a /proc of its own.  From
 * then on the command can, so by then there is nothing to be had here: no
 * capability, no descriptor but its sockets, no memory that could be read.
 *
 * What is given up is in the order in which it is needed:
 *
 *	pristine mounts		files given for reading, opened again
 *	SYS_ADMIN		a mount namespace, its /proc, the console
 *	(filter)		one who has come by himself
 *	all capabilities	then the command is started
 */

#include "mount-helper/miniinit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/spawn_spec.h"
#include "mount-helper/lockdown.h"
#include "mount-helper/mounts.h"
#include "mount-helper/spawn.h"
#include "mount-helper/steps.h"
#include "mount-helper/sweep.h"

/* How often an unconfined tree is swept while it shall die. */
#define SWEEP_MS 5

struct state {
	struct miniinit *m;
	struct spawn_spec spec;
	struct stdfiles files;
	bool confined, killing;
	int signals, listener;
	pid_t command; /* 0: none (any more) */
};

void
miniinit_send_failure(int sock, uint64_t id, int r, const struct errmsg *why)
{
	struct wire_msg msg = { .type = WIRE_SPAWNED,
				.id = id,
				.value = r,
				.step = step_current() };

	memcpy(msg.text, why->text, strnlen(why->text, sizeof(msg.text) - 1));
	(void)fd_send(sock, &msg, sizeof(msg), NULL, 0);
}

static _Noreturn void
die(struct state *s, int r, const struct errmsg *why)
{
	if (s->m->front >= 0)
		(void)wire_send_failed(s->m->front, r, why);
	miniinit_send_failure(s->m->keeper, s->m->id, r, why);
	_exit(125);
}

/* ---- before the command ---- */

static int
take_descriptors(struct state *s, struct errmsg *why)
{
	struct miniinit *m = s->m;
	int keep[5 + NAMESPACE_COUNT], r;
	size_t n = 0;

	for (int i = 0; i < STDFILES; i++)
		if (m->fds[i] >= 0 && dup2(m->fds[i], i) < 0)
			return errmsg_set(why, -errno,
					  "cannot hand on descriptors: %s",
					  strerror(errno));
	keep[n++] = m->keeper;
	keep[n++] = m->front;
	keep[n++] = m->spec;
	keep[n++] = m->console;
	keep[n++] = s->signals;
	for (int i = 0; i < NAMESPACE_COUNT; i++)
		keep[n++] = m->ns->fd[i];
	r = fd_close_others(STDFILES, keep, n);
	return r < 0 ? errmsg_set(why, r, "cannot close descriptors: %s",
				  strerror(-r))
		     : 0;
}

static int
bind_console(int console, struct errmsg *why)
{
	if (console < 0 || move_mount(console, "", AT_FDCWD, "/dev/console",
				      MOVE_MOUNT_F_EMPTY_PATH) == 0)
		return 0;
	return errmsg_set(why, -errno, "cannot bind the terminal: %s",
			  strerror(errno));
}

/* The world's mounts, with a /proc that shows this command alone. */
static int
make_mounts(struct state *s, struct errmsg *why)
{
	struct miniinit *m = s->m;
	bool files = stdfiles_are_files();
	int r = 0;

	if (files)
		r = namespaces_join(m->ns, NAMESPACE_PRISTINE, why);
	if (r == 0)
		r = stdfiles_fence(&s->files, why);
	if (r == 0 && files)
		r = namespaces_join(m->ns, NAMESPACE_MNT, why);
	if (r < 0)
		return r;
	if (unshare(CLONE_NEWNS) < 0)
		return errmsg_set(why, -errno,
				  "cannot make a mount namespace: %s",
				  strerror(errno));
	r = proc_mount(geteuid() == 0, false, why);
	if (r == 0)
		r = bind_console(m->console, why);
	if (r == 0)
		stdfiles_enter_world();
	return r;
}

/* One who was not cloned by init has nothing of what init has given up. */
static int
lock_down(struct state *s, struct errmsg *why)
{
	const struct plan *plan = &s->m->h->plan;
	bool scoped;
	int r;

	if (s->m->front < 0)
		return 0;
	r = lockdown_scope(&scoped, why);
	if (r == 0)
		r = lockdown_inherited(why);
	if (r == 0)
		r = lockdown_filter(lockdown_wishes(plan), &s->listener, why);
	return r;
}

static void
describe(struct wire_born *ret_born)
{
	struct statx sx;
	struct stat st;

	memset(ret_born, 0, sizeof(*ret_born));
	if (stat("/proc/self/ns/mnt", &st) == 0) {
		ret_born->mnt_dev = st.st_dev;
		ret_born->mnt_ino = st.st_ino;
	}
	if (statx(AT_FDCWD, "/", 0, STATX_MNT_ID, &sx) == 0 &&
	    (sx.stx_mask & STATX_MNT_ID))
		ret_born->root_mount = sx.stx_mnt_id;
}

/* From here on the keeper can kill this process, and so all of the tree. */
static int
say_born(struct state *s, struct errmsg *why)
{
	struct wire_msg msg = { .type = WIRE_CMD_BORN, .id = s->m->id };
	struct wire_born born;
	int fds[2] = { -1, s->listener }, r;

	fds[0] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (fds[0] < 0)
		return errmsg_set(why, -errno, "cannot open a pidfd: %s",
				  strerror(errno));
	describe(&born);
	memcpy(msg.text, &born, sizeof(born));
	r = fd_send(s->m->keeper, &msg, sizeof(msg), fds, fds[1] >= 0 ? 2 : 1);
	(void)close(fds[0]);
	closep(&s->listener);
	s->listener = -1;
	return r < 0 ? errmsg_set(why, r, "the keeper is gone") : 0;
}

/*
 * Until it is known to who records what is refused; and one who has come by
 * himself is put under the world's limits.
 */
static int
await_leave(struct state *s, struct errmsg *why)
{
	struct wire_msg msg;
	int fd = -1;

	for (;;) {
		if (wire_recv(s->m->keeper, &msg, &fd) <= 0)
			_exit(125);
		closep(&fd);
		if (msg.type == WIRE_GO)
			return 0;
		if (msg.type == WIRE_FAILED)
			return errmsg_set(why, -msg.value, "%s", msg.text);
	}
}

static int
read_spec(struct state *s, struct errmsg *why)
{
	_cleanup_(freep) char *bytes = NULL;
	size_t len;
	int r;

	r = fd_read_file(s->m->spec, LIMIT_SPAWN_BYTES, &bytes, &len);
	if (r < 0)
		return errmsg_set(why, r, "cannot read the command: %s",
				  strerror(-r));
	return spawn_spec_decode(bytes, len, &s->spec, why);
}

static int
prepare(struct state *s, struct errmsg *why)
{
	int r;

	r = take_descriptors(s, why);
	if (r == 0 && s->confined)
		r = make_mounts(s, why);
	if (r == 0 && s->confined)
		r = lock_down(s, why);
	if (r == 0)
		r = say_born(s, why);
	if (r == 0)
		r = read_spec(s, why);
	if (r < 0)
		return r;
	/* The command has no use for them, nor has what kills it. */
	namespaces_fini(s->m->ns);
	closep(&s->m->spec);
	closep(&s->m->console);

	/* Nothing is open to us that is closed to the command. */
	if (s->confined)
		r = lockdown_capabilities(0);
	if (r < 0)
		return errmsg_set(why, r, "cannot drop capabilities: %s",
				  strerror(-r));
	/* Before the first look at the workspace: the host may be ahead. */
	r = await_leave(s, why);
	if (r < 0)
		return r;
	if (chdir(s->spec.cwd) < 0)
		return errmsg_set(why, -errno,
				  "cannot enter '%s' in the world: %s",
				  s->spec.cwd, strerror(errno));
	if (s->spec.flags & SPAWN_SPEC_UMASK)
		(void)umask(s->spec.umask);
	return 0;
}

/* ---- the command ---- */

static void
tell(struct state *s, struct wire_msg *msg, enum wire_type front_type, int fd)
{
	msg->id = s->m->id;
	(void)fd_send(s->m->keeper, msg, sizeof(*msg), &fd, fd >= 0 ? 1 : 0);
	msg->type = front_type;
	if (s->m->front >= 0)
		(void)fd_send(s->m->front, msg, sizeof(*msg), NULL, 0);
}

static void
start_command(struct state *s)
{
	const struct spawn_what what = { .argv = &s->spec.argv,
					 .env = &s->spec.env,
					 .own_session = s->m->front < 0,
					 .terminal = s->spec.flags &
						     SPAWN_SPEC_TERMINAL };
	struct wire_msg msg = { .type = WIRE_SPAWNED };
	struct errmsg why = { "" };
	int exec_error = 0, fd = -1, r;

	r = spawn_command(s->m->h, &what, &s->command, &exec_error, &why);
	if (r < 0)
		die(s, r, &why);
	if (exec_error != 0) {
		msg.value = -exec_error;
		msg.flags = WIRE_SPAWNED_EXEC;
		tell(s, &msg, WIRE_SPAWNED, -1);
		_exit(125);
	}
	fd = (int)syscall(SYS_pidfd_open, s->command, 0);
	msg.pid = s->command;
	tell(s, &msg, WIRE_STARTED, fd);
	closep(&fd);
	/* The pipes belong to the command alone. */
	stdfiles_keep(&s->files);
	for (int i = 0; i < STDFILES; i++)
		(void)close(i);
}

static uint64_t
usec(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000u + (uint64_t)time->tv_usec;
}

static void
on_change(struct state *s, pid_t pid, int status, const struct rusage *usage)
{
	struct wire_msg msg = { .type = WIRE_CMD_EXITED, .status = status };

	if (pid != s->command)
		return;
	if (WIFSTOPPED(status)) {
		if (s->m->front >= 0)
			(void)wire_send(s->m->front, WIRE_STOPPED, 0,
					WSTOPSIG(status), -1);
		return;
	}
	s->command = 0;
	msg.user_us = usec(&usage->ru_utime);
	msg.sys_us = usec(&usage->ru_stime);
	msg.max_rss_kib = (uint64_t)usage->ru_maxrss;
	stdfiles_settle(&s->files);
	tell(s, &msg, WIRE_EXITED, -1);
}

/* False when there is no child left. */
static bool
reap(struct state *s)
{
	struct rusage usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED | __WALL,
			    &usage)) > 0)
		on_change(s, pid, status, &usage);
	return pid == 0;
}

/*
 * The group in the foreground of the command's terminal, by our own numbers;
 * 0: there is none.
 */
static pid_t
foreground(pid_t command)
{
	_cleanup_(freep) char *text = NULL;
	const char *after;
	char path[32];
	int group = 0;
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)command);
	if (command <= 0 || fd_read_path(AT_FDCWD, path, 4096, &text, &len) < 0)
		return 0;
	/* A name may hold anything, also what looks like its end. */
	after = strrchr(text, ')');
	if (!after || sscanf(after, ") %*c %*d %*d %*d %*d %d", &group) != 1)
		return 0;
	return group > 1 ? group : 0;
}

static void
on_order(struct state *s, const struct wire_msg *msg)
{
	bool tree = msg->flags & SIGNAL_ALL;
	pid_t group;

	if (msg->type == WIRE_CMD_KILL) {
		s->killing = true;
	} else if (msg->type == WIRE_SIGNAL || msg->type == WIRE_CMD_SIGNAL) {
		if (msg->value <= 0 || msg->value >= NSIG)
			return;
		group = msg->flags & WIRE_CMD_GROUP ? foreground(s->command)
						    : 0;
		if (group > 0)
			(void)kill(-group, msg->value);
		else if (tree)
			sweep_signal(s->confined, msg->value);
		else if (s->command > 0)
			(void)kill(s->command, msg->value);
	} else if (msg->type == WIRE_CONTINUE && s->command > 0) {
		/* A shell with groups of its own leads one. */
		(void)kill(s->command, SIGCONT);
		if (getpgid(s->command) == s->command)
			(void)kill(-s->command, SIGCONT);
	}
}

/* Whoever holds the other end is what this tree lives for. */
static void
take_order(struct state *s, int sock)
{
	_cleanup_(closep) int fd = -1;
	struct wire_msg msg;

	if (wire_recv(sock, &msg, &fd) > 0) {
		on_order(s, &msg);
		return;
	}
	if (s->confined)
		_exit(125);
	s->killing = true;
	(void)close(sock);
	*(sock == s->m->front ? &s->m->front : &s->m->keeper) = -1;
}

static void
live(struct state *s)
{
	struct signalfd_siginfo info;
	int64_t begin = 0; /* of killing */

	while (reap(s)) {
		struct pollfd polls[3] = {
			{ .fd = s->signals, .events = POLLIN },
			{ .fd = s->m->keeper, .events = POLLIN },
			{ .fd = s->m->front, .events = POLLIN },
		};

		if (s->killing && begin == 0)
			begin = clock_mono_ns();
		if (s->killing)
			sweep_kill(s->confined, begin);
		if (poll(polls, 3, s->killing ? SWEEP_MS : -1) < 0)
			continue;
		if (polls[0].revents)
			(void)!read(s->signals, &info, sizeof(info));
		if (polls[1].revents)
			take_order(s, s->m->keeper);
		if (polls[2].revents && s->m->front >= 0)
			take_order(s, s->m->front);
	}
}

_Noreturn void
miniinit_main(struct miniinit *m)
{
	struct state s = { .m = m,
			   .confined = !(m->h->plan.flags & PLAN_UNCONFINED),
			   .listener = -1 };
	struct errmsg why = { "" };
	sigset_t chld;
	int r;

	(void)prctl(PR_SET_NAME, "pale-command");
	/*
	 * Not inherited over a clone, and undone by a change of credentials.
	 * One without a pid namespace has a tree to sweep: it hears of the end.
	 */
	if (s.confined)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	else
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	stdfiles_init(&s.files);
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	s.signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	r = s.signals < 0
		    ? errmsg_set(&why, -errno, "cannot hear of children: %s",
				 strerror(errno))
		    : prepare(&s, &why);
	if (r < 0)
		die(&s, r, &why);
	start_command(&s);
	live(&s);
	_exit(0);
}
