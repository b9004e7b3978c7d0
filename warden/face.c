/* SPDX-License-Identifier: MIT */

/*
 * A face goes in the order that leaves nobody with a dead mount: the pipe to
 * the mount's guard is closed, which takes the mount away if nobody has; then
 * the connection is waited for to end, for a while; then the session is freed,
 * on the pool, since that waits for its threads.
 */

#include "warden/face.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/limits.h"

/* The device that mounts of FUSE are made with. */
#define FUSE_MAJOR 10
#define FUSE_MINOR 229

/* How long a guard may take to have the mount detached. */
#define DETACH_MS 3000

struct face {
	LIST_ENTRY(face) link;
	struct warden *warden;
	struct client *client; /* NULL: gone */
	struct fs *fs;	       /* faces_lock: NULL while it is freed */
	char *mountpoint;
	int guard;	       /* -1: none (any more) */
	bool serving, leaving; /* set under faces_lock */
	bool freeing;
	uv_async_t ended; /* the connection is over; any thread sends */
	uv_timer_t timer;
	uv_work_t work;
	unsigned int n_handles;
	struct fs *going; /* the pool's */
};

/*
 * One that was made for its mount, and used for nothing else, goes with the
 * last of its mounts.
 */
static bool
goes_with_mount(const struct warden *warden)
{
	const struct face *face;

	LIST_FOREACH(face, &warden->faces, link)
	if (!face->leaving)
		return false;
	return warden->opt.for_mount && !warden->used;
}

/* Others look at it from their threads (faces_mountpoint). */
static void
set(struct face *face, bool *flag)
{
	(void)pthread_mutex_lock(&face->warden->faces_lock);
	*flag = true;
	(void)pthread_mutex_unlock(&face->warden->faces_lock);
}

static void
on_closed(uv_handle_t *handle)
{
	struct face *face = handle->data;
	struct warden *warden = face->warden;

	if (--face->n_handles > 0)
		return;
	(void)pthread_mutex_lock(&face->warden->faces_lock);
	LIST_REMOVE(face, link);
	(void)pthread_mutex_unlock(&face->warden->faces_lock);
	if (goes_with_mount(warden))
		warden_end(warden, "its mount is gone");
	warden_release(warden);
	free(face->mountpoint);
	free(face);
}

static void
close_handles(struct face *face)
{
	uv_close((uv_handle_t *)&face->ended, on_closed);
	uv_close((uv_handle_t *)&face->timer, on_closed);
}

static void
free_session(uv_work_t *work)
{
	struct face *face = work->data;

	face->going = fs_free(face->going);
}

static void
on_freed(uv_work_t *work, int status)
{
	(void)status;
	close_handles(work->data);
}

static void
free_face(struct face *face)
{
	if (face->freeing)
		return;
	face->freeing = true;
	(void)uv_timer_stop(&face->timer);
	(void)pthread_mutex_lock(&face->warden->faces_lock);
	face->going = face->fs;
	face->fs = NULL;
	(void)pthread_mutex_unlock(&face->warden->faces_lock);
	face->work.data = face;
	if (uv_queue_work(&face->warden->loop, &face->work, free_session,
			  on_freed) == 0)
		return;
	face->going = fs_free(face->going);
	close_handles(face);
}

static void
tell_ended(struct face *face)
{
	struct buf line = { 0 };

	if (!face->client)
		return;
	rpc_write_notification(&line, "mount.ended", NULL);
	client_send(face->client, &line);
}

static void
on_timer(uv_timer_t *timer)
{
	free_face(timer->data);
}

static void
leave(struct face *face)
{
	if (face->leaving)
		return;
	set(face, &face->leaving);
	closep(&face->guard);
	face->guard = -1;
	if (!face->serving ||
	    uv_timer_start(&face->timer, on_timer, DETACH_MS, 0) < 0)
		free_face(face);
}

/* Unmounted, by whomever. */
static void
on_ended(uv_async_t *async)
{
	struct face *face = async->data;

	if (face->freeing)
		return;
	if (!face->leaving)
		tell_ended(face);
	set(face, &face->leaving);
	closep(&face->guard);
	face->guard = -1;
	free_face(face);
	(void)world_dir_describe(face->warden);
}

static void
on_fs_ended(void *data)
{
	struct face *face = data;

	(void)uv_async_send(&face->ended);
}

/* ---- the requests ---- */

struct face *
face_of_client(const struct client *client)
{
	struct face *face;

	LIST_FOREACH(face, &client->server->warden->faces, link)
	if (face->client == client)
		return face;
	return NULL;
}

static int
face_new(struct client *client, const char *mountpoint, struct face **ret_face)
{
	struct warden *warden = client->server->warden;
	struct face *face = calloc(1, sizeof(*face));
	int r;

	if (!face)
		return -ENOMEM;
	face->warden = warden;
	face->guard = -1;
	face->mountpoint = json_unescape(mountpoint);
	r = face->mountpoint
		    ? uv_async_init(&warden->loop, &face->ended, on_ended)
		    : -ENOMEM;
	if (r < 0) {
		free(face->mountpoint);
		free(face);
		return r;
	}
	(void)uv_timer_init(&warden->loop, &face->timer);
	face->n_handles = 2;
	face->ended.data = face->timer.data = face;
	face->client = client;
	(void)pthread_mutex_lock(&warden->faces_lock);
	LIST_INSERT_HEAD(&warden->faces, face, link);
	(void)pthread_mutex_unlock(&warden->faces_lock);
	warden_hold(warden);
	*ret_face = face;
	return 0;
}

static unsigned int
count(const struct warden *warden)
{
	const struct face *face;
	unsigned int n = 0;

	LIST_FOREACH(face, &warden->faces, link)
	n++;
	return n;
}

int
face_mount(struct client *client, const struct rpc_message *message,
	   struct buf *ret_json, struct rpc_fault *ret_fault)
{
	struct warden *warden = client->server->warden;
	const char *mountpoint = NULL;
	const struct rpc_field fields[] = {
		{ "mountpoint", RPC_STRING, true, &mountpoint },
	};
	struct errmsg why = { "" };
	struct face *face;
	int r = rpc_params(message, fields, 1, ret_fault);

	if (r < 0)
		return r;
	if (!warden->opt.standing)
		return rpc_fault_set(ret_fault, RPC_FAILED, "NOT_STANDING",
				     "only a standing world can be mounted");
	if (!warden->fs)
		return rpc_fault_set(ret_fault, RPC_FAILED, "MOUNT_FAILED",
				     "this world has no fence to mount; use "
				     "the directory itself");
	if (face_of_client(client) || count(warden) >= LIMIT_FACES)
		return rpc_fault_set(ret_fault, RPC_FAILED, "MOUNT_LIMIT",
				     "one mount of a connection, %u of a world",
				     LIMIT_FACES);
	r = face_new(client, mountpoint, &face);
	if (r < 0)
		return r;
	r = warden_open_fs(warden,
			   &(struct warden_fs){ .origin = "mount",
						.host_visible = true,
						.ended = on_fs_ended,
						.data = face },
			   &face->fs, &why);
	if (r < 0) {
		face->client = NULL;
		leave(face);
		return rpc_fault_set(ret_fault, RPC_FAILED, "MOUNT_FAILED",
				     "%s", why.text);
	}
	jsonw_begin(ret_json, '{');
	jsonw_end(ret_json, '}');
	return 0;
}

/*
 * A session that waits for requests of something else would never end, or end
 * the world.  One of a mount that is gone, or was never made, has an error.
 */
static bool
is_mount(int fd)
{
	struct pollfd polled = { .fd = fd, .events = POLLOUT };
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	return flags >= 0 && (flags & O_ACCMODE) == O_RDWR &&
	       fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	       st.st_rdev == makedev(FUSE_MAJOR, FUSE_MINOR) &&
	       poll(&polled, 1, 0) == 1 && !(polled.revents & POLLERR);
}

static int
take_mount(struct client *client, int fds[2], struct rpc_fault *fault)
{
	struct stat st;

	if (client_take_fds(client, fds, 2) < 0)
		return rpc_fault_set(fault, RPC_FAILED, "NO_DESCRIPTORS",
				     "two descriptors must come with the "
				     "request: the mount's and its guard's");
	if (is_mount(fds[0]) && fstat(fds[1], &st) == 0 && S_ISFIFO(st.st_mode))
		return 0;
	(void)close(fds[0]);
	(void)close(fds[1]);
	return rpc_fault_set(fault, RPC_FAILED, "NOT_A_MOUNT",
			     "the descriptors are that of a mount, from "
			     "/dev/fuse, and an end of a pipe");
}

int
face_serve(struct client *client, const struct rpc_message *message,
	   struct buf *ret_json, struct rpc_fault *ret_fault)
{
	_cleanup_(policy_unrefp) struct policy *policy = NULL;
	struct face *face = face_of_client(client);
	struct errmsg why = { "" };
	int fds[2], r;

	r = rpc_params(message, NULL, 0, ret_fault);
	if (r < 0)
		return r;
	if (!face || face->serving || face->leaving)
		return rpc_fault_set(ret_fault, RPC_FAILED, "NOT_MOUNTING",
				     "world.mount comes first, once");
	r = take_mount(client, fds, ret_fault);
	if (r < 0)
		return r;
	face->guard = fds[1];
	/* The mode may have changed since the roots were opened. */
	policy = warden_policy_get(face->warden);
	r = fs_set_policy(face->fs, policy);
	if (r == 0)
		r = fs_start(face->fs, fds[0], &why);
	else
		(void)close(fds[0]);
	if (r < 0) {
		face->client = NULL;
		leave(face);
		return rpc_fault_set(ret_fault, RPC_FAILED, "MOUNT_FAILED",
				     "%s", why.text);
	}
	set(face, &face->serving);
	(void)world_dir_describe(face->warden);
	jsonw_begin(ret_json, '{');
	jsonw_end(ret_json, '}');
	return 0;
}

int
face_unmount(struct client *client, const struct rpc_message *message,
	     struct buf *ret_json, struct rpc_fault *ret_fault)
{
	struct warden *warden = client->server->warden;
	const char *text = NULL;
	const struct rpc_field fields[] = {
		{ "mountpoint", RPC_STRING, true, &text },
	};
	_cleanup_(freep) char *mountpoint = NULL;
	struct face *face, *next;
	int r = rpc_params(message, fields, 1, ret_fault);
	bool found = false;

	if (r < 0)
		return r;
	mountpoint = json_unescape(text);
	if (!mountpoint)
		return -ENOMEM;
	for (face = LIST_FIRST(&warden->faces); face; face = next) {
		next = LIST_NEXT(face, link);
		if (strcmp(face->mountpoint, mountpoint) != 0 || face->leaving)
			continue;
		found = true;
		tell_ended(face);
		leave(face);
		free_face(face);
	}
	(void)world_dir_describe(warden);
	jsonw_begin(ret_json, '{');
	jsonw_pair_bool(ret_json, "found", found);
	jsonw_pair_bool(ret_json, "ends", goes_with_mount(warden));
	jsonw_end(ret_json, '}');
	return 0;
}

void
face_client_gone(struct client *client)
{
	struct face *face = face_of_client(client);

	if (!face)
		return;
	face->client = NULL;
	leave(face);
}

char *
faces_mountpoint(struct warden *warden)
{
	const struct face *face, *first = NULL;
	char *mountpoint = NULL;

	(void)pthread_mutex_lock(&warden->faces_lock);
	LIST_FOREACH(face, &warden->faces, link)
	if (face->serving && !face->leaving)
		first = face;
	if (first)
		mountpoint = strdup(first->mountpoint);
	(void)pthread_mutex_unlock(&warden->faces_lock);
	return mountpoint;
}

int
faces_set_policy(struct warden *warden, struct policy *policy)
{
	struct face *face;
	int r = 0;

	(void)pthread_mutex_lock(&warden->faces_lock);
	LIST_FOREACH(face, &warden->faces, link)
	if (r == 0 && face->fs)
		r = fs_set_policy(face->fs, policy);
	(void)pthread_mutex_unlock(&warden->faces_lock);
	return r;
}
