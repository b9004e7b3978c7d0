/* SPDX-License-Identifier: MIT */

#include "cli/client.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"

#define HELLO_TIMEOUT_MS 5000

struct rpc_client {
	int sock;
	uint64_t last_id;
	struct rpc_lines lines;
};

static int
connect_in(const char *world_dir, int *ret_sock)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_(closep) int dir =
		open(world_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closep) int sock = -1;

	if (dir < 0)
		return -errno;
	/* By descriptor: sun_path is shorter than many runtime directories. */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path),
		       "/proc/self/fd/%d/sock", dir);
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (sock < 0 ||
	    connect(sock, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	*ret_sock = take_fd(&sock);
	return 0;
}

int
rpc_client_connect(const char *world_dir, int *ret_sock, struct errmsg *why)
{
	int r = connect_in(world_dir, ret_sock);

	if (r < 0)
		return errmsg_set(why, r, "cannot reach the world in '%s': %s",
				  world_dir, strerror(-r));
	return 0;
}

struct rpc_client *
rpc_client_close(struct rpc_client *client)
{
	if (!client)
		return NULL;
	rpc_lines_fini(&client->lines);
	closep(&client->sock);
	free(client);
	return NULL;
}

/* More bytes, or -ETIMEDOUT at `until_ns`, -ECONNRESET. */
static int
read_more(struct rpc_client *client, int64_t until_ns)
{
	struct pollfd polled = { .fd = client->sock, .events = POLLIN };
	char bytes[16 * 1024];
	ssize_t n;
	int r;

	r = poll(&polled, 1, clock_left_ms(until_ns));
	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	if (r == 0)
		return -ETIMEDOUT;
	n = read(client->sock, bytes, sizeof(bytes));
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	return rpc_lines_put(&client->lines, bytes, (size_t)n);
}

static int
next_message(struct rpc_client *client, int64_t until_ns,
	     struct rpc_message *ret_message)
{
	struct rpc_fault fault = { 0 };
	const char *line;
	size_t len;
	int r;

	while ((r = rpc_lines_next(&client->lines, &line, &len)) == 0) {
		r = read_more(client, until_ns);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	r = rpc_parse(line, len, ret_message, &fault);
	return r == -EBADMSG ? -EPROTO : r;
}

static int64_t
deadline(int timeout_ms)
{
	return timeout_ms < 0 ? INT64_MAX
			      : clock_mono_ns() + (int64_t)timeout_ms * 1000000;
}

/* The answer to the last request. */
static int
await_answer(struct rpc_client *client, int timeout_ms,
	     struct rpc_message *ret_message)
{
	int64_t until_ns = deadline(timeout_ms);
	char id[RPC_ID_MAX];
	int r;

	(void)snprintf(id, sizeof(id), "%llu",
		       (unsigned long long)client->last_id);
	for (;;) {
		r = next_message(client, until_ns, ret_message);
		if (r < 0)
			return r;
		/* An error without an id speaks of the connection. */
		if (strcmp(ret_message->id.json, id) == 0 ||
		    ret_message->kind == RPC_ERROR)
			return 0;
		rpc_message_fini(ret_message);
	}
}

static int
take_answer(const struct rpc_message *message, json_t **ret_result,
	    struct errmsg *why)
{
	const char *text;

	if (message->kind == RPC_ERROR) {
		text = json_string_value(
			json_object_get(message->error, "message"));
		return errmsg_set(why, -EREMOTEIO, "%s",
				  text ? text : "the warden refused");
	}
	if (ret_result)
		*ret_result = json_deep_copy(message->result);
	return ret_result && !*ret_result ? -ENOMEM : 0;
}

/* A world that has just ended is an error, not a signal. */
static int
send_bytes(struct rpc_client *client, const unsigned char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = send(client->sock, bytes, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EPIPE ? -ECONNRESET : -errno;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

int
rpc_client_send(struct rpc_client *client, enum rpc_method method,
		const struct buf *params, const int *fds, size_t n_fds,
		uint64_t *ret_id)
{
	_cleanup_(buf_fini) struct buf line = { 0 };
	/* Descriptors ride on the first byte, which then goes by itself. */
	size_t first = n_fds > 0 ? 1 : 0;
	int r;

	rpc_write_request(&line, client->last_id + 1, method, params);
	r = buf_error(&line);
	if (r == 0 && first > 0)
		r = fd_send(client->sock, line.data, first, fds, n_fds);
	if (r == 0)
		r = send_bytes(client, line.data + first, line.len - first);
	if (r < 0)
		return r == -EPIPE ? -ECONNRESET : r;
	*ret_id = ++client->last_id;
	return 0;
}

static int
call_failed(enum rpc_method method, int r, struct errmsg *why)
{
	return errmsg_set(why, r, "%s: %s", rpc_method_name(method),
			  r == -ETIMEDOUT    ? "the warden does not answer"
			  : r == -ECONNRESET ? "the warden has gone"
					     : strerror(-r));
}

int
rpc_client_await(struct rpc_client *client, enum rpc_method method,
		 int timeout_ms, json_t **ret_result, struct errmsg *why)
{
	struct rpc_message message = { 0 };
	int r = await_answer(client, timeout_ms, &message);

	if (r < 0)
		return call_failed(method, r, why);
	r = take_answer(&message, ret_result, why);
	rpc_message_fini(&message);
	return r;
}

int
rpc_client_call(struct rpc_client *client, enum rpc_method method,
		const struct buf *params, int timeout_ms, json_t **ret_result,
		struct errmsg *why)
{
	uint64_t id;
	int r = rpc_client_send(client, method, params, NULL, 0, &id);

	if (r < 0)
		return call_failed(method, r, why);
	return rpc_client_await(client, method, timeout_ms, ret_result, why);
}

static int
say_hello(struct rpc_client *client, enum rpc_role role, struct errmsg *why)
{
	_cleanup_(buf_fini) struct buf params = { 0 };

	jsonw_begin(&params, '{');
	jsonw_pair_int(&params, "protocol", RPC_PROTOCOL);
	jsonw_pair(&params, "client", "pale " VERSION);
	jsonw_pair(&params, "role", rpc_role_name(role));
	jsonw_end(&params, '}');
	return rpc_client_call(client, RPC_HELLO, &params, HELLO_TIMEOUT_MS,
			       NULL, why);
}

int
rpc_client_open(const char *world_dir, enum rpc_role role,
		struct rpc_client **ret_client, struct errmsg *why)
{
	_cleanup_(rpc_client_closep) struct rpc_client *client =
		calloc(1, sizeof(*client));
	int r;

	if (!client)
		return errmsg_set(why, -ENOMEM, "out of memory");
	client->sock = -1;
	r = rpc_client_connect(world_dir, &client->sock, why);
	if (r < 0)
		return r;
	r = say_hello(client, role, why);
	if (r < 0)
		return r == -EREMOTEIO ? -EPROTO : r;
	*ret_client = take_ptr(&client);
	return 0;
}

/* ---- more than one answer ---- */

int
rpc_client_socket(const struct rpc_client *client)
{
	return client->sock;
}

int
rpc_client_next(struct rpc_client *client, int timeout_ms,
		struct rpc_message *ret_message)
{
	int64_t until_ns = deadline(timeout_ms);
	int r = next_message(client, until_ns, ret_message);

	return r == 0 ? 1 : r == -ETIMEDOUT ? 0 : r;
}

int
rpc_client_take(struct rpc_client *client, struct buf *ret_rest)
{
	const unsigned char *bytes;
	size_t len;
	int sock;

	rpc_lines_rest(&client->lines, &bytes, &len);
	if (len > 0)
		buf_put(ret_rest, bytes, len);
	sock = take_fd(&client->sock);
	rpc_client_close(client);
	return sock;
}

bool
rpc_client_answers(const struct rpc_message *message, uint64_t id)
{
	char text[RPC_ID_MAX];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)id);
	return (message->kind == RPC_RESPONSE || message->kind == RPC_ERROR) &&
	       strcmp(message->id.json, text) == 0;
}
