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
#include <sys/un.h>

#include "base/fd.h"
#include "warden/observer_priv.h"

static struct pending *
find_pending(struct observer *o, uint64_t id)
{
	for (size_t i = 0; i < OBSERVER_PENDING; i++)
		if (o->pending[i].id == id)
			return &o->pending[i];
	return NULL;
}

/* Called with the lock held; false: no room now. */
static bool
send_one(struct observer *o, struct pending *p)
{
	struct wire_msg msg = { .type = WIRE_CONNECT,
				.flags = WIRE_CONNECT_CALL };
	ssize_t n;

	msg.id = p->id;
	msg.pid = p->pid;
	msg.value = p->fd;
	msg.status = (int32_t)p->len;
	memcpy(msg.text, p->address, p->len);
	n = send(o->config.usher_sock, &msg, sizeof(msg),
		 MSG_DONTWAIT | MSG_NOSIGNAL);
	p->sent = n >= 0;
	if (n >= 0)
		return true;
	if (errno == EAGAIN)
		return false;
	observer_answer(o, p->id, EACCES, 0);
	p->id = 0;
	return true;
}

/* Returns whether calls are left that found no room. */
static bool
send_pending(struct observer *o)
{
	bool left = false;

	pthread_mutex_lock(&o->pending_lock);
	for (size_t i = 0; i < OBSERVER_PENDING && !left; i++) {
		struct pending *p = &o->pending[i];

		if (p->id != 0 && !p->sent)
			left = !send_one(o, p);
	}
	pthread_mutex_unlock(&o->pending_lock);
	return left;
}

void
connector_take(struct observer *o, const struct seccomp_notif *notif)
{
	unsigned char address[WIRE_ADDRESS] = { 0 };
	uint32_t len = (uint32_t)notif->data.args[2];
	struct pending *pending;
	bool left = false;
	int r;

	o->connects++;
	if (o->config.usher_sock < 0) {
		observer_answer(o, notif->id, EACCES, 0);
		return;
	}

	/* Larger than any address: what the kernel says to that. */
	if (len > sizeof(address)) {
		observer_answer(o, notif->id, EINVAL, 0);
		return;
	}
	r = len == 0 ? 0
		     : call_read((pid_t)notif->pid, notif->data.args[1],
				 address, len);
	if (r < 0) {
		o->unreadable++;
		observer_answer(o, notif->id, r == -EFAULT ? EFAULT : EACCES,
				0);
		return;
	}

	pthread_mutex_lock(&o->pending_lock);
	pending = find_pending(o, 0);
	if (pending) {
		pending->id = notif->id;
		pending->pid = (pid_t)notif->pid;
		pending->fd = (int)notif->data.args[0];
		pending->len = len;
		pending->sent = false;
		memcpy(pending->address, address, sizeof(address));
		left = !send_one(o, pending);
	}
	pthread_mutex_unlock(&o->pending_lock);
	if (!pending)
		observer_answer(o, notif->id, EAGAIN, 0);

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
	if (p) {
		done = *p;
		p->id = 0;
	}
	pthread_mutex_unlock(&o->pending_lock);
	if (!p)
		return;
	if (msg->value > 0)
		msg->value = -EACCES;
	if (msg->flags & WIRE_CONNECTED_REFUSED)
		record_refusal(o, &done, msg);
	observer_answer(o, done.id, -msg->value, 0);
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
	for (size_t i = 0; i < OBSERVER_PENDING; i++) {
		if (o->pending[i].id == 0)
			continue;
		observer_answer(o, o->pending[i].id, EACCES, 0);
		o->pending[i].id = 0;
	}
	pthread_mutex_unlock(&o->pending_lock);
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
	for (size_t i = 0; i < o->look.n_areas; i++)
		if (o->look.areas[i].kind != AREA_RW)
			tell_usher(o, WIRE_CONNECT_BORN, o->look.areas[i].path);
}
