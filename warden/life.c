/* SPDX-License-Identifier: MIT */

/*
 * Whatever ends a world (its keeper, its mount, a client, a signal) goes
 * through warden_end() once.  From there the mount is taken away by who made
 * it, and only then does the service stop: the other order would show every
 * visitor ENOTCONN for a moment.  The wait is bounded.
 */

#include "warden/life.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/hostmount.h"
#include "warden/jobs.h"
#include "warden/observer.h"
#include "warden/spawn.h"
#include "warden/terms.h"
#include "warden/tree.h"
#include "warden/warden_priv.h"

/* How long a mount or a world may take to go before it is cut off. */
#define END_WAIT_MS 3000

/* How long calls in hand and the last flush may take. */
#define FINISH_WAIT_S 30

int
life_send(int fd, enum wire_type type)
{
	const struct wire_msg msg = { .type = type };

	return fd_send(fd, &msg, sizeof(msg), NULL, 0);
}

void
life_send_failure(int fd, int r, const struct errmsg *why)
{
	struct wire_msg msg = { .type = WIRE_FAILED, .value = -r };

	memcpy(msg.text, why->text, strnlen(why->text, sizeof(msg.text) - 1));
	(void)fd_send(fd, &msg, sizeof(msg), NULL, 0);
}

/* Nothing more to wait for: with the handles the loop ends. */
static void
close_watches(struct warden *warden)
{
	uv_handle_t *const handles[] = {
		(uv_handle_t *)&warden->wake,
		(uv_handle_t *)&warden->term,
		(uv_handle_t *)&warden->end_timer,
		(uv_handle_t *)&warden->record_timer,
		(uv_handle_t *)&warden->idle_timer,
		(uv_handle_t *)&warden->keeper_poll,
		(uv_handle_t *)&warden->world_poll,
	};

	for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++)
		if (handles[i]->type != UV_UNKNOWN_HANDLE &&
		    !uv_is_closing(handles[i]))
			uv_close(handles[i], NULL);
	watch_close(&warden->watch);
}

static void
on_end_timer(uv_timer_t *timer)
{
	struct warden *warden = timer->data;

	log_line(warden->log, LOG_ERROR, "the world did not go in time");
	close_watches(warden);
}

/* False when it has begun already. */
static bool
begin_end(struct warden *warden, const char *reason, bool failed)
{
	if (warden->ending)
		return false;
	warden->ending = true;
	(void)errmsg_set(&warden->end_reason, 0, "%s", reason);
	/* Whatever hangs, a warden that shall go goes. */
	(void)signal(SIGALRM, SIG_DFL);
	(void)alarm(FINISH_WAIT_S);
	jobs_end(warden);
	terms_end_all(warden);
	server_ending(warden->server, reason, failed);
	server_close(warden->server);
	return true;
}

/* For what the keeper does with what it was told, or not at all. */
static void
await_keeper(struct warden *warden, bool told)
{
	bool wait = told && uv_timer_start(&warden->end_timer, on_end_timer,
					   END_WAIT_MS, 0) == 0;

	if (!wait)
		close_watches(warden);
}

void
warden_end(struct warden *warden, const char *reason)
{
	if (!begin_end(warden, reason, false))
		return;
	log_line(warden->log, LOG_NOTE, "ending: %s", reason);
	await_keeper(warden,
		     !warden->keeper_gone && warden->watching &&
			     !(warden->opt.mountpoint &&
			       atomic_load(&warden->fs_ended)) &&
			     life_send(warden->opt.keeper_fd, WIRE_ENDED) == 0);
}

void
warden_fail(struct warden *warden, int r, const struct errmsg *why)
{
	if (!begin_end(warden, why->text, true))
		return;
	log_line(warden->log, LOG_NOTE, "ending: %s", why->text);
	life_send_failure(warden->opt.keeper_fd, r, why);
	await_keeper(warden, !warden->keeper_gone && warden->watching);
}

/* ---- what the neighbours say ---- */

/* How the world ended, as the keeper says; the reason, borrowed. */
static const char *
note_ended(struct warden *warden, struct wire_msg *msg)
{
	msg->text[sizeof(msg->text) - 1] = '\0';
	if (msg->flags & WIRE_ENDED_STATUS) {
		warden->has_status = true;
		warden->status = msg->status;
		return "the command has ended";
	}
	if (msg->text[0])
		return msg->text;
	return warden->opt.mountpoint ? "it was unmounted" : "the keeper asks";
}

/* By the keeper in our place, from a command's listener or the world's. */
static void
take_call(struct warden *warden, const struct wire_msg *msg)
{
	int listener = -1;

	if (msg->id != 0 && warden->spawner) {
		listener = spawner_listener(warden->spawner, msg->id);
		if (listener < 0)
			return;
	}
	observer_take(warden->observer, listener, msg->text);
}

static void
on_keeper(uv_poll_t *poll, int status, int events)
{
	struct warden *warden = poll->data;
	int fds[FD_PASS_MAX];
	struct wire_msg msg;
	size_t nfds;
	ssize_t n;

	(void)status;
	if ((events & UV_WRITABLE) && warden->spawner)
		spawner_flush(warden->spawner);
	n = fd_recv(warden->opt.keeper_fd, &msg, sizeof(msg), fds, &nfds);
	if (n == sizeof(msg) && warden->spawner &&
	    spawner_take(warden->spawner, &msg, fds, nfds))
		return;
	while (n > 0 && nfds > 0)
		(void)close(fds[--nfds]);
	if (n == sizeof(msg) && msg.type == WIRE_CALL && warden->observer)
		take_call(warden, &msg);
	if (n == sizeof(msg) && msg.type == WIRE_STARTED)
		warden->world_flags = msg.flags;
	if (n == -EAGAIN || (n > 0 && msg.type != WIRE_ENDED))
		return;

	/*
	 * A keeper that died leaves the mount to us, or, where we cannot see
	 * it, to the guard, as soon as we have gone.
	 */
	if (n <= 0 && warden->opt.mountpoint && !warden->opt.own_mounts)
		(void)hostmount_detach(warden->opt.mountpoint,
				       warden->mount_dev, NULL);
	warden->keeper_gone = true;
	warden_end(warden, n == sizeof(msg) ? note_ended(warden, &msg)
					    : "the keeper is gone");
	close_watches(warden);
}

int
life_watch_keeper(struct warden *warden, bool writable)
{
	if (uv_is_closing((uv_handle_t *)&warden->keeper_poll))
		return -EPIPE;
	return uv_poll_start(&warden->keeper_poll,
			     UV_READABLE | UV_DISCONNECT |
				     (writable ? UV_WRITABLE : 0),
			     on_keeper);
}

static struct policy *
get_policy(void *data)
{
	return warden_policy_get(data);
}

static void
on_watched(void *data)
{
	struct warden *warden = data;

	if (warden->fs)
		fs_echo(warden->fs);
}

/* So that the keeper sees when we are late. */
static void
tell_pace(struct warden *warden)
{
	const struct wire_msg msg = { .type = WIRE_PACE };
	int fd = observer_pace_fd(warden->observer);

	(void)fd_send(warden->opt.keeper_fd, &msg, sizeof(msg), &fd, 1);
}

static void
start_observer(struct warden *warden, int listener, pid_t init_pid)
{
	const struct observer_config config = {
		.listener = listener,
		/* With Landlock alone there is no usher, and no connect(2). */
		.usher_sock =
			warden->policy->landlock ? -1 : warden->opt.world_fd,
		.init_pid = init_pid,
		.policy_get = get_policy,
		.watched = on_watched,
		.data = warden,
		.denials = warden->denials,
	};
	struct errmsg why = { "" };
	int r;

	warden->init_pid = init_pid;
	warden->listener = listener;
	r = observer_start(&config, &warden->observer, &why);
	if (r == 0) {
		tell_pace(warden);
		return;
	}
	/* A filter that nobody answers would stop every inmate: no world. */
	life_send_failure(warden->opt.keeper_fd, r, &why);
}

static void
on_world(uv_poll_t *poll, int status, int events)
{
	struct warden *warden = poll->data;
	int fds[FD_PASS_MAX];
	struct wire_msg msg;
	size_t nfds = 0;
	ssize_t n;

	(void)status;
	(void)events;
	n = fd_recv(warden->opt.world_fd, &msg, sizeof(msg), fds, &nfds);
	if (n == -EAGAIN)
		return;
	if (n == sizeof(msg) && msg.type == WIRE_LISTENER && nfds == 1) {
		/* From here on the observer reads this socket, and waits. */
		uv_close((uv_handle_t *)poll, NULL);
		(void)fcntl(warden->opt.world_fd, F_SETFL, O_RDWR);
		start_observer(warden, fds[0], msg.pid);
		return;
	}
	if (n == sizeof(msg) && msg.type == WIRE_TERMINALS && nfds == 1) {
		closep(&warden->devpts);
		warden->devpts = fds[--nfds];
	}
	while (n > 0 && nfds > 0)
		(void)close(fds[--nfds]);
	/* The mounter may go when it likes; the keeper speaks for the world. */
	if (n <= 0)
		(void)uv_poll_stop(poll);
}

static void
on_gone(void *data, const struct errmsg *why)
{
	warden_fail(data, -ESTALE, why);
}

static void
on_term(uv_signal_t *handle, int signum)
{
	struct warden *warden = handle->data;

	(void)signum;
	if (getppid() != warden->parent)
		warden->keeper_gone = true;
	warden_end(warden, "SIGTERM");
}

static void
on_wake(uv_async_t *async)
{
	struct warden *warden = async->data;

	if (atomic_exchange(&warden->new_denials, false)) {
		server_denials(warden->server);
		warden_tree_denials(warden->tree);
	}
	/*
	 * Unmounted.  A run's mount goes with its namespace: its keeper knows
	 * better when the world is over.
	 */
	if (atomic_load(&warden->fs_ended) && warden->opt.mountpoint) {
		warden_end(warden, "unmounted");
		close_watches(warden);
	}
}

/* ---- the loop's life ---- */

int
life_init(struct warden *warden, struct errmsg *why)
{
	int r;

	warden->parent = getppid();
	warden->listener = warden->devpts = -1;
	(void)pthread_mutex_init(&warden->policy_lock, NULL);
	(void)pthread_mutex_init(&warden->mode_lock, NULL);
	(void)pthread_mutex_init(&warden->faces_lock, NULL);
	LIST_INIT(&warden->faces);
	(void)pthread_mutex_init(&warden->record_lock, NULL);
	r = uv_loop_init(&warden->loop);
	if (r == 0)
		r = uv_async_init(&warden->loop, &warden->wake, on_wake);
	if (r < 0)
		return errmsg_set(why, r, "event loop: %s", strerror(-r));
	warden->wake.data = warden;
	return 0;
}

int
life_watch(struct warden *warden)
{
	uv_loop_t *loop = &warden->loop;
	int r;

	r = uv_timer_init(loop, &warden->end_timer);
	warden->end_timer.data = warden;
	if (r == 0)
		r = uv_poll_init(loop, &warden->keeper_poll,
				 warden->opt.keeper_fd);
	warden->keeper_poll.data = warden;
	if (r == 0 && warden->opt.standing)
		r = spawner_new(warden, &warden->spawner);
	if (r == 0)
		r = uv_poll_init(loop, &warden->world_poll,
				 warden->opt.world_fd);
	warden->world_poll.data = warden;
	if (r == 0)
		r = uv_signal_init(loop, &warden->term);
	warden->term.data = warden;
	if (r == 0)
		r = life_watch_keeper(warden, false);
	if (r == 0)
		r = uv_poll_start(&warden->world_poll,
				  UV_READABLE | UV_DISCONNECT, on_world);
	if (r == 0)
		r = uv_signal_start(&warden->term, on_term, SIGTERM);
	if (r == 0)
		r = events_start(warden);
	if (r == 0)
		r = watch_start(&warden->watch, loop, on_gone, warden);
	if (r < 0)
		return r;

	warden->watching = true;
	/* After every change of credentials, which would clear it. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		return -errno;
	if (getppid() != warden->parent)
		return -ECONNRESET;
	return 0;
}

/* Empties the loop, also one whose start failed half way. */
static void
drain_loop(struct warden *warden)
{
	server_close(warden->server);
	close_watches(warden);
	while (uv_run(&warden->loop, UV_RUN_DEFAULT) != 0)
		;
}

void
life_finish(struct warden *warden, bool served)
{
	(void)signal(SIGALRM, SIG_DFL);
	(void)alarm(FINISH_WAIT_S);

	/*
	 * A run's world is empty now: all that an inmate was refused is on
	 * record, and whoever waits for it need not wait for our threads.
	 */
	if (warden->denials)
		denials_flush(warden->denials);
	if (served && warden->opt.client_fd >= 0) {
		warden_summarize(warden, warden->opt.client_fd);
		closep(&warden->opt.client_fd);
		warden->opt.client_fd = -1;
	}
	/* First: it may be waiting for what the other serves. */
	warden->observer = observer_stop(warden->observer);
	if (warden->fs)
		fs_stop(warden->fs);
	if (warden->denials)
		denials_flush(warden->denials);
	if (served) {
		warden_record_end(warden);
		(void)life_send(warden->opt.keeper_fd, WIRE_DONE);
	}

	jobs_finish(warden);
	terms_finish(warden);
	warden_tree_close(warden->tree);
	drain_loop(warden);
	jobs_free_all(warden);
	terms_free_all(warden);
	warden->server = server_free(warden->server);
	warden->spawner = spawner_free(warden->spawner);
	warden->fs = fs_free(warden->fs);
	warden->tree = warden_tree_free(warden->tree);
	warden->denials = denials_close(warden->denials);
	/* Only now: a thread that wakes a closed loop is aborted. */
	(void)uv_loop_close(&warden->loop);
	watch_fini(&warden->watch);
	/* Who sees it gone may unmount what the workspace lies on. */
	world_dir_remove(warden);
	/* Only an empty one goes: a log is left to be read. */
	if (warden->places.state_world)
		(void)rmdir(warden->places.state_world);
	warden->log = log_free(warden->log);
	closep(&warden->listener);
	closep(&warden->devpts);
	warden->policy = policy_unref(warden->policy);
	warden_places_fini(&warden->places);
}
