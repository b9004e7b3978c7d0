/* SPDX-License-Identifier: MIT */

/*
 * One loop over four things that may never come: keys, frames, room on the
 * screen, signals.
 *
 *	keys ──▶ (keys for pale) ──▶ say ──▶ socket
 *	screen ◀── show ◀── frames ◀──────── socket
 *
 * While the screen takes nothing, nothing is read from the socket, so that the
 * warden sees that we are behind and leaves out what nobody could follow; keys
 * are read all the same, or nobody could detach.
 */

#include "cli/term_attach.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/term_keys.h"
#include "cli/term_tty.h"
#include "rpc/frames.h"

#define CALL_TIMEOUT_MS 10000

/* The warden paints our terminal back, if it can do so soon. */
#define LEAVE_MS 500

/* Typed, and the program does not read it: then it is dropped, with a bell. */
#define SAY_MAX (1u << 20)

enum person_end {
	PERSON_GOES_ON,
	PERSON_DETACHED,
	PERSON_ENDED,	 /* the terminal has */
	PERSON_SENT_OFF, /* by the warden */
	PERSON_LOST,	 /* the warden has gone */
	PERSON_HUNG_UP,
	PERSON_SIGNALLED,
};

struct person {
	const struct person_options *options;
	struct term_tty tty;
	struct keys keys;
	int sock, signals;
	struct frames frames;
	const unsigned char *show; /* of the frame that was given out last */
	size_t n_show;
	struct buf say;
	size_t said;
	bool skipping; /* what was sent before we asked to be painted anew */
	bool alt;
	bool tty_ended;
	int64_t leave_until; /* 0: not leaving */
	enum person_end end;
	int status, signal;
	bool painted_back;
	char why[256];
};

static void
person_fini(struct person *person)
{
	term_tty_fini(&person->tty);
	closep(&person->sock);
	closep(&person->signals);
	frames_fini(&person->frames);
	buf_fini(&person->say);
}

static const char *
called(const struct person_options *options)
{
	return options->called ? options->called : options->id;
}

static uint64_t
now_ms(void)
{
	return (uint64_t)(clock_mono_ns() / 1000000);
}

/* ---- to the warden ---- */

static void
flush_say(struct person *person)
{
	while (person->said < person->say.len) {
		ssize_t n = send(person->sock, person->say.data + person->said,
				 person->say.len - person->said,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		/* That it has gone is heard by who reads. */
		if (n < 0)
			return;
		person->said += (size_t)n;
	}
	person->say.len = person->said = 0;
}

static void
say(struct person *person, enum frame_type type, const void *bytes, size_t len)
{
	frame_put(&person->say, (uint8_t)type, 0, bytes, len);
	flush_say(person);
}

static void
say_size(struct person *person)
{
	unsigned int cols, rows;

	term_tty_size(&person->tty, &cols, &rows);
	if (cols == 0 || rows == 0)
		return;
	frame_put_size(&person->say, cols, rows);
	flush_say(person);
}

static void
type_keys(struct person *person, const struct buf *keys)
{
	if (keys->len == 0 || person->options->read_only ||
	    person->leave_until != 0)
		return;
	if (person->say.len - person->said > SAY_MAX) {
		(void)term_tty_write(&person->tty, "\a", 1);
		return;
	}
	frame_put_all(&person->say, FRAME_DATA, keys->data, keys->len);
	flush_say(person);
}

/* ---- leaving, for a while or for good ---- */

static void
begin_to_leave(struct person *person)
{
	if (person->leave_until != 0)
		return;
	person->leave_until = clock_mono_ns() + LEAVE_MS * 1000000LL;
	say(person, FRAME_DETACH, NULL, 0);
}

/* Raw again, and painted anew: whoever had the tty left it in his state. */
static void
come_back(struct person *person)
{
	if (term_tty_enter(&person->tty) < 0) {
		person->end = PERSON_HUNG_UP;
		return;
	}
	person->n_show = 0;
	person->skipping = true;
	say_size(person);
	say(person, FRAME_SYNC, NULL, 0);
}

/* `group`: as if the key had been typed in a tty that takes keys itself. */
static void
suspend(struct person *person, bool group)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t stop;

	term_tty_leave(&person->tty, true, person->alt);
	if (!person->options->quiet)
		term_tty_say(&person->tty, "[suspended: %s]\r\n",
			     called(person->options));
	(void)sigemptyset(&stop);
	(void)sigaddset(&stop, SIGTSTP);
	(void)sigaction(SIGTSTP, &action, NULL);
	(void)(group ? kill(0, SIGTSTP) : raise(SIGTSTP));
	/* Here it stops.  It does not where nobody could continue it. */
	(void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL);
	come_back(person);
	term_tty_lift(&person->tty);
}

static void
act_on(struct person *person, enum keys_found found)
{
	if (found == KEYS_DETACH)
		begin_to_leave(person);
	else if (found == KEYS_SUSPEND)
		suspend(person, true);
}

/* ---- what comes ---- */

static void
on_keys(struct person *person)
{
	_cleanup_(buf_fini) struct buf keys = { 0 };
	enum keys_found found = KEYS_NONE;
	unsigned char bytes[16384];
	ssize_t n = read(person->tty.in, bytes, sizeof(bytes));
	size_t at = 0, taken;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		person->end = PERSON_HUNG_UP;
		return;
	}
	while (at < (size_t)n && found != KEYS_DETACH) {
		found = keys_feed(&person->keys, bytes + at, (size_t)n - at,
				  now_ms(), &keys, &taken);
		at += taken;
		type_keys(person, &keys);
		keys.len = 0;
		act_on(person, found);
	}
}

static void
on_key_time(struct person *person)
{
	_cleanup_(buf_fini) struct buf keys = { 0 };
	enum keys_found found = keys_tick(&person->keys, now_ms(), &keys);

	type_keys(person, &keys);
	act_on(person, found);
}

static void
on_signals(struct person *person)
{
	struct signalfd_siginfo info;

	while (read(person->signals, &info, sizeof(info)) == sizeof(info)) {
		switch ((int)info.ssi_signo) {
		case SIGWINCH:
			say_size(person);
			break;
		case SIGTSTP:
			suspend(person, false);
			break;
		case SIGCONT:
			come_back(person);
			break;
		default:
			person->signal = (int)info.ssi_signo;
			person->end = PERSON_SIGNALLED;
		}
	}
}

/* A text of the object in the frame. */
static void
take_text(const struct frame *frame, const char *key, char *text, size_t size)
{
	json_t *root =
		json_loadb((const char *)frame->payload, frame->len, 0, NULL);
	const char *value = json_string_value(json_object_get(root, key));

	if (value)
		(void)snprintf(text, size, "%s", value);
	json_decref(root);
}

static void
take_state(struct person *person, const struct frame *frame)
{
	json_t *root =
		json_loadb((const char *)frame->payload, frame->len, 0, NULL);

	person->alt = json_is_true(json_object_get(root, "alt"));
	json_decref(root);
}

static void
take_exit(struct person *person, const struct frame *frame)
{
	json_t *root =
		json_loadb((const char *)frame->payload, frame->len, 0, NULL);
	const json_t *code = json_object_get(root, "exit");

	person->status = json_is_integer(code) ? (int)json_integer_value(code)
					       : PERSON_EXIT_FAILED;
	json_decref(root);
	take_text(frame, "status", person->why, sizeof(person->why));
	person->end = PERSON_ENDED;
	person->painted_back = !person->skipping;
}

static void
take_frame(struct person *person, const struct frame *frame)
{
	switch (frame->type) {
	case FRAME_DATA:
		if (!person->skipping) {
			person->show = frame->payload;
			person->n_show = frame->len;
		}
		break;
	case FRAME_SYNC:
		person->skipping = false;
		break;
	case FRAME_STATE:
		take_state(person, frame);
		break;
	case FRAME_DETACH:
		take_text(frame, "reason", person->why, sizeof(person->why));
		person->end =
			person->leave_until ? PERSON_DETACHED : PERSON_SENT_OFF;
		person->painted_back = !person->skipping;
		break;
	case FRAME_EXIT:
		take_exit(person, frame);
		break;
	case FRAME_PING:
		if (!(frame->flags & FRAME_ANSWER)) {
			frame_put(&person->say, FRAME_PING, FRAME_ANSWER,
				  frame->payload, frame->len);
			flush_say(person);
		}
		break;
	default: /* of a later version */
		break;
	}
}

/* Shows what there is, as far as the screen takes it. */
static void
show(struct person *person)
{
	struct frame frame;
	ssize_t n;
	int r;

	while (person->end == PERSON_GOES_ON) {
		if (person->n_show == 0) {
			r = frames_next(&person->frames, &frame);
			if (r < 0)
				person->end = PERSON_LOST;
			if (r <= 0)
				return;
			take_frame(person, &frame);
			continue;
		}
		n = term_tty_write(&person->tty, person->show, person->n_show);
		if (n == -EAGAIN)
			return;
		if (n < 0) {
			person->end = PERSON_HUNG_UP;
			return;
		}
		person->show += n;
		person->n_show -= (size_t)n;
	}
}

static void
on_socket(struct person *person)
{
	unsigned char *at;
	size_t size;
	ssize_t n;

	if (frames_room(&person->frames, &at, &size) < 0) {
		person->end = PERSON_LOST;
		return;
	}
	n = recv(person->sock, at, size, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		person->end = PERSON_LOST;
	else
		frames_added(&person->frames, (size_t)n);
}

/* ---- the loop ---- */

static int
wait_ms(const struct person *person)
{
	int keys_ms = keys_wait_ms(&person->keys, now_ms());
	int leave_ms =
		person->leave_until ? clock_left_ms(person->leave_until) : -1;

	if (keys_ms < 0 || leave_ms < 0)
		return keys_ms < 0 ? leave_ms : keys_ms;
	return keys_ms < leave_ms ? keys_ms : leave_ms;
}

static void
turn(struct person *person)
{
	bool behind = person->n_show > 0;
	bool says = person->said < person->say.len;
	struct pollfd polls[] = {
		{ .fd = person->signals, .events = POLLIN },
		{ .fd = person->tty.in, .events = POLLIN },
		/* One that asks for nothing would be told of a hang-up. */
		{ .fd = behind && !says ? -1 : person->sock,
		  .events = (short)((behind ? 0 : POLLIN) |
				    (says ? POLLOUT : 0)) },
		{ .fd = behind ? person->tty.out : -1, .events = POLLOUT },
	};

	if (poll(polls, 4, wait_ms(person)) < 0 && errno != EINTR) {
		person->end = PERSON_LOST;
		return;
	}
	if (polls[0].revents)
		on_signals(person);
	if (polls[1].revents && person->end == PERSON_GOES_ON)
		on_keys(person);
	on_key_time(person);
	if (polls[2].revents & POLLOUT)
		flush_say(person);
	/* A hang-up is heard even by who does not ask for anything. */
	if ((polls[2].revents & (POLLIN | POLLHUP | POLLERR)) &&
	    person->n_show == 0 && person->end == PERSON_GOES_ON)
		on_socket(person);
	show(person);
	if (person->leave_until && person->end == PERSON_GOES_ON &&
	    clock_left_ms(person->leave_until) == 0)
		person->end = PERSON_DETACHED;
}

static int
open_signals(struct person *person)
{
	static const int caught[] = { SIGWINCH, SIGTSTP, SIGCONT, SIGTERM,
				      SIGHUP,	SIGINT,	 SIGQUIT };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		(void)sigaddset(&set, caught[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	person->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return person->signals < 0 ? -errno : 0;
}

/* ---- from the request to the last words ---- */

static int
ask(struct rpc_client *client, const struct person *person, struct errmsg *why)
{
	const struct person_options *options = person->options;
	_cleanup_(buf_fini) struct buf params = { 0 };
	const struct {
		const char *name;
		bool value;
	} flags[] = {
		{ "read_only", options->read_only },
		{ "titles", options->titles },
		{ "clipboard", options->clipboard },
	};
	unsigned int cols, rows;

	term_tty_size(&person->tty, &cols, &rows);
	jsonw_begin(&params, '{');
	jsonw_pair(&params, "id", options->id);
	if (cols > 0 && rows > 0) {
		jsonw_pair_uint(&params, "cols", cols);
		jsonw_pair_uint(&params, "rows", rows);
	}
	jsonw_pair_uint(&params, "scrollback", options->scrollback);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		jsonw_pair_bool(&params, flags[i].name, flags[i].value);
	jsonw_end(&params, '}');
	return rpc_client_call(client, RPC_TERM_ATTACH, &params,
			       CALL_TIMEOUT_MS, NULL, why);
}

static int
last_words(struct person *person)
{
	const struct person_options *options = person->options;
	const char *id = called(options);

	term_tty_leave(&person->tty, !person->painted_back, person->alt);
	switch (person->end) {
	case PERSON_DETACHED:
		if (!options->quiet)
			term_tty_say(&person->tty, "[detached from %s]\r\n",
				     id);
		return 0;
	case PERSON_ENDED:
		if (!options->quiet)
			term_tty_say(&person->tty, "[%s: %s]\r\n", id,
				     person->why);
		return person->status;
	case PERSON_SENT_OFF:
		term_tty_say(&person->tty, "pale: %s: %s\r\n", id, person->why);
		return PERSON_EXIT_FAILED;
	case PERSON_LOST:
		term_tty_say(&person->tty,
			     "pale: the warden has gone, and %s with it; what "
			     "it wrote is kept: pale term read %s\r\n",
			     id, id);
		return PERSON_EXIT_FAILED;
	case PERSON_HUNG_UP:
		return 128 + SIGHUP;
	case PERSON_SIGNALLED:
	case PERSON_GOES_ON:
		break;
	}
	return 128 + person->signal;
}

/* Ends by the signal that has ended it, for who waits for us to see. */
static void
die_by(int signal)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t set;

	(void)sigaction(signal, &action, NULL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, signal);
	(void)raise(signal);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* What had come behind the answer is the first of the frames. */
static int
take_socket(struct rpc_client *client, struct person *person)
{
	_cleanup_(buf_fini) struct buf rest = { 0 };
	unsigned char *at;
	size_t size;

	person->sock = rpc_client_take(client, &rest);
	if (rest.len == 0)
		return 0;
	if (buf_error(&rest) < 0 ||
	    frames_room(&person->frames, &at, &size) < 0 || rest.len > size)
		return -ENOMEM;
	memcpy(at, rest.data, rest.len);
	frames_added(&person->frames, rest.len);
	return 0;
}

int
person_check(const struct person_options *options, struct errmsg *why)
{
	struct term_tty tty;
	struct keys keys;
	int r = keys_init(&keys, options->detach_key, why);

	if (r < 0)
		return r;
	r = term_tty_open(&tty, why);
	term_tty_fini(&tty);
	return r;
}

int
person_attach(struct rpc_client *client, const struct person_options *options)
{
	_cleanup_(person_fini) struct person person = {
		.options = options,
		.tty = { .in = -1, .out = -1 },
		.sock = -1,
		.signals = -1,
	};
	struct errmsg why = { "" };
	int r, status;

	r = keys_init(&person.keys, options->detach_key, &why);
	if (r == 0)
		r = term_tty_open(&person.tty, &why);
	if (r == 0)
		r = ask(client, &person, &why);
	if (r < 0) {
		rpc_client_close(client);
		cli_error("%s", why.text);
		return r == -EINVAL ? 2 : PERSON_EXIT_FAILED;
	}
	r = take_socket(client, &person);
	if (r == 0)
		r = open_signals(&person);
	if (r == 0)
		r = term_tty_enter(&person.tty);
	if (r == 0)
		term_tty_lift(&person.tty);
	if (r < 0) {
		cli_error("cannot attach: %s", strerror(-r));
		return PERSON_EXIT_FAILED;
	}
	show(&person);
	while (person.end == PERSON_GOES_ON)
		turn(&person);
	status = last_words(&person);
	if (person.end == PERSON_SIGNALLED)
		die_by(person.signal);
	return status;
}
