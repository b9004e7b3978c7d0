/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_JOBS_RPC_H
#define WARDEN_JOBS_RPC_H

/*
 * job.* on the world's socket (docs/PROTOCOL.md).  What cannot be answered at
 * once waits in a list of its client.
 *
 * Thread: loop.
 */

#include "warden/jobs.h"
#include "warden/server_priv.h"

#define JOBS_METHODS(X)          \
	X(START, jobs_rpc_start) \
	X(LIST, jobs_rpc_list)   \
	X(SHOW, jobs_rpc_show)   \
	X(OUT, jobs_rpc_out)     \
	X(WAIT, jobs_rpc_wait)   \
	X(KILL, jobs_rpc_kill)   \
	X(RM, jobs_rpc_rm)       \
	X(PRUNE, jobs_rpc_prune) \
	X(WRITE, jobs_rpc_write) \
	X(SUBSCRIBE, jobs_rpc_subscribe)

#define X(method, handler)                                                    \
	int handler(struct client *client, const struct rpc_message *message, \
		    struct buf *ret_json, struct rpc_fault *ret_fault);
JOBS_METHODS(X)
#undef X

/* One answer of job.out, as far as it is known before the reading. */
/*
 * The parameters of job.start; zeroed, but for request.stdin_fd = -1.  Texts
 * of the request are of the message, or of this.
 */
struct jobs_start_params {
	struct strv argv, env;
	char *cwd, *name;
	struct jobs_request request;
};
int jobs_start_params_take(const struct rpc_message *message,
			   struct jobs_start_params *params,
			   struct rpc_fault *fault);
void jobs_start_params_fini(struct jobs_start_params *params);

struct job_read {
	uint64_t id;
	enum output_stream stream;
	uint64_t offset, max;
	bool from_end; /* `offset` is counted back from the end */
	bool base64;
};

enum job_wait_kind {
	JOB_WAIT_CALL, /* answered by who was called */
	JOB_WAIT_END,
	JOB_WAIT_MORE,
	JOB_WAIT_GONE,
};

struct job_wait {
	LIST_ENTRY(job_wait) link;
	struct client *client; /* NULL: gone, or answered */
	struct warden *warden;
	struct rpc_id rpc_id;
	enum job_wait_kind kind;
	uv_timer_t timer;
	struct job_read read; /* MORE */
	bool any;	      /* END: the first one will do */
	bool pending;	      /* CALL: its end will be told in any case */
	bool closed;	      /* the timer is */
	size_t n_ids;
	uint64_t ids[];
};

/* jobs_wait.c: -ENOMEM. */
int job_wait_new(struct client *client, const struct rpc_message *message,
		 enum job_wait_kind kind, const uint64_t *ids, size_t n_ids,
		 struct job_wait **ret_wait);
/* Answers in any case after this time; 0: never. */
void job_wait_limit(struct job_wait *wait, uint64_t timeout_ms);
/* Answers when it is due already; else it will be. */
void job_wait_check(struct job_wait *wait);
/* Its memory stays until job_wait_unref(), whatever becomes of it. */
void job_wait_ref(struct job_wait *wait);
void job_wait_unref(struct job_wait *wait);
/* Answers, and is gone. */
void job_wait_answer(struct job_wait *wait, int result, const struct buf *json,
		     struct rpc_fault *fault);
/* The world's events come to its clients from here on. */
int jobs_rpc_watch(struct warden *warden);

/* Reads and answers, on the pool. */
int jobs_rpc_read(struct client *client, const struct rpc_id *id,
		  const struct job_read *read);

#endif
