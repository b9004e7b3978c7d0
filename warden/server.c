/* SPDX-License-Identifier: MIT */

#include "warden/server_priv.h"

#include <stdio.h>

#include "base/json.h"
#include "warden/face.h"

static void
on_connection(uv_stream_t *listener, int status)
{
	struct server *server = listener->data;
	int r = status;

	if (r == 0)
		r = client_accept(server);
	/* Out of descriptors or memory: the client may come again. */
	if (r < 0)
		log_line(server->warden->log, LOG_ERROR,
			 "a client was not accepted: %s", uv_strerror(r));
}

int
server_start(struct warden *warden, int listen_fd, struct server **ret_server)
{
	struct server *server = calloc(1, sizeof(*server));
	int r;

	if (!server) {
		(void)close(listen_fd);
		return -ENOMEM;
	}
	server->warden = warden;
	LIST_INIT(&server->clients);
	LIST_INIT(&server->audiences);
	r = uv_pipe_init(&warden->loop, &server->listener, 0);
	if (r < 0) {
		(void)close(listen_fd);
		free(server);
		return r;
	}
	server->listener.data = server;
	/* Owned from here on: whoever ends the loop closes and frees it. */
	*ret_server = server;
	r = uv_pipe_open(&server->listener, listen_fd);
	if (r < 0) {
		(void)close(listen_fd);
		return r;
	}
	return uv_listen((uv_stream_t *)&server->listener, 64, on_connection);
}

void
server_close(struct server *server)
{
	struct client *client, *next;

	if (!server || server->closing)
		return;
	server->closing = true;
	uv_close((uv_handle_t *)&server->listener, NULL);
	for (client = LIST_FIRST(&server->clients); client; client = next) {
		next = LIST_NEXT(client, link);
		client_close(client);
	}
}

struct server *
server_free(struct server *server)
{
	free(server);
	return NULL;
}

void
server_denials(struct server *server)
{
	struct client *client;

	if (!server)
		return;
	LIST_FOREACH(client, &server->clients, link)
	if (client->wants_denials && !client->closing)
		records_changed(client);
}

/* To those that want to hear of the world; empties `params`. */
static void
tell_world(struct server *server, const char *name, struct buf *params)
{
	struct client *client, *next;

	for (client = LIST_FIRST(&server->clients); client; client = next) {
		struct buf line = { 0 };

		next = LIST_NEXT(client, link);
		if (client->closing ||
		    (!client->wants_world && !face_of_client(client)))
			continue;
		rpc_write_notification(&line, name, params);
		client_send(client, &line);
	}
	buf_fini(params);
}

void
server_ending(struct server *server, const char *reason, bool failed)
{
	struct buf params = { 0 };

	if (!server || server->closing)
		return;
	attach_world_ends(server, reason);
	jsonw_begin(&params, '{');
	jsonw_pair(&params, "reason", reason);
	jsonw_pair_bool(&params, "failed", failed);
	jsonw_end(&params, '}');
	tell_world(server, "world.ended", &params);
}

void
server_mode_changed(struct server *server, enum policy_mode before,
		    enum policy_mode after)
{
	struct buf params = { 0 };

	if (!server)
		return;
	jsonw_begin(&params, '{');
	jsonw_pair(&params, "mode", policy_mode_name(after));
	jsonw_pair(&params, "previous", policy_mode_name(before));
	jsonw_end(&params, '}');
	tell_world(server, "mode.changed", &params);
}
