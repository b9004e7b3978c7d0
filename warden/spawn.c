/* SPDX-License-Identifier: MIT */

/*
 * Orders go to the keeper, reports come from it, both by the id of a command.
 * What the keeper's socket does not take now waits in a queue with copies of
 * its descriptors: the loop never waits for the keeper, which may be waiting
 * for the loop.
 *
 * A command is in the list until its tree is gone and its owner has forgotten
 * it.  Until then a process whose chain of parents leads to the command's
 * first process is the command's: orphans of a pid namespace fall to its first
 * process, so no chain leads past it.
 */

#include "warden/spawn.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/spawn_spec.h"
#include "base/wire.h"
#include "warden/life.h"
#include "warden/observer.h"
#include "warden/warden_priv.h"

/* Parents between a process and its command's first one, at most. */
#define CHAIN_MAX 256

struct command {
	LIST_ENTRY(command) link;
	uint64_t id;
	const struct spawn_events *events; /* NULL: forgotten */
	void *data;
	char *origin, *call;
	pid_t first;   /* host pid of its first process; 0: none (any more) */
	bool admitted; /* the observer knows its home */
	int listener;  /* of a filter of its own, the observer's; -1: none */
	struct observer_home home;
	bool over; /* failed, or gone */
	struct warden *warden;
	uv_work_t work; /* before it may run, on the pool */
	bool working;
	bool removed; /* freed when the work is done */
};

struct order {
	TAILQ_ENTRY(order) link;
	struct wire_msg msg;
	int fds[FD_PASS_MAX];
	size_t nfds;
};

struct spawner {
	struct warden *warden;
	uint64_t last_id;
	size_t count;
	/* Guards the list, `first`, origin and call against other threads. */
	pthread_mutex_t lock;
	LIST_HEAD(command_list, command) commands;
	TAILQ_HEAD(orders, order) orders; /* not sent yet */
};

static void
close_all(int *fds, size_t nfds)
{
	for (size_t i = 0; i < nfds; i++)
		closep(&fds[i]);
}

static struct command *
command_free(struct command *command)
{
	if (!command)
		return NULL;
	free(command->origin);
	free(command->call);
	free(command);
	return NULL;
}
DEFINE_CLEANUP(command)

static void
order_free(struct order *order)
{
	close_all(order->fds, order->nfds);
	free(order);
}

int
spawner_new(struct warden *warden, struct spawner **ret_spawner)
{
	struct spawner *spawner = calloc(1, sizeof(*spawner));

	if (!spawner)
		return -ENOMEM;
	spawner->warden = warden;
	LIST_INIT(&spawner->commands);
	TAILQ_INIT(&spawner->orders);
	(void)pthread_mutex_init(&spawner->lock, NULL);
	*ret_spawner = spawner;
	return 0;
}

struct spawner *
spawner_free(struct spawner *spawner)
{
	struct command *command;
	struct order *order;

	if (!spawner)
		return NULL;
	while ((command = LIST_FIRST(&spawner->commands))) {
		LIST_REMOVE(command, link);
		command_free(command);
	}
	while ((order = TAILQ_FIRST(&spawner->orders))) {
		TAILQ_REMOVE(&spawner->orders, order, link);
		order_free(order);
	}
	(void)pthread_mutex_destroy(&spawner->lock);
	free(spawner);
	return NULL;
}

static struct command *
find(const struct warden *warden, uint64_t id)
{
	struct command *command;

	if (!warden->spawner)
		return NULL;
	LIST_FOREACH(command, &warden->spawner->commands, link)
	if (command->id == id)
		return command;
	return NULL;
}

static void
command_remove(struct spawner *spawner, struct command *command)
{
	(void)pthread_mutex_lock(&spawner->lock);
	LIST_REMOVE(command, link);
	spawner->count--;
	(void)pthread_mutex_unlock(&spawner->lock);
	if (command->working)
		command->removed = true;
	else
		command_free(command);
}

/* ---- orders ---- */

static int
enqueue(struct spawner *spawner, const struct wire_msg *msg, const int *fds,
	size_t nfds)
{
	struct order *order = calloc(1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	order->msg = *msg;
	for (; order->nfds < nfds; order->nfds++) {
		int copy = fcntl(fds[order->nfds], F_DUPFD_CLOEXEC, 3);

		if (copy < 0) {
			int r = -errno;

			order_free(order);
			return r;
		}
		order->fds[order->nfds] = copy;
	}
	TAILQ_INSERT_TAIL(&spawner->orders, order, link);
	return life_watch_keeper(spawner->warden, true);
}

static int
send_order(struct spawner *spawner, const struct wire_msg *msg, const int *fds,
	   size_t nfds)
{
	struct warden *warden = spawner->warden;
	int r = -EAGAIN;

	if (warden->keeper_gone)
		return -EPIPE;
	/* In their order. */
	if (TAILQ_EMPTY(&spawner->orders))
		r = fd_send(warden->opt.keeper_fd, msg, sizeof(*msg), fds,
			    nfds);
	return r == -EAGAIN ? enqueue(spawner, msg, fds, nfds) : r;
}

void
spawner_flush(struct spawner *spawner)
{
	struct warden *warden = spawner->warden;
	struct order *order;

	while ((order = TAILQ_FIRST(&spawner->orders))) {
		int r = fd_send(warden->opt.keeper_fd, &order->msg,
				sizeof(order->msg), order->fds, order->nfds);

		if (r == -EAGAIN)
			return;
		TAILQ_REMOVE(&spawner->orders, order, link);
		order_free(order);
	}
	(void)life_watch_keeper(warden, false);
}

static int
encode(const struct spawn_request *request, const char *console, int *ret_fd)
{
	struct spawn_spec spec = {
		.flags = (request->umask >= 0 ? SPAWN_SPEC_UMASK : 0) |
			 (request->terminal ? SPAWN_SPEC_TERMINAL : 0),
		.umask = request->umask >= 0 ? (uint32_t)request->umask : 0,
		.cwd = (char *)(uintptr_t)request->cwd,
		.console = (char *)(uintptr_t)console,
		.argv = *request->argv,
		.env = *request->env,
	};
	_cleanup_(buf_fini) struct buf bytes = { 0 };
	int r;

	r = spawn_spec_encode(&spec, &bytes);
	if (r < 0)
		return r;
	return fd_memfile("pale-command", bytes.data, bytes.len, ret_fd);
}

static int
add_command(struct spawner *spawner, const struct spawn_request *request,
	    const struct spawn_events *events, void *data,
	    struct command **ret_command)
{
	_cleanup_(command_freep) struct command *command =
		calloc(1, sizeof(*command));

	if (!command)
		return -ENOMEM;
	command->origin = strdup(request->origin);
	command->call = request->call ? strdup(request->call) : NULL;
	if (!command->origin || (request->call && !command->call))
		return -ENOMEM;
	command->warden = spawner->warden;
	command->work.data = command;
	command->listener = -1;
	command->events = events;
	command->data = data;
	command->id = ++spawner->last_id;
	(void)pthread_mutex_lock(&spawner->lock);
	LIST_INSERT_HEAD(&spawner->commands, command, link);
	spawner->count++;
	(void)pthread_mutex_unlock(&spawner->lock);
	*ret_command = take_ptr(&command);
	return 0;
}

/* What an order takes along, beside the spec and what the keeper keeps. */
struct parcel {
	enum wire_type type;
	const int *fds;
	size_t nfds;
	const char *console;
};

static int
send_parcel(struct spawner *spawner, const struct spawn_request *request,
	    const struct parcel *parcel, uint64_t id)
{
	const int kept[] = { request->drain[0], request->drain[1],
			     request->dir };
	const uint32_t bits[] = { WIRE_SPAWN_OUT, WIRE_SPAWN_ERR,
				  WIRE_SPAWN_DIR };
	struct wire_msg msg = { .type = parcel->type,
				.id = id,
				.flags = request->terminal ? WIRE_SPAWN_TERMINAL
							   : 0 };
	_cleanup_(closep) int spec = -1;
	int fds[FD_PASS_MAX], r;
	size_t n = 0;

	r = encode(request, parcel->console, &spec);
	if (r < 0)
		return r;
	fds[n++] = spec;
	for (size_t i = 0; i < parcel->nfds; i++)
		fds[n++] = parcel->fds[i];
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (kept[i] < 0)
			continue;
		msg.flags |= bits[i];
		fds[n++] = kept[i];
	}
	return send_order(spawner, &msg, fds, n);
}

static int
start(struct warden *warden, const struct spawn_request *request,
      const struct parcel *parcel, const struct spawn_events *events,
      void *data, uint64_t *ret_id)
{
	struct spawner *spawner = warden->spawner;
	struct command *command;
	int r;

	if (!spawner || warden->ending || warden->keeper_gone)
		return -EPIPE;
	if (request->argv->count == 0 || !request->cwd || !request->origin)
		return -EINVAL;
	if (spawner->count >= LIMIT_COMMANDS)
		return -EAGAIN;
	/* Whatever it was made for, somebody counts on it now. */
	warden->used = true;
	r = add_command(spawner, request, events, data, &command);
	if (r < 0)
		return r;
	r = send_parcel(spawner, request, parcel, command->id);
	if (r < 0)
		command_remove(spawner, command);
	else
		*ret_id = command->id;
	return r;
}

int
spawn_start(struct warden *warden, const struct spawn_request *request,
	    const struct spawn_events *events, void *data, uint64_t *ret_id)
{
	const struct parcel parcel = { .type = WIRE_SPAWN,
				       .fds = request->fds,
				       .nfds = 3 };

	return start(warden, request, &parcel, events, data, ret_id);
}

int
spawn_enter(struct warden *warden, const struct spawn_request *request,
	    const struct spawn_terminal *terminal,
	    const struct spawn_events *events, void *data, uint64_t *ret_id)
{
	const struct parcel parcel = { .type = WIRE_ENTER,
				       .fds = &terminal->sock,
				       .nfds = 1,
				       .console = terminal->console };

	return start(warden, request, &parcel, events, data, ret_id);
}

static int
order_about(struct warden *warden, struct wire_msg *msg)
{
	const struct command *command = find(warden, msg->id);

	if (!command || command->over)
		return -ESRCH;
	return send_order(warden->spawner, msg, NULL, 0);
}

int
spawn_signal(struct warden *warden, uint64_t id, int signal, bool tree)
{
	struct wire_msg msg = { .type = WIRE_CMD_SIGNAL,
				.id = id,
				.value = signal,
				.flags = tree ? WIRE_CMD_TREE : 0 };

	return order_about(warden, &msg);
}

int
spawn_signal_group(struct warden *warden, uint64_t id, int signal)
{
	struct wire_msg msg = { .type = WIRE_CMD_SIGNAL,
				.id = id,
				.value = signal,
				.flags = WIRE_CMD_GROUP };

	return order_about(warden, &msg);
}

int
spawn_kill(struct warden *warden, uint64_t id)
{
	struct wire_msg msg = { .type = WIRE_CMD_KILL, .id = id };

	return order_about(warden, &msg);
}

void
spawn_forget(struct warden *warden, uint64_t id)
{
	const struct wire_msg msg = { .type = WIRE_FORGET, .id = id };
	struct command *command = find(warden, id);

	if (!command)
		return;
	command->events = NULL;
	(void)send_order(warden->spawner, &msg, NULL, 0);
	if (command->over)
		command_remove(warden->spawner, command);
}

pid_t
spawn_first(const struct warden *warden, uint64_t id)
{
	const struct command *command = find(warden, id);

	return command ? command->first : 0;
}

/* ---- reports ---- */

/* What it does is observed from now on, and whose it is can be told. */
static int
admit(struct spawner *spawner, struct command *command,
      const struct wire_msg *msg, int *fds, size_t nfds)
{
	struct observer *observer = spawner->warden->observer;
	struct wire_born born;
	pid_t first = 0;
	int r;

	if (nfds == 0)
		return -EPROTO;
	r = fd_pidfd_pid(fds[0], &first);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&spawner->lock);
	command->first = first;
	(void)pthread_mutex_unlock(&spawner->lock);
	memcpy(&born, msg->text, sizeof(born));
	command->home = (struct observer_home){ .mnt_dev = born.mnt_dev,
						.mnt_ino = born.mnt_ino,
						.root_mount = born.root_mount };
	if (!observer)
		return nfds > 1 ? -EPROTO : 0;
	if (nfds > 1)
		command->listener = take_fd(&fds[1]);
	r = observer_admit(observer, &command->home, command->listener);
	command->admitted = r == 0;
	if (r < 0)
		command->listener = -1;
	return r;
}

static void
let_go(struct command *command)
{
	const struct wire_msg order = { .type = WIRE_GO, .id = command->id };

	(void)send_order(command->warden->spawner, &order, NULL, 0);
}

/* What the host has done until now, the command sees.  On the pool. */
static void
catch_up(uv_work_t *work)
{
	const struct command *command = work->data;

	(void)fs_barrier(command->warden->fs);
}

static void
on_caught_up(uv_work_t *work, int status)
{
	struct command *command = work->data;

	(void)status;
	command->working = false;
	if (command->removed)
		command_free(command);
	else if (!command->over)
		let_go(command);
}

static void
on_born(struct spawner *spawner, struct command *command,
	const struct wire_msg *msg, int *fds, size_t nfds)
{
	const struct wire_msg death = { .type = WIRE_CMD_KILL,
					.id = command->id };
	struct warden *warden = spawner->warden;

	/* Unobserved it would not be what was promised. */
	if (admit(spawner, command, msg, fds, nfds) < 0) {
		(void)send_order(spawner, &death, NULL, 0);
		return;
	}
	command->working =
		warden->fs && uv_queue_work(&warden->loop, &command->work,
					    catch_up, on_caught_up) == 0;
	if (!command->working)
		let_go(command);
}

static void
set_over(struct spawner *spawner, struct command *command)
{
	command->over = true;
	(void)pthread_mutex_lock(&spawner->lock);
	command->first = 0;
	(void)pthread_mutex_unlock(&spawner->lock);
	if (command->admitted && spawner->warden->observer)
		observer_dismiss(spawner->warden->observer, &command->home);
	command->admitted = false;
	command->listener = -1;
}

int
spawner_listener(const struct spawner *spawner, uint64_t id)
{
	const struct command *command;

	LIST_FOREACH(command, &spawner->commands, link)
	if (command->id == id)
		return command->listener;
	return -1;
}

static void
on_spawned(struct spawner *spawner, struct command *command,
	   const struct wire_msg *msg, const int *fds, size_t nfds)
{
	const struct spawn_events *events = command->events;
	bool by_exec = msg->flags & WIRE_SPAWNED_EXEC;
	pid_t pid = 0;

	if (msg->value == 0) {
		if (nfds > 0)
			(void)fd_pidfd_pid(fds[0], &pid);
		if (events && events->started)
			events->started(command->data, pid);
		return;
	}
	set_over(spawner, command);
	if (events && events->failed)
		events->failed(command->data, msg->value, by_exec,
			       msg->text[0] ? msg->text
					    : strerror(-msg->value));
}

static void
on_exited(const struct command *command, const struct wire_msg *msg)
{
	const struct rusage usage = {
		.ru_utime = { (time_t)(msg->user_us / 1000000),
			      (suseconds_t)(msg->user_us % 1000000) },
		.ru_stime = { (time_t)(msg->sys_us / 1000000),
			      (suseconds_t)(msg->sys_us % 1000000) },
		.ru_maxrss = (long)msg->max_rss_kib,
	};

	if (command->events && command->events->exited)
		command->events->exited(command->data, msg->status, &usage);
}

static void
on_gone(struct spawner *spawner, struct command *command)
{
	const struct spawn_events *events = command->events;

	set_over(spawner, command);
	if (!events)
		command_remove(spawner, command);
	else if (events->gone)
		events->gone(command->data);
}

bool
spawner_take(struct spawner *spawner, struct wire_msg *msg, int *fds,
	     size_t nfds)
{
	struct command *command;

	if (msg->type != WIRE_CMD_BORN && msg->type != WIRE_SPAWNED &&
	    msg->type != WIRE_CMD_EXITED && msg->type != WIRE_CMD_GONE)
		return false;
	msg->text[sizeof(msg->text) - 1] = '\0';
	command = find(spawner->warden, msg->id);
	if (command && msg->type == WIRE_CMD_BORN)
		on_born(spawner, command, msg, fds, nfds);
	else if (command && msg->type == WIRE_SPAWNED)
		on_spawned(spawner, command, msg, fds, nfds);
	else if (command && msg->type == WIRE_CMD_EXITED)
		on_exited(command, msg);
	else if (command)
		on_gone(spawner, command);
	close_all(fds, nfds);
	return true;
}

/* ---- whose is a process? ---- */

static pid_t
parent_of(pid_t pid)
{
	_cleanup_(freep) char *text = NULL;
	char path[32], *at;
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (fd_read_path(AT_FDCWD, path, 65536, &text, &len) < 0)
		return 0;
	at = strstr(text, "\nPPid:\t");
	return at ? (pid_t)strtol(at + strlen("\nPPid:\t"), NULL, 10) : 0;
}

/* Called with the lock held. */
static const struct command *
command_of(const struct spawner *spawner, pid_t pid)
{
	const struct command *command;

	LIST_FOREACH(command, &spawner->commands, link)
	if (command->first == pid)
		return command;
	return NULL;
}

bool
spawn_attribute(struct warden *warden, pid_t host_pid, char **ret_origin,
		char **ret_call)
{
	struct spawner *spawner = warden->spawner;
	bool found = false;

	for (int i = 0; spawner && i < CHAIN_MAX && host_pid > 1 && !found;
	     i++) {
		const struct command *command;

		(void)pthread_mutex_lock(&spawner->lock);
		command = command_of(spawner, host_pid);
		if (command) {
			found = true;
			*ret_origin = strdup(command->origin);
			*ret_call =
				command->call ? strdup(command->call) : NULL;
		}
		(void)pthread_mutex_unlock(&spawner->lock);
		if (!found)
			host_pid = parent_of(host_pid);
	}
	return found && *ret_origin;
}
