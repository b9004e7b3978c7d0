/* SPDX-License-Identifier: MIT */

/*
 * One connection: bytes in, lines, requests, answers out.
 *
 * The pipe writes; what comes in is read by recvmsg(2) on a duplicate of its
 * descriptor, since descriptors may ride along with a request and the loop's
 * own pipes would drop them.  They wait, oldest first, for the requests that
 * take them.
 *
 * What is not read by the client waits in its pipe's queue; past
 * LIMIT_CLIENT_BACKLOG the client is dropped, and nobody else has waited for
 * it.  A client that asks faster than the pool works is not read from until
 * its calls come back.
 */

#include "warden/server_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"
#include "warden/face.h"

struct outgoing {
	uv_write_t req;
	struct buf bytes;
};

static void
free_when_unused(struct client *client)
{
	if (!client->closed || client->n_calls > 0)
		return;
	LIST_REMOVE(client, link);
	client->server->n_clients--;
	warden_release(client->server->warden);
	while (client->n_fds > 0)
		(void)close(client->fds[--client->n_fds]);
	rpc_lines_fini(&client->lines);
	free(client);
}

static void
on_closed(uv_handle_t *handle)
{
	struct client *client = handle->data;

	if (--client->n_handles > 0)
		return;
	closep(&client->read_fd);
	client->closed = true;
	free_when_unused(client);
}

void
client_close(struct client *client)
{
	if (client->closing)
		return;
	client->closing = true;
	call_cancel_all(client);
	attach_client_gone(client);
	exec_client_gone(client);
	jobs_client_gone(client);
	terms_client_gone(client);
	face_client_gone(client);
	uv_close((uv_handle_t *)&client->pipe, on_closed);
	if (client->read_fd >= 0)
		uv_close((uv_handle_t *)&client->reader, on_closed);
}

/* ---- out ---- */

static void
on_written(uv_write_t *req, int status)
{
	struct outgoing *out = (struct outgoing *)req;
	struct client *client = req->data;

	buf_fini(&out->bytes);
	free(out);
	if (status < 0)
		client_close(client);
	else
		records_drained(client);
}

void
client_send(struct client *client, struct buf *bytes)
{
	uv_stream_t *stream = (uv_stream_t *)&client->pipe;
	struct outgoing *out = NULL;
	uv_buf_t buf;

	/* Lines have no place among frames. */
	if (client->attach) {
		buf_fini(bytes);
		return;
	}
	/* An answer that cannot be made is worse than a connection that ends. */
	if (!client->closing && buf_error(bytes) == 0)
		out = calloc(1, sizeof(*out));
	if (!out) {
		buf_fini(bytes);
		client_close(client);
		return;
	}
	out->bytes = *bytes;
	*bytes = (struct buf){ 0 };
	out->req.data = client;
	buf = uv_buf_init((char *)out->bytes.data,
			  (unsigned int)out->bytes.len);
	if (uv_write(&out->req, stream, &buf, 1, on_written) < 0) {
		buf_fini(&out->bytes);
		free(out);
		client_close(client);
		return;
	}
	if (uv_stream_get_write_queue_size(stream) > LIMIT_CLIENT_BACKLOG) {
		log_line(client->server->warden->log, LOG_ERROR,
			 "a client that does not read was dropped");
		client_close(client);
	}
}

void
client_answer(struct client *client, const struct rpc_id *id, int result,
	      const struct buf *json, struct rpc_fault *fault)
{
	struct buf line = { 0 };

	if (client->closing)
		return;
	if (result < 0 && fault->error == 0)
		(void)rpc_fault_set(fault,
				    result == -EINVAL ? RPC_INVALID_PARAMS
						      : RPC_FAILED,
				    NULL, "%s", strerror(-result));
	if (result < 0)
		rpc_write_fault(&line, id, fault);
	else
		rpc_write_result(&line, id,
				 json && json->len > 0 ? json : NULL);
	client_send(client, &line);
}

/* ---- in ---- */

static void
handle_request(struct client *client, const struct rpc_message *message)
{
	_cleanup_(buf_fini) struct buf json = { 0 };
	struct rpc_fault fault = { 0 };
	int r;

	r = rpc_admit(message, client->role ? client->role : RPC_OPERATOR,
		      &fault);
	if (r == 0 && !client->role && message->method != RPC_HELLO)
		r = rpc_fault_set(&fault, RPC_INVALID_REQUEST, "HELLO_FIRST",
				  "say hello first");
	if (r == 0)
		r = method_handle(client, message, &json, &fault);
	if (r == 0)
		r = buf_error(&json);
	if (r != CALL_LATER && message->kind == RPC_REQUEST)
		client_answer(client, &message->id, r, &json, &fault);
}

static void
handle_line(struct client *client, const char *line, size_t len)
{
	struct rpc_message message = { 0 };
	struct rpc_fault fault = { 0 };
	int r = rpc_parse(line, len, &message, &fault);

	if (r < 0) {
		client_answer(client, &message.id, r, NULL, &fault);
		return;
	}
	/* We ask clients nothing, so their answers answer nothing. */
	if (message.kind == RPC_REQUEST || message.kind == RPC_NOTIFICATION)
		handle_request(client, &message);
	rpc_message_fini(&message);
}

static void
handle_lines(struct client *client)
{
	struct rpc_id none = { "" };
	const char *line;
	size_t len;
	int r;

	while (!client->closing && !client->attach &&
	       client->n_calls < LIMIT_CLIENT_CALLS) {
		struct rpc_fault fault = { 0 };

		r = rpc_lines_next(&client->lines, &line, &len);
		if (r == 0)
			return;
		if (r > 0) {
			handle_line(client, line, len);
			continue;
		}
		(void)rpc_fault_set(&fault, RPC_INVALID_REQUEST, NULL,
				    "the line is longer than %u bytes",
				    LIMIT_RPC_LINE);
		client_answer(client, &none, r, NULL, &fault);
	}
}

int
client_take_fds(struct client *client, int *ret_fds, size_t n)
{
	if (client->n_fds < n)
		return -ENODATA;
	client->n_fds -= n;
	memcpy(ret_fds, client->fds, n * sizeof(*ret_fds));
	memmove(client->fds, client->fds + n,
		client->n_fds * sizeof(*client->fds));
	return 0;
}

/* More than any request takes is the sender's mistake. */
static void
keep_fds(struct client *client, const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (client->n_fds < LIMIT_CLIENT_FDS)
			client->fds[client->n_fds++] = fds[i];
		else
			(void)close(fds[i]);
	}
}

static void
on_readable(uv_poll_t *reader, int status, int events)
{
	struct client *client = reader->data;
	char *input = client->server->input;
	int fds[FD_PASS_MAX];
	size_t n_fds = 0;
	ssize_t n;

	/*
	 * A peer that has gone with answers unread: libuv stops at once, but
	 * what it sent before is to be read first, and its end is behind that.
	 */
	if (status < 0) {
		events = UV_DISCONNECT;
		client_watch(client, UV_READABLE);
	}
	if (client->closing)
		return;
	if (client->attach) {
		attach_readable(client, events);
		return;
	}
	n = fd_recv(client->read_fd, input, sizeof(client->server->input), fds,
		    &n_fds);
	if (n == -EAGAIN)
		return;
	keep_fds(client, fds, n > 0 ? n_fds : 0);
	if (n <= 0 || rpc_lines_put(&client->lines, input, (size_t)n) < 0) {
		client_close(client);
		return;
	}
	handle_lines(client);
	if (!client->closing && client->n_calls >= LIMIT_CLIENT_CALLS) {
		client->reading = false;
		(void)uv_poll_stop(reader);
	}
}

static void
start_reading(struct client *client)
{
	if (client->closing || client->reading)
		return;
	client->reading = true;
	if (uv_poll_start(&client->reader, UV_READABLE, on_readable) < 0)
		client_close(client);
}

void
client_watch(struct client *client, int events)
{
	if (!client->closing &&
	    uv_poll_start(&client->reader, events, on_readable) < 0)
		client_close(client);
}

void
client_resume(struct client *client)
{
	if (client->closing) {
		free_when_unused(client);
		return;
	}
	handle_lines(client);
	if (client->n_calls < LIMIT_CLIENT_CALLS)
		start_reading(client);
}

/* ---- coming in ---- */

static bool
is_ours(uv_pipe_t *pipe)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	uv_os_fd_t fd;

	return uv_fileno((const uv_handle_t *)pipe, &fd) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       (cred.uid == 0 || cred.uid == geteuid());
}

static void
refuse(struct client *client, const char *code, const char *sentence)
{
	struct rpc_fault fault = { 0 };
	struct rpc_id none = { "" };

	(void)rpc_fault_set(&fault, RPC_FAILED, code, "%s", sentence);
	client_answer(client, &none, -EBUSY, NULL, &fault);
	client_close(client);
}

/* The pipe's own descriptor is watched by the pipe. */
static int
open_reader(struct client *client)
{
	uv_os_fd_t fd;
	int r = uv_fileno((const uv_handle_t *)&client->pipe, &fd);

	if (r < 0)
		return r;
	client->read_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (client->read_fd < 0)
		return -errno;
	r = uv_poll_init(&client->server->warden->loop, &client->reader,
			 client->read_fd);
	if (r < 0) {
		closep(&client->read_fd);
		client->read_fd = -1;
		return r;
	}
	client->reader.data = client;
	client->n_handles++;
	return 0;
}

int
client_accept(struct server *server)
{
	struct client *client = calloc(1, sizeof(*client));
	int r;

	if (!client)
		return -ENOMEM;
	r = uv_pipe_init(&server->warden->loop, &client->pipe, 0);
	if (r < 0) {
		free(client);
		return r;
	}
	client->server = server;
	client->pipe.data = client;
	client->read_fd = -1;
	client->n_handles = 1;
	warden_hold(server->warden);
	LIST_INIT(&client->calls);
	LIST_INIT(&client->execs);
	LIST_INIT(&client->job_waits);
	LIST_INIT(&client->term_waits);
	LIST_INSERT_HEAD(&server->clients, client, link);
	server->n_clients++;

	r = uv_accept((uv_stream_t *)&server->listener,
		      (uv_stream_t *)&client->pipe);
	if (r == 0)
		r = open_reader(client);
	if (r < 0)
		client_close(client);
	else if (!is_ours(&client->pipe))
		refuse(client, "FORBIDDEN", "this world is another user's");
	else if (server->n_clients > LIMIT_CLIENTS)
		refuse(client, "TOO_MANY_CLIENTS",
		       "this warden has all the clients that it takes");
	else
		start_reading(client);
	return r;
}
