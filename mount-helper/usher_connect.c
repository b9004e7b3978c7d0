/* SPDX-License-Identifier: MIT */

/*
 * One thread receives, a pool of workers performs: a connect may block for
 * minutes (an address that does not answer, a full backlog) and must not delay
 * another one.  Workers are started when all are busy, up to LIMIT_CONNECTING;
 * what comes beyond them waits in a ring of LIMIT_CONNECTS; what finds no room
 * is answered EAGAIN.
 *
 * The inmate's socket keeps its own O_NONBLOCK, so a worker's connect() blocks
 * exactly when the inmate's would.  While it does, the receiving thread looks
 * ten times a second whether the inmate has died or has a signal to handle,
 * and then interrupts the worker (SIGUSR1): the inmate gets EINTR.
 *
 * Which object an AF_UNIX address names is settled once, with O_PATH; it is
 * judged and then connected through its entry in our own /proc/self/fd, so
 * that nothing can be exchanged in between.
 */

#include "mount-helper/usher_connect.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/wire.h"
#include "mount-helper/echo.h"
#include "mount-helper/usher_socket.h"

#define WORKER_STACK 131072
#define TICK_MS	     100

struct worker {
	struct broker *broker;
	pthread_t thread;
	/* Zero, or the inmate for whom this worker is inside connect(). */
	_Atomic pid_t connecting;
};

struct broker {
	int sock, listener;
	pid_t init_pid;
	struct usher_world world;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t more;
	struct usher_call queue[LIMIT_CONNECTS];
	size_t first, count;
	size_t n_workers, n_idle;
	struct worker workers[LIMIT_CONNECTING];
};

static void
reply(struct broker *b, const struct usher_call *call, int value,
      uint32_t flags, const char *path)
{
	struct wire_msg msg;

	memset(&msg, 0, sizeof(msg));
	msg.type = WIRE_CONNECTED;
	msg.id = call->id;
	msg.pid = call->pid;
	msg.value = value;
	msg.flags = flags;
	memcpy(msg.text, path, strnlen(path, sizeof(msg.text) - 1));

	/* A failure means that the warden is gone, and the world with it. */
	(void)fd_send(b->sock, &msg, sizeof(msg), NULL, 0);
}

/*
 * Is the call still waited for?  Asked after what was looked up by the number
 * of a process: who has been killed leaves it to another, outside the world
 * perhaps.
 */
static bool
is_waited_for(const struct broker *b, const struct usher_call *call)
{
	uint64_t id = call->notified;

	if (call->holder >= 0)
		return !usher_has_exited(call->holder);
	return b->listener < 0 || id == 0 ||
	       ioctl(b->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static int
open_process(const struct usher_call *call)
{
	int pidfd;

	/*
	 * A notification names a thread.  Without PIDFD_THREAD (Linux 6.9) only
	 * a process can be had: its leader shares the table in all but the
	 * oddest programs.
	 */
	pidfd = (int)syscall(SYS_pidfd_open, call->pid, FD_PIDFD_THREAD);
	if (pidfd < 0 && errno == EINVAL)
		pidfd = (int)syscall(SYS_pidfd_open,
				     usher_thread_group(call->proc, call->pid),
				     0);
	return pidfd < 0 ? -errno : pidfd;
}

/* The inmate's descriptor, as ours. */
static int
fetch_socket(const struct broker *b, const struct usher_call *call, int *ret_fd)
{
	_cleanup_(closep) int own = -1;
	int pidfd = call->holder, fd;

	if (pidfd < 0) {
		own = open_process(call);
		pidfd = own;
	}
	if (pidfd < 0)
		return pidfd;
	if (!is_waited_for(b, call))
		return -ESRCH;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, call->fd, 0);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int
do_connect(struct worker *worker, const struct usher_call *call, int fd,
	   const void *address, socklen_t len)
{
	int r;

	atomic_store(&worker->connecting, call->pid);
	r = connect(fd, address, len) < 0 ? -errno : 0;
	atomic_store(&worker->connecting, 0);
	return r;
}

static void
connect_unix(struct worker *worker, const struct usher_call *call, int fd)
{
	struct broker *b = worker->broker;
	_cleanup_(usher_target_fini) struct usher_target target = { .fd = -1 };
	int r;

	r = usher_target_find(&b->world, call, fd, &target);
	if (r == 0 && !is_waited_for(b, call))
		r = -ESRCH;
	if (r == 0)
		r = do_connect(worker, call, fd, &target.address,
			       target.address_len);

	/* The scope of Landlock: a name of the host's. */
	if (r == -EPERM && target.fd < 0)
		target.refused = true;
	if (r == 0 && !usher_target_is_ours(&b->world, call, fd, &target)) {
		(void)shutdown(fd, SHUT_RDWR);
		target.refused = true;
		r = -EACCES;
	}
	reply(b, call, r, target.refused ? WIRE_CONNECTED_REFUSED : 0,
	      target.path);
}

static void
perform(struct worker *worker, const struct usher_call *call)
{
	_cleanup_(closep) int fd = -1;
	int domain = 0, r;
	socklen_t len = sizeof(domain);

	/* Init serves the keeper and connects to nothing. */
	if (call->pid == worker->broker->init_pid) {
		reply(worker->broker, call, -EACCES, 0, "");
		return;
	}
	r = fetch_socket(worker->broker, call, &fd);
	if (r == -EBADF || r == -ESRCH) {
		reply(worker->broker, call, r, 0, "");
		return;
	}
	if (r < 0) {
		reply(worker->broker, call, -EACCES, WIRE_CONNECTED_REFUSED,
		      "");
		return;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0) {
		reply(worker->broker, call, -errno, 0, "");
		return;
	}
	if (domain == AF_UNIX) {
		connect_unix(worker, call, fd);
		return;
	}
	r = do_connect(worker, call, fd, &call->address, call->address_len);
	reply(worker->broker, call, r, 0, "");
}

static void *
work(void *data)
{
	struct worker *worker = data;
	struct broker *b = worker->broker;

	for (;;) {
		struct usher_call call;

		pthread_mutex_lock(&b->lock);
		b->n_idle++;
		while (b->count == 0)
			pthread_cond_wait(&b->more, &b->lock);
		b->n_idle--;
		call = b->queue[b->first];
		b->first = (b->first + 1) % LIMIT_CONNECTS;
		b->count--;
		pthread_mutex_unlock(&b->lock);
		perform(worker, &call);
		closep(&call.holder);
	}
	return NULL;
}

/* Called with the lock held.  Failing leaves the call to the others. */
static void
add_worker(struct broker *b)
{
	struct worker *worker = &b->workers[b->n_workers];
	pthread_attr_t attr;

	if (b->n_workers == LIMIT_CONNECTING || pthread_attr_init(&attr) != 0)
		return;
	worker->broker = b;
	(void)pthread_attr_setstacksize(&attr, WORKER_STACK);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&worker->thread, &attr, work, worker) == 0)
		b->n_workers++;
	(void)pthread_attr_destroy(&attr);
}

/* Takes the call's holder. */
static void
enqueue(struct broker *b, struct usher_call *call)
{
	bool taken = false;

	pthread_mutex_lock(&b->lock);
	if (b->count >= b->n_idle)
		add_worker(b);
	if (b->count < LIMIT_CONNECTS && b->n_workers > 0) {
		b->queue[(b->first + b->count) % LIMIT_CONNECTS] = *call;
		b->count++;
		taken = true;
		pthread_cond_signal(&b->more);
	}
	pthread_mutex_unlock(&b->lock);
	if (taken)
		return;
	reply(b, call, -EAGAIN, 0, "");
	closep(&call->holder);
}

/* Takes `holder`. */
static void
take_call(struct broker *b, const struct wire_msg *msg, int *holder)
{
	struct usher_call call = {
		.id = msg->id,
		.pid = msg->pid,
		.fd = msg->value,
		.notified = msg->user_us,
		.holder = -1,
		.proc = b->world.proc,
	};

	/* The kernel's own answers to such arguments. */
	if (msg->status < 0 || (size_t)msg->status > sizeof(call.address)) {
		reply(b, &call, -EINVAL, 0, "");
		return;
	}
	if (call.pid <= 0 || call.fd < 0) {
		reply(b, &call, -EBADF, 0, "");
		return;
	}
	memcpy(&call.address, msg->text, (size_t)msg->status);
	call.address_len = (socklen_t)msg->status;
	call.holder = take_fd(holder);
	enqueue(b, &call);
}

static void
dispatch(struct broker *b, struct wire_msg *msg, int *holder)
{
	msg->text[sizeof(msg->text) - 1] = '\0';
	if (msg->type != WIRE_CONNECT)
		return;
	switch ((enum wire_connect)msg->flags) {
	case WIRE_CONNECT_CALL:
		take_call(b, msg, holder);
		break;
	case WIRE_CONNECT_LET_IN:
		usher_world_let_in(&b->world, msg->text);
		break;
	case WIRE_CONNECT_BORN:
		usher_world_born(&b->world, msg->text);
		break;
	case WIRE_CONNECT_HOME:
		usher_world_home(&b->world, msg->id, msg->value != 0);
		break;
	default:
		break;
	}
}

/*
 * Interrupts the workers whose inmates are dead or have a signal to handle.
 * Returns whether any worker is inside connect().
 */
static bool
interrupt_workers(struct broker *b)
{
	bool any = false;

	/* Only this thread adds workers. */
	for (size_t i = 0; i < b->n_workers; i++) {
		pid_t pid = atomic_load(&b->workers[i].connecting);

		if (pid == 0)
			continue;
		any = true;
		if (usher_is_interrupted(b->world.proc, pid))
			(void)pthread_kill(b->workers[i].thread, SIGUSR1);
	}
	return any;
}

static bool
has_work(struct broker *b)
{
	bool busy;

	pthread_mutex_lock(&b->lock);
	busy = b->n_idle < b->n_workers || b->count > 0;
	pthread_mutex_unlock(&b->lock);
	return busy;
}

static void
refuse_cut(struct broker *b, const struct wire_msg *msg)
{
	const struct usher_call call = { .id = msg->id, .pid = msg->pid };

	if (msg->type == WIRE_CONNECT && msg->flags == WIRE_CONNECT_CALL)
		reply(b, &call, -EAGAIN, 0, "");
}

static void
serve(struct broker *b)
{
	for (;;) {
		struct pollfd pfd = { .fd = b->sock, .events = POLLIN };
		int fds[FD_PASS_MAX];
		struct wire_msg msg;
		size_t nfds = 0;
		int none = -1;
		ssize_t n;

		memset(&msg, 0, sizeof(msg));
		if (poll(&pfd, 1, has_work(b) ? TICK_MS : -1) == 0)
			(void)interrupt_workers(b);
		if (!(pfd.revents & (POLLIN | POLLHUP | POLLERR)))
			continue;
		n = fd_recv(b->sock, &msg, sizeof(msg), fds, &nfds);
		if (n == 0 || n == -EBADF || n == -ENOTCONN)
			return;
		if (n == (ssize_t)sizeof(msg) && msg.type == WIRE_ECHO &&
		    nfds == 1)
			(void)echo_fork(fds[0]);
		if (n == (ssize_t)sizeof(msg))
			dispatch(b, &msg, nfds == 1 ? &fds[0] : &none);
		else if (n == -EMSGSIZE)
			/* No room for its holder, and none may go without. */
			refuse_cut(b, &msg);
		for (size_t i = 0; i < nfds; i++)
			closep(&fds[i]);
	}
}

static void
wake_up(int sig)
{
	(void)sig;
}

/*
 * A worker opens paths that the inmate chose: it must not be able to search a
 * directory that the inmate could not.  What an echo will need stays, but is in
 * effect for none of the threads.
 */
static int
drop_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2];
	uint32_t keep = 1u << CAP_SYS_PTRACE;
	uint32_t hand_on = (uint32_t)echo_capabilities();

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	data[0].effective &= keep;
	data[0].permitted &= keep | hand_on;
	data[0].inheritable = 0;
	memset(&data[1], 0, sizeof(data[1]));
	if (syscall(SYS_capset, &header, data) < 0)
		return -errno;
	return 0;
}

static void
say_hello(struct broker *b)
{
	struct wire_msg msg;
	struct stat st;
	uint64_t identity[2];

	if (fstatat(b->world.proc, "self/ns/mnt", &st, 0) < 0)
		return;
	identity[0] = (uint64_t)st.st_dev;
	identity[1] = (uint64_t)st.st_ino;
	memset(&msg, 0, sizeof(msg));
	msg.type = WIRE_CONNECTED;
	msg.flags = WIRE_CONNECTED_HELLO;
	memcpy(msg.text, identity, sizeof(identity));
	(void)fd_send(b->sock, &msg, sizeof(msg), NULL, 0);
}

int
usher_serve(const struct usher_place *place)
{
	/* Too large for a stack, and workers outlive this function. */
	static struct broker broker;
	struct sigaction action = { .sa_handler = wake_up };
	struct broker *b = &broker;
	int r;

	memset(b, 0, sizeof(*b));
	b->sock = place->world_sock;
	b->init_pid = place->init_pid;
	b->listener = place->listener;
	if (pthread_mutex_init(&b->lock, NULL) != 0 ||
	    pthread_cond_init(&b->more, NULL) != 0)
		return -ENOMEM;

	/* Without SA_RESTART: its one purpose is to end a connect(). */
	if (sigaction(SIGUSR1, &action, NULL) < 0)
		return -errno;
	/* An echo that ends is waited for by nobody. */
	if (signal(SIGCHLD, SIG_IGN) == SIG_ERR)
		return -errno;
	if (fchdir(place->host_proc_fd) < 0)
		return -errno;
	r = drop_capabilities();
	if (r < 0)
		return r;
	r = usher_world_init(&b->world, place->host_proc_fd, place->scoped);
	if (r < 0)
		return r;
	say_hello(b);
	serve(b);
	return 0;
}
