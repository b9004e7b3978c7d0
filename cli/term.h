/* SPDX-License-Identifier: MIT */
#ifndef CLI_TERM_H
#define CLI_TERM_H

/*
 * What the verbs of `pale term` share.  Records, output and the screens of
 * ended terminals are read where they lie, whether or not a warden lives;
 * whatever acts on a terminal, or looks at the screen of one that lives, asks
 * its warden.
 *
 * Thread: main.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/records.h"
#include "policy/store_terms.h"
#include "warden/terms_row.h"

struct term_options {
	struct cli_common common;
	struct cli_policy_options policy; /* new; -w and -s elsewhere */
	const char *world;
	/* new */
	const char *name, *size;
	struct command_options command;
	bool detach;
	/* send, run */
	const char *keys;
	bool enter, from_stdin, paste, wait, plain, raw;
	/* read */
	const char *cursor;
	uint64_t max, wait_ms;
	bool follow;
	/* screen, lines */
	const char *format;
	uint64_t scrollback, offset, count;
	/* attach; scrollback */
	const char *detach_key;
	bool read_only, titles, clipboard;
	/* the others */
	struct strv until; /* wait --for */
	bool all, pin, unpin;
	uint64_t timeout_ms, grace_ms;
};

/* The longest time that a request may take which is answered at once. */
#define TERM_ASK_MS 30000

/* One verb: its operands; the exit status. */
#define TERM_VERB(verb)                                               \
	int term_##verb(const struct term_options *options, int argc, \
			char **argv)
TERM_VERB(new);
TERM_VERB(send);
TERM_VERB(run);
TERM_VERB(read);
TERM_VERB(screen);
TERM_VERB(lines);
TERM_VERB(list);
TERM_VERB(show);
TERM_VERB(status);
TERM_VERB(wait);
TERM_VERB(attach);
TERM_VERB(resize);
TERM_VERB(signal);
TERM_VERB(kill);
TERM_VERB(rename);
TERM_VERB(rm);
TERM_VERB(path);
#undef TERM_VERB

#define TERM_TEXTS 9

/* A record with texts of its own, and where it was found. */
struct term_record {
	struct record_places places;
	struct store_term row;
	char *texts[TERM_TEXTS];
};
void term_record_fini(struct term_record *record);

/*
 * The record of a terminal by its id or its name in the workspace and session
 * of the options, settled first if nobody owns it any more.  -ENOENT.
 */
int term_open(const struct term_options *options, const char *id_or_name,
	      struct term_record *ret_record, struct errmsg *why);
/* Brings it up to date. */
int term_reload(struct term_record *record, struct errmsg *why);
/* The same when its warden has gone: until the record says how it ended. */
int term_reload_gone(struct term_record *record, struct errmsg *why);

/*
 * Asks its warden: `params` is begun by term_begin() and is ended here.
 * *ret_result (NULL allowed) is a new reference.  As rpc_client_call(), and
 * what record_is_nobody() knows: there is no warden.
 */
void term_begin(struct buf *params, const struct term_record *record);
int term_ask(const struct term_record *record, enum rpc_method method,
	     struct buf *params, int timeout_ms, json_t **ret_result,
	     struct errmsg *why);

/* Its directory, to be read; -1: it has none.  Errors with a sentence. */
int term_open_dir(const struct term_record *record, int *ret_dir,
		  struct errmsg *why);

/* "100x30"; -EINVAL with a sentence. */
int term_parse_size(const char *text, unsigned int *ret_cols,
		    unsigned int *ret_rows, struct errmsg *why);

/* term_run.c: send with keys, a paste, or the wait for what comes of it. */
int term_send_typed(const struct term_options *options, int argc, char **argv);

/* The line of its state, or as JSON; `prefix` before it. */
int term_print(const struct term_options *options, const struct store_term *row,
	       const char *prefix);

#endif
