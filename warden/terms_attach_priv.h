/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_TERMS_ATTACH_PRIV_H
#define WARDEN_TERMS_ATTACH_PRIV_H

/*
 * People at the terminals: a connection whose lines have become frames.
 *
 *	server ──▶ audience ──▶ attach ──▶ client
 *	           (of one      (one
 *	            terminal)    person)
 *
 *	terms_attach.c	the request, what people type, the sizes of their windows
 *	terms_show.c	what they are shown
 *
 * An audience is there while somebody is attached.  Its people are in the order
 * of what they did last; the first who may type decides about the size.
 *
 * Thread: loop.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/buf.h"
#include "base/segments.h"
#include "rpc/frames.h"
#include "warden/server_priv.h"
#include "warden/terms.h"

/* Frames that were made lately, for those who come after. */
#define AUDIENCE_RECENT 8

struct attach;
struct vt_event;

/* One frame or several, as they are sent; shared by who gets the same. */
struct attach_block {
	unsigned int refs;
	uint64_t from, to; /* of the log; equal: of nothing there */
	size_t len;
	unsigned char bytes[];
};

struct audience {
	LIST_ENTRY(audience) link;
	struct server *server;
	struct warden *warden;
	uint64_t id;
	TAILQ_HEAD(attach_list, attach) people;
	unsigned int n_people;
	struct terms_size size;
	int64_t sized_ns; /* when people changed it last */
	bool size_due;
	bool left; /* somebody has */
	uv_timer_t timer;
	struct segments_file file;
	struct attach_block *recent[AUDIENCE_RECENT];
	unsigned int next_recent;
};

struct attach {
	TAILQ_ENTRY(attach) next;
	struct audience *audience;
	struct client *client;
	struct frames in;
	struct buf held;	 /* typed, and not taken by the terminal yet */
	unsigned int cols, rows; /* of the window; 0: not known */
	bool read_only, titles, clipboard;

	uint64_t cursor;     /* of the log: what comes next */
	unsigned int writes; /* on their way to the socket */
	bool repaint;	     /* before anything else */
	bool state_due;	     /* a STATE is */
	bool paint_due;	     /* a view of another size is behind */
	int64_t painted_ns;
	uint64_t scrollback; /* lines that are shown before; then 0 */
	struct buf told;     /* sequences that go before the log's */
	bool over;	     /* the last frame is on its way */
	bool broken;	     /* it is to be closed, not from here */
};

/* Between two paintings of a window of another size. */
#define ATTACH_PAINT_NS 40000000LL

/* terms_attach.c: something is due later. */
void audience_rearm(struct audience *audience);

/*
 * ---- terms_show.c ----
 *
 * None of them closes a client, so that whoever goes through an audience may
 * call them: what cannot go on is `broken`, and closed a moment later.
 */

/* Sends what there is to be shown, as far as it can be sent. */
void attach_pump(struct attach *attach);
/* The last frame: a JSON object {"reason": …}. */
void attach_send_off(struct attach *attach, const char *reason);
/* Bytes that are no part of the log; taken over. */
void attach_send(struct attach *attach, struct buf *frames);
/*
 * A title or the clipboard, for who wants it; to be sent later, for the model
 * is at work.
 */
void attach_tell(struct attach *attach, const struct vt_event *event);
void audience_forget_blocks(struct audience *audience);

#endif
