/* SPDX-License-Identifier: MIT */

/*
 * The second thread: between the watcher, which copies a connect's address and
 * goes on, and the usher, which performs it.  Whatever the usher needs time
 * for, only the inmate that asked waits.
 *
 * A call is in `pending` from its notification to its answer.  Nothing here
 * waits for room in the socket: what does not fit stays unsent until poll()
 * says that there is some.
 */

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/limits.h"
#include "warden/observer_priv.h"

static struct pending *
find_pending(struct observer *o, uint64_t token)
{
	for (size_t i = 0; i < LIMIT_CONNECTS; i++)
		if (o->pending[i].token == token)
			return &o->pending[i];
	return NULL;
}

/*
 * The world's own listener the usher has itself, and asks it whether a call is
 * still waited for.  Of another it is told by a descriptor of the thread, which
 * is the one that waits if the call still does once it is open.  Returns
 * -ESRCH when it does not, -1 where there can be no such descriptor.
 */
static int
hold_thread(const struct observer *o, const struct pending *p)
{
	_cleanup_(closep) int fd = -1;

	if (p->listener == o->config.listener)
		return -1;
	fd = (int)syscall(SYS_pidfd_open, p->pid, FD_PIDFD_THREAD);
	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (!observer_waits(p->listener, p->id))
		return -ESRCH;
	return take_fd(&fd);
}

/* Called with the lock held; false: no room now. */
static bool
send_one(struct observer *o, struct pending *p)
{
	_cleanup_(closep) int holder = hold_thread(o, p);
	struct wire_msg msg = { .type = WIRE_CONNECT,
				.flags = WIRE_CONNECT_CALL };
	int r;

	if (holder == -ESRCH) {
		p->token = 0;
		return true;
	}
	msg.id = p->token;
	msg.pid = p->pid;
	msg.value = p->fd;
	msg.user_us = p->listener == o->config.listener ? p->id : 0;
	msg.status = (int32_t)p->len;
	memcpy(msg.text, p->address, p->len);
	r = fd_send_now(o->config.usher_sock, &msg, sizeof(msg), &holder,
			holder >= 0);
	p->sent = r == 0;
	if (r == 0)
		return true;
	if (r == -EAGAIN)
		return false;
	observer_answer(o, p->listener, p->id, EACCES);
	p->token = 0;
	return true;
}

/* Returns whether calls are left that found no room. */
static bool
send_pending(struct observer *o)
{
	bool left = false;

	pthread_mutex_lock(&o->pending_lock);
	for (size_t i = 0; i < LIMIT_CONNECTS && !left; i++) {
		struct pending *p = &o->pending[i];

		if (p->token != 0 && !p->sent)
			left = !send_one(o, p);
	}
	pthread_mutex_unlock(&o->pending_lock);
	return left;
}

void
connector_take(struct observer *o, int listener,
	       const struct seccomp_notif *notif)
{
	unsigned char address[WIRE_ADDRESS] = { 0 };
	uint32_t len = (uint32_t)notif->data.args[2];
	struct pending *pending;
	bool left = false;
	int r;

	o->connects++;
	if (o->config.usher_sock < 0) {
		observer_answer(o, listener, notif->id, EACCES);
		return;
	}

	/* Larger than any address: what the kernel says to that. */
	if (len > sizeof(address)) {
		observer_answer(o, listener, notif->id, EINVAL);
		return;
	}
	r = len == 0 ? 0
		     : call_read((pid_t)notif->pid, notif->data.args[1],
				 address, len);
	if (r < 0) {
		o->unreadable++;
		observer_answer(o, listener, notif->id,
				r == -EFAULT ? EFAULT : EACCES);
		return;
	}

	pthread_mutex_lock(&o->pending_lock);
	pending = find_pending(o, 0);
	if (pending) {
		pending->token = ++o->last_token;
		pending->id = notif->id;
		pending->listener = listener;
		pending->pid = (pid_t)notif->pid;
		pending->fd = (int)notif->data.args[0];
		pending->len = len;
		pending->sent = false;
		memcpy(pending->address, address, sizeof(address));
		left = !send_one(o, pending);
	}
	pthread_mutex_unlock(&o->pending_lock);
	if (!pending)
		observer_answer(o, listener, notif->id, EAGAIN);

	/* The other thread waits for room. */
	if (left)
		(void)!write(o->connect_event, &(uint64_t){ 1 },
			     sizeof(uint64_t));
}

/* The name as text: a path, or "@name" with NULs made visible. */
static void
address_text(const struct pending *p, char *text, size_t size)
{
	const size_t head = offsetof(struct sockaddr_un, sun_path);
	size_t len = p->len > head ? p->len - head : 0;

	if (len > sizeof(p->address) - head)
		len = sizeof(p->address) - head;
	if (len >= size)
		len = size - 1;
	memcpy(text, p->address + head, len);
	text[len] = '\0';
	if (len > 0 && text[0] == '\0')
		for (size_t i = 0; i < len; i++)
			if (text[i] == '\0')
				text[i] = '@';
}

static void
record_refusal(struct observer *o, const struct pending *p,
	       const struct wire_msg *msg)
{
	struct policy *policy = o->config.policy_get(o->config.data);
	char text[WIRE_ADDRESS + 1];
	struct denial denial = {
		.code = POLICY_CODE_SANDBOX_DENIED,
		.rule = "mode",
		.op = POLICY_OP_CONNECT,
		.path = msg->text,
		.error = -msg->value,
		.pid = p->pid,
	};

	if (msg->text[0] == '\0') {
		address_text(p, text, sizeof(text));
		denial.path = text;
	}
	observer_record(o, policy, &denial);
	policy_unref(policy);
}

static void
take_answer(struct observer *o, struct wire_msg *msg)
{
	struct pending done = { 0 }, *p;

	msg->text[sizeof(msg->text) - 1] = '\0';
	if (msg->type != WIRE_CONNECTED)
		return;
	if (msg->flags & WIRE_CONNECTED_HELLO) {
		uint64_t identity[2];

		memcpy(identity, msg->text, sizeof(identity));
		atomic_store(&o->look.ns_dev, identity[0]);
		atomic_store(&o->look.ns_ino, identity[1]);
		return;
	}

	pthread_mutex_lock(&o->pending_lock);
	p = msg->id == 0 ? NULL : find_pending(o, msg->id);
	if (p)
		done = *p;
	pthread_mutex_unlock(&o->pending_lock);
	if (!p)
		return;
	if (msg->value > 0)
		msg->value = -EACCES;
	if (msg->flags & WIRE_CONNECTED_REFUSED)
		record_refusal(o, &done, msg);

	/* Unless its listener was closed meanwhile. */
	pthread_mutex_lock(&o->pending_lock);
	p = find_pending(o, msg->id);
	if (p) {
		observer_answer(o, p->listener, p->id, -msg->value);
		p->token = 0;
	}
	pthread_mutex_unlock(&o->pending_lock);
}

/* Returns false when the usher is gone. */
static bool
receive(struct observer *o)
{
	int fds[FD_PASS_MAX];
	struct wire_msg msg;
	size_t nfds = 0;
	ssize_t n;

	n = fd_recv(o->config.usher_sock, &msg, sizeof(msg), fds, &nfds);
	if (n == 0 || (n < 0 && n != -EMSGSIZE && n != -EAGAIN))
		return false;
	for (size_t i = 0; n > 0 && i < nfds; i++)
		(void)close(fds[i]);
	if (n == (ssize_t)sizeof(msg))
		take_answer(o, &msg);
	return true;
}

/* Nobody will answer any more: refused. */
static void
refuse_pending(struct observer *o)
{
	pthread_mutex_lock(&o->pending_lock);
	for (size_t i = 0; i < LIMIT_CONNECTS; i++) {
		if (o->pending[i].token == 0)
			continue;
		observer_answer(o, o->pending[i].listener, o->pending[i].id,
				EACCES);
		o->pending[i].token = 0;
	}
	pthread_mutex_unlock(&o->pending_lock);
}

void
connector_drop(struct observer *o, int listener)
{
	pthread_mutex_lock(&o->pending_lock);
	for (size_t i = 0; i < LIMIT_CONNECTS; i++)
		if (o->pending[i].listener == listener)
			o->pending[i].token = 0;
	pthread_mutex_unlock(&o->pending_lock);
}

void
connector_home(struct observer *o, const struct observer_home *home, bool there)
{
	const struct wire_msg msg = { .type = WIRE_CONNECT,
				      .flags = WIRE_CONNECT_HOME,
				      .id = home->root_mount,
				      .value = there };

	/* Unsaid only makes the usher stricter: the loop does not wait. */
	if (o->config.usher_sock >= 0)
		(void)send(o->config.usher_sock, &msg, sizeof(msg),
			   MSG_DONTWAIT | MSG_NOSIGNAL);
}

void *
connector_main(void *data)
{
	struct observer *o = data;
	bool left = false, gone = o->config.usher_sock < 0;

	while (!atomic_load(&o->stopping)) {
		struct pollfd pfds[3] = {
			{ .fd = o->stop_event, .events = POLLIN },
			{ .fd = o->connect_event, .events = POLLIN },
			{ .fd = gone ? -1 : o->config.usher_sock,
			  .events = (short)(POLLIN | (left ? POLLOUT : 0)) },
		};
		uint64_t count;

		if (poll(pfds, 3, -1) < 0)
			continue;
		if (pfds[1].revents & POLLIN)
			(void)!read(o->connect_event, &count, sizeof(count));
		if (pfds[2].revents & (POLLIN | POLLHUP | POLLERR))
			gone = !receive(o);
		if (gone)
			refuse_pending(o);
		else
			left = send_pending(o);
	}
	refuse_pending(o);
	atomic_store(&o->connector_ended, true);
	return NULL;
}

static void
tell_usher(struct observer *o, enum wire_connect what, const char *path)
{
	struct wire_msg msg = { .type = WIRE_CONNECT, .flags = (uint32_t)what };

	/* Unsaid only makes the usher stricter. */
	if (strlen(path) >= sizeof(msg.text))
		return;
	memcpy(msg.text, path, strlen(path));
	(void)fd_send(o->config.usher_sock, &msg, sizeof(msg), NULL, 0);
}

void
connector_setup(struct observer *o, const struct policy *policy)
{
	if (o->config.usher_sock < 0)
		return;
	for (size_t i = 0; i < policy->sockets.count; i++)
		tell_usher(o, WIRE_CONNECT_LET_IN, policy->sockets.items[i]);
	for (size_t i = 0; i < policy->name_sockets.count; i++)
		tell_usher(o, WIRE_CONNECT_LET_IN,
			   policy->name_sockets.items[i]);
	for (size_t i = 0; i < o->look.n_areas; i++)
		if (o->look.areas[i].kind != AREA_RW)
			tell_usher(o, WIRE_CONNECT_BORN, o->look.areas[i].path);
}
