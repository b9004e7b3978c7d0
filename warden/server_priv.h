/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_SERVER_PRIV_H
#define WARDEN_SERVER_PRIV_H

/*
 * The world's socket: a server with its clients, a client with its calls.
 *
 *   server ──▶ client ──▶ client …       a list; a client leaves it when its
 *                │                       pipe has closed *and* its last call
 *                └──▶ call ──▶ call …    has come back from the pool
 *
 * A call exists only for what cannot be answered at once: it works on the uv
 * pool and answers on the loop.  A client that is gone meanwhile is `closing`;
 * its calls finish and are forgotten.
 *
 * Thread: loop; call->work runs on the pool and touches the call alone.
 */

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/buf.h"
#include "base/limits.h"
#include "rpc/rpc.h"
#include "warden/warden_priv.h"

struct attach;
struct audience;
struct call;
struct exec;
struct job_wait;
struct term_wait;

struct client {
	LIST_ENTRY(client) link;
	struct server *server;
	uv_pipe_t pipe;
	uv_poll_t reader; /* of read_fd, a duplicate of the pipe's */
	int read_fd;
	unsigned int n_handles;	   /* not closed yet */
	int fds[LIMIT_CLIENT_FDS]; /* which no request has taken yet */
	size_t n_fds;
	struct rpc_lines lines;
	LIST_HEAD(call_list, call) calls;
	unsigned int n_calls;
	LIST_HEAD(exec_list, exec) execs; /* commands that it asked for */
	LIST_HEAD(job_wait_list, job_wait) job_waits;
	size_t n_job_waits, n_waited_ids;
	LIST_HEAD(term_wait_list, term_wait) term_waits;
	size_t n_term_waits;
	struct attach *attach; /* to a terminal: frames, no lines any more */
	enum rpc_role role;    /* of hello; 0: not greeted yet */
	bool wants_denials, wants_world, wants_jobs, wants_terms;
	uint64_t last_denial; /* newest id that it was sent */
	bool feeding, feed_again;
	bool feed_waits; /* for what it was sent to be read */
	bool reading;
	bool closing;
	bool closed; /* the pipe's close callback ran */
};

struct server {
	struct warden *warden;
	uv_pipe_t listener;
	LIST_HEAD(client_list, client) clients;
	unsigned int n_clients;
	LIST_HEAD(audience_list, audience) audiences; /* of terminals */
	struct terms_listener *terms_listener;	      /* while there are some */
	bool closing;
	char input[64 * 1024]; /* read into, emptied before the next read */
};

/* One request in the pool. */
struct call {
	LIST_ENTRY(call) link;
	uv_work_t work;
	struct client *client;
	struct rpc_id id;
	enum rpc_role role; /* of the client, when it asked */
	struct warden *warden;

	/* On the pool: does it; negative errno or 0, see also `fault`. */
	int (*run)(struct call *call);
	/* On the loop, before the answer, also if cancelled; NULL: nothing. */
	void (*done)(struct call *call);
	/* Parameters and findings of a method. */
	enum policy_mode mode, mode_before;
	void *data;
	uint64_t since, limit;
	uint64_t last;
	bool more; /* rows than were read */

	struct buf json; /* the result */
	struct rpc_fault fault;
	int result;
};

/* A method's handler says so when a call will answer. */
#define CALL_LATER 1

/* client.c */
int client_accept(struct server *server);
void client_close(struct client *client);
/* Sends a line (or several) and empties `out`. */
void client_send(struct client *client, struct buf *out);
void client_answer(struct client *client, const struct rpc_id *id, int result,
		   const struct buf *json, struct rpc_fault *fault);
/* Goes on with what it has sent already. */
void client_resume(struct client *client);
/* The oldest `n` descriptors that came with requests; -ENODATA. */
int client_take_fds(struct client *client, int *ret_fds, size_t n);

/* Wakes for UV_READABLE, or for UV_DISCONNECT alone. */
void client_watch(struct client *client, int events);

/* terms_attach.c */
int attach_handle(struct client *client, const struct rpc_message *message,
		  struct buf *ret_json, struct rpc_fault *ret_fault);
/* There is something to be read; `events` of uv_poll_t. */
void attach_readable(struct client *client, int events);
void attach_client_gone(struct client *client);
void attach_world_ends(struct server *server, const char *reason);

/* exec.c: its commands end with the client that asked for them. */
void exec_client_gone(struct client *client);
/* True when it was one of them; it is answered in any case. */
bool exec_cancel(struct client *client, const char *id_json);
int exec_handle(struct client *client, const struct rpc_message *message,
		struct buf *ret_json, struct rpc_fault *ret_fault);
int exec_signal(struct client *client, const struct rpc_message *message,
		struct buf *ret_json, struct rpc_fault *ret_fault);

/* jobs_wait.c: what it waits for about jobs. */
void jobs_client_gone(struct client *client);
/* True when it was one of them; it is answered in any case. */
bool jobs_cancel(struct client *client, const char *id_json);

/* terms_rpc_wait.c: what it waits for about terminals; likewise. */
void terms_client_gone(struct client *client);
bool terms_cancel(struct client *client, const char *id_json);

/* call.c */
int call_new(struct client *client, const struct rpc_id *id,
	     int (*run)(struct call *call), struct call **ret_call);
/* Hands it to the pool; it is the pool's from here on, also on failure. */
int call_start(struct call *call);
/* For a client that has gone: what has not begun need not. */
void call_cancel_all(struct client *client);
/* True when the call was found; it is answered in any case. */
bool call_cancel(struct client *client, const char *id_json);

/*
 * methods.c: answers one admitted request: 0 with *ret_json, CALL_LATER, or
 * negative with *ret_fault (error 0: by the errno).
 */
int method_handle(struct client *client, const struct rpc_message *message,
		  struct buf *ret_json, struct rpc_fault *ret_fault);

/* mode.c */
int mode_handle(struct client *client, const struct rpc_message *message,
		struct buf *ret_json, struct rpc_fault *ret_fault);

/* records.c */
int records_list(struct client *client, const struct rpc_message *message,
		 struct buf *ret_json, struct rpc_fault *ret_fault);
int records_subscribe(struct client *client, const struct rpc_message *message,
		      struct buf *ret_json, struct rpc_fault *ret_fault);
void records_changed(struct client *client);
/* What was sent has been read, some or all of it. */
void records_drained(struct client *client);

#endif
