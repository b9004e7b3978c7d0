/* SPDX-License-Identifier: MIT */

/*
 * term.attach: from its answer on, both directions of the connection carry
 * frames (rpc/frames.h).  Requests that were asked before are not answered any
 * more.
 *
 * Sizes: pinned by request; else the window of who attached or typed last, of
 * those who may type; else as it was.  Windows change in storms, and each
 * change is a signal to the program: 50 ms lie between two of them, and the
 * last one counts.
 *
 * What a person types waits here when the terminal's queue is full, and his
 * connection is not read meanwhile, but for its end.
 */

#include "warden/terms_attach_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "pty/vt.h"
#include "warden/terms_row.h"

#define SIZE_NS	       50000000LL
#define TYPE_AGAIN_NS  10000000LL
#define SCROLLBACK_MAX 100000
#define SOCKET_BYTES   (64 << 10)

/* ---- the audience ---- */

static void on_event(uint64_t id, enum terms_event event,
		     const struct vt_event *model, void *data);
static void on_timer(uv_timer_t *timer);
static void take_frames(struct client *client);

static struct audience *
find(struct server *server, uint64_t id)
{
	struct audience *audience;

	LIST_FOREACH(audience, &server->audiences, link)
	if (audience->id == id)
		return audience;
	return NULL;
}

static int
get_audience(struct server *server, uint64_t id, struct audience **ret_audience)
{
	struct audience *audience = find(server, id);
	int r = 0;

	if (!audience) {
		audience = calloc(1, sizeof(*audience));
		if (!audience)
			return -ENOMEM;
		if (!server->terms_listener)
			r = terms_listen(server->warden, on_event, server,
					 &server->terms_listener);
		if (r < 0) {
			free(audience);
			return r;
		}
		audience->server = server;
		audience->warden = server->warden;
		audience->id = id;
		TAILQ_INIT(&audience->people);
		(void)uv_timer_init(&server->warden->loop, &audience->timer);
		audience->timer.data = audience;
		LIST_INSERT_HEAD(&server->audiences, audience, link);
	}
	*ret_audience = audience;
	return 0;
}

static void
on_timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* Its memory stays for who is using it up the stack. */
static void
drop_audience(struct audience *audience)
{
	struct server *server = audience->server;

	LIST_REMOVE(audience, link);
	audience_forget_blocks(audience);
	segments_file_fini(&audience->file);
	uv_close((uv_handle_t *)&audience->timer, on_timer_closed);
	if (LIST_EMPTY(&server->audiences)) {
		terms_unlisten(server->terms_listener);
		server->terms_listener = NULL;
	}
}

static void
for_all(struct audience *audience, void (*act)(struct attach *attach))
{
	struct attach *attach, *next;

	for (attach = TAILQ_FIRST(&audience->people); attach; attach = next) {
		next = TAILQ_NEXT(attach, next);
		act(attach);
	}
}

static void
want_state(struct attach *attach)
{
	attach->state_due = true;
	attach_pump(attach);
}

static void
want_repaint(struct attach *attach)
{
	attach->repaint = attach->state_due = true;
	attach_pump(attach);
}

/* ---- sizes ---- */

static const struct attach *
decider(const struct audience *audience)
{
	const struct attach *attach;

	TAILQ_FOREACH(attach, &audience->people, next)
	if (!attach->read_only && attach->cols > 0)
		return attach;
	return NULL;
}

static void
set_size(struct audience *audience)
{
	const struct attach *first = decider(audience);
	int64_t now = clock_mono_ns();

	audience->size_due = false;
	(void)terms_get_size(audience->warden, audience->id, &audience->size);
	if (!first || audience->size.pinned ||
	    (first->cols == audience->size.cols &&
	     first->rows == audience->size.rows))
		return;
	if (now - audience->sized_ns < SIZE_NS) {
		audience->size_due = true;
		audience_rearm(audience);
		return;
	}
	audience->sized_ns = now;
	/* The answer is the event: all are painted. */
	(void)terms_resize(audience->warden, audience->id, first->cols,
			   first->rows, TERMS_SIZE_PERSON);
}

static void
is_active(struct attach *attach)
{
	struct audience *audience = attach->audience;

	if (attach->read_only)
		return;
	if (TAILQ_FIRST(&audience->people) != attach) {
		TAILQ_REMOVE(&audience->people, attach, next);
		TAILQ_INSERT_HEAD(&audience->people, attach, next);
	}
	set_size(audience);
}

/* ---- what happens to the terminal ---- */

static void
on_model(struct audience *audience, const struct vt_event *event)
{
	struct attach *attach, *next;

	for (attach = TAILQ_FIRST(&audience->people); attach; attach = next) {
		next = TAILQ_NEXT(attach, next);
		/* Inside the model: nothing of it can be shown now. */
		if (event->kind == VT_EVENT_REPAINT)
			attach->repaint = true;
		else if (event->kind == VT_EVENT_ALT_SCREEN)
			attach->state_due = true;
		else
			attach_tell(attach, event);
	}
}

static void
removed(struct attach *attach)
{
	if (!attach->over)
		attach_send_off(attach, "it was removed");
}

static void
on_event(uint64_t id, enum terms_event event, const struct vt_event *model,
	 void *data)
{
	struct audience *audience = find(data, id);

	if (!audience)
		return;
	switch (event) {
	case TERMS_FED:
	case TERMS_EXITED:
		for_all(audience, attach_pump);
		return;
	case TERMS_RESIZED:
		(void)terms_get_size(audience->warden, id, &audience->size);
		for_all(audience, want_repaint);
		return;
	case TERMS_MODEL:
		on_model(audience, model);
		return;
	case TERMS_GONE:
		for_all(audience, removed);
		return;
	case TERMS_GREW:
	case TERMS_OVER:
	case TERMS_CHANGED:
		return;
	}
}

/* ---- typing ---- */

/* True: all of it was taken, or nobody will ever take it. */
static bool
type_held(struct attach *attach)
{
	const struct audience *audience = attach->audience;
	struct terms_written written = { 0 };

	if (attach->held.len == 0)
		return true;
	if (terms_write(audience->warden, audience->id, attach->held.data,
			attach->held.len, TERMS_WRITE_TYPED, &written) < 0)
		written.taken = attach->held.len;
	buf_drop(&attach->held, written.taken);
	return attach->held.len == 0;
}

/* A window that tells that it is looked at no more is not typed into. */
static bool
is_focus_lost(const struct frame *frame)
{
	return frame->len == 3 && memcmp(frame->payload, "\033[O", 3) == 0;
}

static void
type_bytes(struct attach *attach, const struct frame *frame)
{
	struct audience *audience = attach->audience;
	struct terms_written written = { 0 };

	if (attach->read_only || frame->len == 0)
		return;
	if (!is_focus_lost(frame))
		is_active(attach);
	if (terms_write(audience->warden, audience->id, frame->payload,
			frame->len, TERMS_WRITE_TYPED, &written) < 0 ||
	    written.taken == frame->len)
		return;
	buf_put(&attach->held, frame->payload + written.taken,
		frame->len - written.taken);
	client_watch(attach->client, UV_DISCONNECT);
	audience_rearm(audience);
}

/* Who waited may go on; the client may be closed by what he had sent. */
static void
type_again(struct attach *attach)
{
	struct client *client = attach->client;

	if (attach->held.len == 0 || !type_held(attach))
		return;
	client_watch(client, UV_READABLE);
	take_frames(client);
}

/* ---- later ---- */

void
audience_rearm(struct audience *audience)
{
	int64_t at = INT64_MAX, now = clock_mono_ns();
	const struct attach *attach;

	if (audience->size_due)
		at = audience->sized_ns + SIZE_NS;
	if (audience->left)
		at = now;
	TAILQ_FOREACH(attach, &audience->people, next)
	{
		int64_t due = INT64_MAX;

		if (attach->broken)
			due = now;
		else if (attach->paint_due)
			due = attach->painted_ns + ATTACH_PAINT_NS;
		if (attach->held.len > 0 && now + TYPE_AGAIN_NS < due)
			due = now + TYPE_AGAIN_NS;
		if (due < at)
			at = due;
	}
	if (at == INT64_MAX || uv_is_closing((uv_handle_t *)&audience->timer))
		return;
	(void)uv_timer_start(&audience->timer, on_timer,
			     at > now ? (uint64_t)(at - now) / 1000000 + 1 : 1,
			     0);
}

static void
is_due(struct attach *attach)
{
	if (attach->paint_due) {
		attach->paint_due = false;
		attach_pump(attach);
	}
}

static void
close_broken(struct attach *attach)
{
	if (attach->broken)
		client_close(attach->client);
}

static void
on_timer(uv_timer_t *timer)
{
	struct audience *audience = timer->data;

	for_all(audience, close_broken);
	/* The window of somebody else may count now. */
	if (audience->size_due || audience->left)
		set_size(audience);
	if (audience->left)
		for_all(audience, want_state);
	audience->left = false;
	for_all(audience, type_again);
	for_all(audience, is_due);
	audience_rearm(audience);
}

/* ---- frames in ---- */

static void
take_size(struct attach *attach, const struct frame *frame)
{
	unsigned int cols, rows;

	if (!frame_get_size(frame, &cols, &rows) || cols == 0 || rows == 0)
		return;
	if (cols == attach->cols && rows == attach->rows)
		return;
	attach->cols = cols;
	attach->rows = rows;
	attach->repaint = true;
	if (decider(attach->audience) == attach)
		set_size(attach->audience);
}

static void
take_frame(struct attach *attach, const struct frame *frame)
{
	struct buf answer = { 0 };

	switch (frame->type) {
	case FRAME_DATA:
		type_bytes(attach, frame);
		return;
	case FRAME_RESIZE:
		take_size(attach, frame);
		break;
	case FRAME_SYNC:
		attach->repaint = true;
		break;
	case FRAME_DETACH:
		attach_send_off(attach, "detached");
		return;
	case FRAME_PING:
		if (frame->flags & FRAME_ANSWER)
			return;
		frame_put(&answer, FRAME_PING, FRAME_ANSWER, frame->payload,
			  frame->len);
		attach_send(attach, &answer);
		return;
	default: /* of a later version */
		return;
	}
	attach_pump(attach);
}

static void
take_frames(struct client *client)
{
	struct attach *attach;
	struct frame frame;
	int r;

	while ((attach = client->attach) && !attach->over &&
	       attach->held.len == 0) {
		r = frames_next(&attach->in, &frame);
		if (r < 0)
			client_close(client);
		if (r <= 0)
			return;
		take_frame(attach, &frame);
	}
}

void
attach_readable(struct client *client, int events)
{
	struct attach *attach = client->attach;
	unsigned char *at;
	size_t size;
	ssize_t n = 0;

	/* Not read from now: it is his end. */
	if (attach->held.len > 0 && (events & UV_DISCONNECT)) {
		client_close(client);
		return;
	}
	if (frames_room(&attach->in, &at, &size) == 0)
		n = recv(client->read_fd, at, size, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_close(client);
		return;
	}
	/* After the last frame of ours, nothing of his matters. */
	if (!attach->over)
		frames_added(&attach->in, (size_t)n);
	take_frames(client);
}

/* ---- coming and going ---- */

static void
attach_free(struct attach *attach)
{
	frames_fini(&attach->in);
	buf_fini(&attach->held);
	buf_fini(&attach->told);
	free(attach);
}

void
attach_client_gone(struct client *client)
{
	struct attach *attach = client->attach;
	struct audience *audience;

	if (!attach)
		return;
	client->attach = NULL;
	audience = attach->audience;
	TAILQ_REMOVE(&audience->people, attach, next);
	audience->n_people--;
	attach_free(attach);
	if (audience->n_people == 0) {
		drop_audience(audience);
		return;
	}
	/* Not now: somebody may be going through the others. */
	audience->left = true;
	audience_rearm(audience);
}

void
attach_world_ends(struct server *server, const char *reason)
{
	struct audience *audience;
	struct attach *attach;
	char text[256];

	(void)snprintf(text, sizeof(text), "the world has ended: %s", reason);
	LIST_FOREACH(audience, &server->audiences, link)
	TAILQ_FOREACH(attach, &audience->people, next)
	if (!attach->over)
		attach_send_off(attach, text);
}

struct attach_params {
	const char *id;
	int64_t cols, rows, scrollback;
	bool read_only, titles, clipboard;
};

static int
take_params(const struct rpc_message *message, struct attach_params *params,
	    struct rpc_fault *ret_fault)
{
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &params->id },
		{ "cols", RPC_INTEGER, false, &params->cols },
		{ "rows", RPC_INTEGER, false, &params->rows },
		{ "scrollback", RPC_INTEGER, false, &params->scrollback },
		{ "read_only", RPC_BOOLEAN, false, &params->read_only },
		{ "titles", RPC_BOOLEAN, false, &params->titles },
		{ "clipboard", RPC_BOOLEAN, false, &params->clipboard },
	};
	int r = rpc_params(message, fields, 7, ret_fault);

	if (r < 0)
		return r;
	if (message->kind != RPC_REQUEST)
		return rpc_fault_set(ret_fault, RPC_INVALID_REQUEST, NULL,
				     "whoever attaches needs an answer, and an "
				     "id to be told by");
	if (params->cols < 0 || params->cols > UINT16_MAX || params->rows < 0 ||
	    params->rows > UINT16_MAX ||
	    (params->cols == 0) != (params->rows == 0) ||
	    params->scrollback < 0 || params->scrollback > SCROLLBACK_MAX)
		return rpc_fault_set(ret_fault, RPC_INVALID_PARAMS, NULL,
				     "cols and rows: both, 1 to 65535; "
				     "scrollback: at most %d",
				     SCROLLBACK_MAX);
	return 0;
}

static int
join(struct client *client, uint64_t id, const struct attach_params *params,
     struct attach **ret_attach)
{
	struct attach *attach = calloc(1, sizeof(*attach));
	struct audience *audience;
	int r;

	if (!attach)
		return -ENOMEM;
	r = get_audience(client->server, id, &audience);
	if (r < 0) {
		free(attach);
		return r;
	}
	(void)terms_get_size(audience->warden, id, &audience->size);
	attach->audience = audience;
	attach->client = client;
	attach->cols = (unsigned int)params->cols;
	attach->rows = (unsigned int)params->rows;
	attach->scrollback = (uint64_t)params->scrollback;
	attach->read_only = params->read_only;
	attach->titles = params->titles;
	attach->clipboard = params->clipboard;
	attach->repaint = attach->state_due = true;
	TAILQ_INSERT_TAIL(&audience->people, attach, next);
	audience->n_people++;
	*ret_attach = attach;
	return 0;
}

/*
 * For who attaches without saying to what.  That it cannot be told costs a
 * guess.
 */
static void
remember(const struct attach *attach)
{
	const struct audience *audience = attach->audience;
	const struct warden *warden = audience->warden;
	_cleanup_(freep) char *path = terms_dir_path(
		warden->places.state, warden->opt.world, audience->id);
	_cleanup_(closep) int dir = -1;
	_cleanup_(closep) int fd = -1;
	char id[TERMS_ID_MAX];

	terms_id_text(audience->id, id);
	if (path)
		dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		fd = openat(dir, "../last",
			    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW |
				    O_CLOEXEC,
			    0600);
	if (fd >= 0)
		(void)fd_write_all(fd, id, strlen(id));
}

/* What is in the socket can no longer be left out when he is behind. */
static void
keep_socket_small(const struct client *client)
{
	const int size = SOCKET_BYTES;

	(void)setsockopt(client->read_fd, SOL_SOCKET, SO_SNDBUF, &size,
			 sizeof(size));
}

/* Frames may have come with the request.  False: too many. */
static bool
take_rest(struct client *client)
{
	struct attach *attach = client->attach;
	const unsigned char *rest;
	unsigned char *room;
	size_t len, size;

	rpc_lines_rest(&client->lines, &rest, &len);
	if (frames_room(&attach->in, &room, &size) < 0 || len > size)
		return false;
	if (len > 0)
		memcpy(room, rest, len);
	frames_added(&attach->in, len);
	rpc_lines_fini(&client->lines);
	return true;
}

int
attach_handle(struct client *client, const struct rpc_message *message,
	      struct buf *ret_json, struct rpc_fault *ret_fault)
{
	struct warden *warden = client->server->warden;
	struct attach_params params = { 0 };
	struct attach *attach = NULL;
	uint64_t id;
	int r = take_params(message, &params, ret_fault);

	if (r < 0)
		return r;
	if (terms_find(warden, params.id, &id) < 0)
		return rpc_fault_set(ret_fault, RPC_FAILED, TERM_NOT_FOUND,
				     "no terminal '%s' in this world",
				     params.id);
	r = terms_state_json(warden, id, ret_json);
	if (r == 0)
		r = join(client, id, &params, &attach);
	if (r < 0 || !attach)
		return r;
	client_answer(client, &message->id, 0, ret_json, ret_fault);
	client->attach = attach;
	/* The answer could not be sent. */
	if (client->closing) {
		attach_client_gone(client);
	} else if (!take_rest(client)) {
		client_close(client);
	} else {
		remember(attach);
		keep_socket_small(client);
		is_active(attach);
		for_all(attach->audience, want_state);
		take_frames(client);
	}
	return CALL_LATER;
}
