/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_TERMS_RPC_H
#define WARDEN_TERMS_RPC_H

/*
 * term.* on the world's socket (docs/PROTOCOL.md).  What cannot be answered at
 * once waits in a list of its client.
 *
 * Thread: loop.
 */

#include "warden/server_priv.h"
#include "warden/terms.h"

#define TERMS_METHODS(X)            \
	X(NEW, terms_rpc_new)       \
	X(LIST, terms_rpc_list)     \
	X(SHOW, terms_rpc_show)     \
	X(SEND, terms_rpc_send)     \
	X(READ, terms_rpc_read)     \
	X(SCREEN, terms_rpc_screen) \
	X(LINES, terms_rpc_lines)   \
	X(WAIT, terms_rpc_wait)     \
	X(RUN, terms_rpc_run)       \
	X(RESIZE, terms_rpc_resize) \
	X(SIGNAL, terms_rpc_signal) \
	X(KILL, terms_rpc_kill)     \
	X(RENAME, terms_rpc_rename) \
	X(RM, terms_rpc_rm)         \
	X(SUBSCRIBE, terms_rpc_subscribe)

#define X(method, handler)                                                    \
	int handler(struct client *client, const struct rpc_message *message, \
		    struct buf *ret_json, struct rpc_fault *ret_fault);
TERMS_METHODS(X)
#undef X

/*
 * A world that takes no commands has no terminals: a fault.  From here on its
 * events come to its clients.
 */
int terms_rpc_enter(struct client *client, struct rpc_fault *fault);

/* The terminal of an id or a name, or a fault. */
int terms_rpc_find(struct client *client, const char *text, uint64_t *ret_id,
		   struct rpc_fault *fault);
/* An error of terms.h as a fault; `text` is the id as it was given. */
int terms_rpc_fault(int r, const char *text, struct rpc_fault *fault);

/*
 * The parameters of term.new; zeroed before.  Texts of the request are of the
 * message, or of this.
 */
struct terms_new_params {
	struct strv argv, env;
	char *cwd;
	struct terms_request request;
};
int terms_new_params_take(const struct rpc_message *message,
			  struct terms_new_params *params,
			  struct rpc_fault *fault);
void terms_new_params_fini(struct terms_new_params *params);

struct term_read {
	uint64_t id, offset, max;
	bool from_end; /* `offset` is counted back from the end */
	bool base64;
	bool plain; /* the text alone (pty/plain.h) */
};
/* Reads and answers, on the pool. */
int terms_rpc_read_now(struct client *client, const struct rpc_id *id,
		       const struct term_read *read);

/* ---- terms_rpc_wait.c: a request that is answered later ---- */

struct term_wait;

struct term_wait_ops {
	/* After every event of its terminal; NULL: who waits asks himself. */
	bool (*is_due)(const struct term_wait *wait);
	/* Answers by term_wait_answer(). */
	void (*answer)(struct term_wait *wait, bool timed_out);
	/* It goes, whether it was answered or not; NULL: nothing is due. */
	void (*gone)(struct term_wait *wait);
};

struct term_wait {
	LIST_ENTRY(term_wait) link;
	const struct term_wait_ops *ops;
	struct client *client; /* NULL: gone, or answered */
	struct warden *warden;
	struct rpc_id rpc_id;
	uv_timer_t timer;
	uint64_t id; /* of the terminal; 0: none yet */
	struct term_read read;
	void *data;
	bool pending; /* its end will be told in any case */
	bool closed;  /* the timer is */
};

/* -ENOMEM, -ENOBUFS. */
int term_wait_new(struct client *client, const struct rpc_message *message,
		  const struct term_wait_ops *ops, uint64_t id,
		  struct term_wait **ret_wait);
/* Answers in any case after this time; 0: never. */
void term_wait_limit(struct term_wait *wait, uint64_t timeout_ms);
/* Answers when it is due already; else it will be. */
void term_wait_check(struct term_wait *wait);
/* Its memory stays until term_wait_unref(), whatever becomes of it. */
void term_wait_ref(struct term_wait *wait);
void term_wait_unref(struct term_wait *wait);
/* Answers, and is gone. */
void term_wait_answer(struct term_wait *wait, int result,
		      const struct buf *json, struct rpc_fault *fault);

/* Answers the question when nothing of its tree is left. */
extern const struct term_wait_ops term_wait_over;
/* What was changed is on record: the state. */
extern const struct term_wait_ops term_wait_recorded;
/* When there is more to read. */
extern const struct term_wait_ops term_wait_more;

#endif
