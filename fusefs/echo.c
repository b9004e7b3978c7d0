/* SPDX-License-Identifier: MIT */

/*
 * The thread that gives the orders, and the life of who takes them.
 *
 * It begins with the first watch inside.  The kernel is told to forget before
 * the inside is told of a change, or whoever reads at once would read what was
 * there before.  Between two rounds it naps: what changes without pause is told
 * a few hundred times a second.
 */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "fusefs/echo_priv.h"
#include "fusefs/inodes.h"
#include "fusefs/notify.h"
#include "fusefs/ops.h"
#include "fusefs/tree_priv.h"
#include "fusefs/watch.h"

#define NAP_NS	    INT64_C(4000000)
#define FORGET_NS   INT64_C(200000000)
#define ANSWER_MS   1000
#define HELLO_MS    2000
#define MAKES_MAX   16
#define MAKE_GAP_NS INT64_C(100000000)

/* ---- the process ---- */

static void
end_process(struct fs_echo *echo)
{
	atomic_store(&echo->pid, 0);
	if (echo->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, echo->pidfd, SIGKILL, NULL,
			      0);
	pthread_mutex_lock(&echo->lock);
	closep(&echo->pidfd);
	closep(&echo->sock);
	echo->pidfd = echo->sock = -1;
	pthread_mutex_unlock(&echo->lock);
}

/* *ret_pid, where wanted, is who has sent it, as the kernel says. */
static int
await_answer(int sock, int timeout_ms, struct echo_answer *ret_answer,
	     pid_t *ret_pid)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control = { .room = { 0 } };
	struct iovec iov = { .iov_base = ret_answer,
			     .iov_len = sizeof(*ret_answer) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct pollfd polled = { .fd = sock, .events = POLLIN };
	const struct cmsghdr *head;
	struct ucred who;

	if (poll(&polled, 1, timeout_ms) <= 0)
		return -ETIMEDOUT;
	if (recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) !=
	    sizeof(*ret_answer))
		return -EPIPE;
	head = CMSG_FIRSTHDR(&msg);
	if (!ret_pid)
		return 0;
	if (!head || head->cmsg_level != SOL_SOCKET ||
	    head->cmsg_type != SCM_CREDENTIALS)
		return -EPROTO;
	memcpy(&who, CMSG_DATA(head), sizeof(who));
	*ret_pid = who.pid;
	return who.pid > 0 ? 0 : -EPROTO;
}

static int
ask(struct fs_echo *echo, struct echo_order *order, size_t len)
{
	struct echo_answer answer;
	int r;

	order->id = ++echo->last_id;
	order->len = (uint32_t)len;
	if (send(echo->sock, order, offsetof(struct echo_order, text) + len,
		 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -EPIPE;
	r = await_answer(echo->sock, ANSWER_MS, &answer, NULL);
	if (r < 0 || answer.id != order->id)
		return r < 0 ? r : -EPROTO;
	/* Apart from those above, which end the process. */
	return answer.result < 0 ? 1 : 0;
}

/* ---- orders ---- */

static void
set_ordered(struct fs_echo *echo, const struct echo_item *item,
	    enum echo_step step)
{
	struct echo_ordered *ordered = &echo->ordered;

	pthread_mutex_lock(&echo->lock);
	ordered->step = step;
	ordered->dir = item->dir;
	ordered->dir2 = item->dir2;
	ordered->type = step == ECHO_REMOVE ? item->gone_type : item->type;
	ordered->moved = item->moved;
	ordered->if_known = item->if_known;
	ordered->id++;
	ordered->looked = false;
	(void)strncpy(ordered->name, item->name, sizeof(ordered->name) - 1);
	(void)strncpy(ordered->name2, item->name2 ? item->name2 : "",
		      sizeof(ordered->name2) - 1);
	pthread_mutex_unlock(&echo->lock);
}

static void
clear_ordered(struct fs_echo *echo)
{
	pthread_mutex_lock(&echo->lock);
	echo->ordered.step = ECHO_NOTHING;
	pthread_mutex_unlock(&echo->lock);
}

/* The last order has led to a LOOKUP as it should. */
static bool
was_looked(struct fs_echo *echo)
{
	bool looked;

	pthread_mutex_lock(&echo->lock);
	looked = echo->ordered.looked;
	pthread_mutex_unlock(&echo->lock);
	return looked;
}

/* Appends a string with its NUL; false when it does not fit. */
static bool
put(struct echo_order *order, size_t *len, const char *text)
{
	size_t size = strlen(text) + 1;

	if (*len + size > sizeof(order->text))
		return false;
	memcpy(order->text + *len, text, size);
	*len += size;
	return true;
}

static bool
put_place(struct fs *fs, struct echo_order *order, size_t *len,
	  struct fs_inode *dir, const char *name)
{
	_cleanup_(freep) char *path = NULL;

	return fs_inode_path(fs, dir, NULL, &path) == 0 &&
	       put(order, len, path) && put(order, len, name);
}

/* Until the kernel has forgotten what it was told to. */
static void
await_forgetting(struct fs *fs)
{
	int64_t end = clock_mono_ns() + FORGET_NS;

	(void)fs_notify_wait(fs,
			     &(struct timespec){ .tv_sec = end / 1000000000,
						 .tv_nsec = end % 1000000000 });
}

/* 0: done; 1: not done, for what reason ever; else the process is of no use. */
static int
give_order(struct fs *fs, const struct echo_item *item, enum echo_step step)
{
	struct fs_echo *echo = fs->echo;
	struct echo_order order;
	size_t len = 0;
	int r;

	if (!put_place(fs, &order, &len, item->dir, item->name) ||
	    (item->dir2 &&
	     !put_place(fs, &order, &len, item->dir2, item->name2)))
		return 1;
	order.step = step;
	order.type = step == ECHO_REMOVE ? item->gone_type : item->type;
	set_ordered(echo, item, step);
	r = ask(echo, &order, len);
	clear_ordered(echo);
	return r;
}

/*
 * Its names must lead to this mount: anywhere else it would do what it is to
 * tell.
 */
static int
probe(struct fs *fs)
{
	_cleanup_(freep) struct echo_item *item =
		calloc(1, sizeof(*item) + NAME_MAX + 1);
	int r;

	if (!item)
		return -ENOMEM;
	/* One that nobody has looked up. */
	(void)snprintf(item->name, NAME_MAX + 1, ".pale-echo-%llx",
		       (unsigned long long)clock_mono_ns());
	item->dir = fs->roots[0];
	r = give_order(fs, item, ECHO_PROBE);
	if (r < 0 || was_looked(fs->echo))
		return r < 0 ? r : 0;
	fs->echo->makes = MAKES_MAX;
	return -EXDEV;
}

/*
 * Once it is held by a pidfd it answers again: so the pid is its own, and not
 * that of one who has come after it.
 */
static int
meet(struct fs *fs, int sock)
{
	struct echo_order order = { .step = ECHO_NOTHING };
	struct fs_echo *echo = fs->echo;
	struct echo_answer hello;
	pid_t pid = 0;
	int r;

	pthread_mutex_lock(&echo->lock);
	echo->sock = sock;
	pthread_mutex_unlock(&echo->lock);
	r = await_answer(sock, HELLO_MS, &hello, &pid);
	if (r < 0)
		return r;
	r = (int)syscall(SYS_pidfd_open, pid, 0);
	if (r < 0)
		return -errno;
	pthread_mutex_lock(&echo->lock);
	echo->pidfd = r;
	pthread_mutex_unlock(&echo->lock);
	r = ask(echo, &order, 0);
	if (r < 0)
		return r;
	atomic_store(&echo->pid, pid);
	return probe(fs);
}

static int
make_process(struct fs *fs)
{
	struct fs_echo *echo = fs->echo;
	int64_t now = clock_mono_ns();
	int pair[2], one = 1, r;

	if (echo->makes >= MAKES_MAX)
		atomic_store(&fs->echoing, false);
	if (echo->makes >= MAKES_MAX ||
	    (echo->makes > 1 && now - echo->made_ns < MAKE_GAP_NS))
		return -EAGAIN;
	echo->makes++;
	echo->made_ns = now;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	r = setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) < 0
		    ? -errno
		    : fs->config.echo_ask(fs->config.echo_data, pair[1]);
	(void)close(pair[1]);
	if (r < 0) {
		(void)close(pair[0]);
		return r;
	}
	r = meet(fs, pair[0]);
	if (r < 0)
		end_process(echo);
	return r;
}

/* The kernel may hold already that there is no such name. */
static int
give_again(struct fs *fs, const struct echo_item *item, enum echo_step step)
{
	int r = give_order(fs, item, step);

	if (r <= 0)
		return r;
	fs_notify_entry(fs, item->dir, item->name);
	await_forgetting(fs);
	return give_order(fs, item, step);
}

static const struct {
	unsigned int what;
	enum echo_step step, instead;
} steps[] = {
	{ ECHO_DO_REMOVE, ECHO_REMOVE, ECHO_NOTHING },
	/* It is known already. */
	{ ECHO_DO_MAKE, ECHO_MAKE, ECHO_META },
	{ ECHO_DO_CONTENT, ECHO_CONTENT, ECHO_NOTHING },
	{ ECHO_DO_CLOSE, ECHO_CLOSE, ECHO_NOTHING },
	{ ECHO_DO_META, ECHO_META, ECHO_NOTHING },
};

static int
do_steps(struct fs *fs, const struct echo_item *item)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int r;

		if (!(item->what & steps[i].what))
			continue;
		r = steps[i].step == ECHO_REMOVE
			    ? give_again(fs, item, ECHO_REMOVE)
			    : give_order(fs, item, steps[i].step);
		if (r > 0 && steps[i].instead != ECHO_NOTHING)
			r = give_order(fs, item, steps[i].instead);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What cannot be told as a rename is told as one name gone, another new. */
static int
do_rename(struct fs *fs, struct echo_item *item)
{
	int r = give_again(fs, item, ECHO_RENAME);

	if (r <= 0)
		return r;
	item->what = ECHO_DO_REMOVE;
	item->gone_type = item->type;
	item->moved = true;
	item->if_known = false;
	r = do_steps(fs, item);
	if (r == 0) {
		struct echo_item *other =
			calloc(1, sizeof(*other) + strlen(item->name2) + 1);

		if (!other)
			return 0;
		memcpy(other->name, item->name2, strlen(item->name2) + 1);
		other->dir = fs_inode_ref(item->dir2);
		other->what = ECHO_DO_MAKE;
		other->type = item->type;
		r = do_steps(fs, other);
		echo_item_free(fs, other);
	}
	return r;
}

static int
try_item(struct fs *fs, struct echo_item *item)
{
	struct fs_echo *echo = fs->echo;
	int r = 0;

	if (echo->sock < 0)
		r = make_process(fs);
	if (r < 0)
		return 0;
	r = item->what & ECHO_DO_RENAME ? do_rename(fs, item)
					: do_steps(fs, item);
	if (r < 0)
		end_process(echo);
	else
		echo->makes = 0;
	return r;
}

/* By another process, if the first one comes to nothing. */
static void
do_item(struct fs *fs, struct echo_item *item)
{
	await_forgetting(fs);
	if (try_item(fs, item) < 0)
		(void)try_item(fs, item);
}

/* ---- the thread ---- */

static void
wait_more(struct fs_echo *echo, int64_t ns)
{
	struct timespec until;

	if (ns < 0) {
		pthread_cond_wait(&echo->more, &echo->lock);
		return;
	}
	ns += clock_mono_ns();
	until = (struct timespec){ .tv_sec = ns / 1000000000,
				   .tv_nsec = ns % 1000000000 };
	(void)pthread_cond_timedwait(&echo->more, &echo->lock, &until);
}

/* NULL: it ends. */
static struct echo_item *
next_item(struct fs_echo *echo)
{
	struct echo_item *item = NULL;
	int64_t wait_ns;

	pthread_mutex_lock(&echo->lock);
	while (!echo->ending && !item) {
		item = echo_queue_take(&echo->queue, clock_mono_ns(), &wait_ns);
		if (!item)
			wait_more(echo, wait_ns);
	}
	pthread_mutex_unlock(&echo->lock);
	return item;
}

static void
nap(struct fs_echo *echo)
{
	int64_t end = clock_mono_ns() + NAP_NS, now;

	pthread_mutex_lock(&echo->lock);
	if (!echo->queue.first)
		while (!echo->ending && (now = clock_mono_ns()) < end)
			wait_more(echo, end - now);
	pthread_mutex_unlock(&echo->lock);
}

/* What the kernel knew before is watched only from its next LOOKUP on. */
static void
settle(struct fs *fs, struct fs_inode *inode, void *data)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;

	(void)data;
	if (fs_inode_is_dir(inode) && !fs_watch_is_settled(inode) &&
	    fs_hold(fs, inode, &hold) == 0)
		fs_watch_add(fs, inode, hold.fd);
}

static void *
echo_main(void *data)
{
	struct fs *fs = data;
	struct fs_echo *echo = fs->echo;
	struct echo_item *item;

	(void)fs_inodes_each(fs, settle, NULL);
	(void)make_process(fs);
	while ((item = next_item(echo))) {
		do_item(fs, item);
		echo_item_free(fs, item);
		nap(echo);
	}
	return NULL;
}

void
fs_echo(struct fs *fs)
{
	struct fs_echo *echo = fs->echo;

	if (!echo || fs_echo_is_on(fs))
		return;
	pthread_mutex_lock(&echo->lock);
	if (!echo->started && !echo->ending) {
		echo->started =
			pthread_create(&echo->thread, NULL, echo_main, fs) == 0;
		atomic_store(&fs->echoing, echo->started);
	}
	pthread_mutex_unlock(&echo->lock);
}

/* ---- what is told ---- */

/* A directory's own attributes are told in the one above it, as well. */
static void
queue_itself(struct fs *fs, const struct fs_echo_change *change)
{
	struct fs_echo_change of = *change;
	struct fs_inode *parent = NULL;
	char name[NAME_MAX + 1] = ".";
	int r = fs_inode_place(fs, change->dir, &parent, name);

	if (r == 0)
		of.dir = parent;
	else if (!(change->dir->flags & FS_INODE_ROOT))
		return;
	of.name = name;
	of.mask &= IN_ATTRIB;
	of.object = 0;
	pthread_mutex_lock(&fs->echo->lock);
	(void)echo_queue_add(&fs->echo->queue, &of, clock_mono_ns());
	pthread_cond_signal(&fs->echo->more);
	pthread_mutex_unlock(&fs->echo->lock);
	fs_inode_put(fs, parent);
}

/* Nobody can watch a directory that the kernel does not know. */
static bool
is_known(struct fs *fs, struct fs_inode *dir)
{
	struct fs_shard *shard = fs_shard_of(fs, dir);
	bool known;

	fs_shard_lock(shard);
	known = dir->nlookup > 0 || (dir->flags & FS_INODE_ROOT);
	fs_shard_unlock(shard);
	return known;
}

/*
 * What is open for writing inside and passes by us is mostly written there, by
 * a process that has not opened it itself, perhaps, so that passthrough.c does
 * not know it.
 */
static bool
is_past_us(struct fs *fs, const struct fs_echo_change *change)
{
	const unsigned int other =
		IN_ALL_EVENTS & ~(IN_MODIFY | IN_CLOSE_WRITE);
	struct fs_shard *shard;
	bool passes = false;

	if (!fs->config.passthrough || change->pid == 0 || !change->inode ||
	    (change->mask & other))
		return false;
	shard = fs_shard_of(fs, change->inode);
	fs_shard_lock(shard);
	for (const struct fs_handle *handle = change->inode->handles;
	     handle && !passes; handle = handle->next)
		passes = handle->backing &&
			 (handle->flags & O_ACCMODE) != O_RDONLY;
	fs_shard_unlock(shard);
	return passes && tree_caller_is_fenced(change->pid);
}

static bool
is_ours(struct fs *fs, const struct fs_echo_change *change)
{
	struct fs_echo *echo = fs->echo;

	if (is_past_us(fs, change))
		return true;
	return change->may_be_ours &&
	       (echo_is_noted(echo, fs_node_id(fs, change->dir),
			      change->name) ||
		(change->inode &&
		 echo_is_noted(echo, fs_node_id(fs, change->inode), "")));
}

void
fs_echo_changed(struct fs *fs, const struct fs_echo_change *change)
{
	struct fs_echo_change what = *change;
	struct fs_echo *echo = fs->echo;

	if (!fs_echo_is_on(fs) || !is_known(fs, what.dir) ||
	    fs_name_is_reserved(fs, what.dir, what.name) || is_ours(fs, change))
		return;
	if (what.name[0] == '\0') {
		if ((what.mask & IN_ATTRIB) && what.now)
			queue_itself(fs, &what);
		return;
	}
	/* Whoever is in the one that came after it would lose his place. */
	if (what.now && what.inode && fs_inode_is_dir(what.inode)) {
		what.replaced = false;
		if (!(what.mask & (IN_CREATE | IN_MOVED_TO)))
			what.mask &= ~(unsigned int)(IN_DELETE | IN_MOVED_FROM);
	}
	pthread_mutex_lock(&echo->lock);
	(void)echo_queue_add(&echo->queue, &what, clock_mono_ns());
	pthread_cond_signal(&echo->more);
	pthread_mutex_unlock(&echo->lock);
}

uint64_t
fs_echo_dropped(struct fs *fs)
{
	uint64_t n = 0;

	if (fs->echo) {
		pthread_mutex_lock(&fs->echo->lock);
		n = fs->echo->queue.dropped;
		pthread_mutex_unlock(&fs->echo->lock);
	}
	return n;
}

/* ---- its life ---- */

int
fs_echo_new(struct fs *fs)
{
	struct fs_echo *echo;
	pthread_condattr_t attr;

	if (!fs->config.echo_ask)
		return 0;
	echo = calloc(1, sizeof(*echo));
	if (!echo)
		return -ENOMEM;
	echo->sock = echo->pidfd = -1;
	echo_queue_init(&echo->queue);
	pthread_mutex_init(&echo->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&echo->more, &attr);
	pthread_condattr_destroy(&attr);
	fs->echo = echo;
	return 0;
}

void
fs_echo_stop(struct fs *fs)
{
	struct fs_echo *echo = fs->echo;
	bool started;

	if (!echo)
		return;
	atomic_store(&fs->echoing, false);
	pthread_mutex_lock(&echo->lock);
	echo->ending = true;
	started = echo->started;
	echo->started = false;
	pthread_cond_signal(&echo->more);
	/* It may be waiting for an answer that does not come any more. */
	if (echo->sock >= 0)
		(void)shutdown(echo->sock, SHUT_RDWR);
	pthread_mutex_unlock(&echo->lock);
	if (started)
		(void)pthread_join(echo->thread, NULL);
	end_process(echo);
}

void
fs_echo_free(struct fs *fs)
{
	struct fs_echo *echo = fs->echo;

	if (!echo)
		return;
	fs_echo_stop(fs);
	echo_queue_fini(fs, &echo->queue);
	pthread_mutex_destroy(&echo->lock);
	pthread_cond_destroy(&echo->more);
	fs->echo = NULL;
	free(echo);
}
