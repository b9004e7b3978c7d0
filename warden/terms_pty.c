/* SPDX-License-Identifier: MIT */

/*
 * One pty of the world's own /dev/pts.
 *
 *	slave ──▶ master ──(splice)──▶ pipe ──(splice)──▶ segments
 *	             ╰────────────────────┴── the keeper holds both too
 *
 * What is in the terminal or in the pipe when this process dies is the
 * keeper's to save; what has left them is in the page cache, or on record as
 * lost.  Nothing is ever in the memory of this process alone.
 *
 * EIO says that nobody has the slave open, which is the end only if nothing of
 * the tree lives: a program may open it again by its path.  Until then it is
 * looked at now and then, since poll(2) would say so all the time.
 */

#include "warden/terms_priv.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/clock.h"

/* Taken from one terminal before others have their turn. */
#define TURN_BYTES  (256u << 10)
#define DRAIN_TURNS 16

/*
 * Asked for at once.  A terminal has 4 KiB to give, and the kernel takes pages
 * for all that is asked for before it looks.
 */
#define SPLICE_BYTES (8u << 10)

/* What is in the pipe before it goes into the file, which costs as much a go. */
#define PIPED_BYTES (32u << 10)

#define AGAIN_NS   250000000LL
#define WAKE_NS	   20000000LL /* in case that no POLLOUT comes */
#define TERM_NS	   500000000LL
#define LINE_BYTES 4095 /* that a terminal takes at once, by lines */

static void arm(struct term_pty *pty);

/* ---- its end ---- */

static void
on_closed(uv_handle_t *handle)
{
	struct term_pty *pty = handle->data;

	if (--pty->handles > 0)
		return;
	closep(&pty->master);
	closep(&pty->pipe[0]);
	closep(&pty->pipe[1]);
	buf_fini(&pty->input);
	free(pty);
}

void
term_pty_close(struct wterm *term)
{
	struct term_pty *pty = term->pty;

	if (!pty)
		return;
	term->pty = NULL;
	pty->term = NULL;
	uv_close((uv_handle_t *)&pty->poll, on_closed);
	uv_close((uv_handle_t *)&pty->timer, on_closed);
}

/* ---- output ---- */

/* Where a terminal cannot be spliced, the bytes pass through here. */
static ssize_t
copy_through(const struct term_pty *pty)
{
	static char chunk[64 << 10];
	ssize_t n;

	do {
		n = read(pty->master, chunk, sizeof(chunk));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n > 0)
		segments_append(pty->term->raw, chunk, (size_t)n);
	return n;
}

/* What there is, up to PIPED_BYTES; -EAGAIN: nothing; -EIO: nobody has it. */
static ssize_t
fill_pipe(const struct term_pty *pty)
{
	size_t piped = 0;
	ssize_t n;

	do {
		n = splice(pty->master, NULL, pty->pipe[1], NULL, SPLICE_BYTES,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n > 0)
			piped += (size_t)n;
	} while ((n > 0 && piped < PIPED_BYTES) || (n < 0 && errno == EINTR));
	if (piped > 0)
		return (ssize_t)piped;
	return n < 0 ? -errno : -EAGAIN;
}

/* One step; -EAGAIN: nothing is there now; -EIO: nobody has it open. */
static ssize_t
move(const struct term_pty *pty)
{
	struct terms_host *host = pty->term->host;
	ssize_t n, left, m;

	n = fill_pipe(pty);
	if (n == -EINVAL)
		return copy_through(pty);
	if (n < 0)
		return n;
	terms_fault(host, "piped");
	for (left = n; left > 0; left -= m) {
		m = segments_splice(pty->term->raw, pty->pipe[0], (size_t)left);
		if (m <= 0)
			break;
	}
	terms_fault(host, "spliced");
	return n;
}

/* False: nobody has it open. */
static bool
take(struct term_pty *pty, size_t max)
{
	size_t taken = 0;
	ssize_t n = 0;

	while (taken < max && (n = move(pty)) > 0)
		taken += (size_t)n;
	if (taken > 0)
		term_screen_grew(pty->term);
	return taken >= max || n == -EAGAIN;
}

static void on_event(uv_poll_t *poll, int status, int events);

static void
watch(struct term_pty *pty)
{
	int events = UV_READABLE | (pty->wants_out ? UV_WRITABLE : 0);

	if (pty->hung)
		(void)uv_poll_stop(&pty->poll);
	else
		(void)uv_poll_start(&pty->poll, events, on_event);
	arm(pty);
}

/*
 * Takes `max` bytes and looks whether that was all that will come.  The pty may
 * be gone afterwards.
 */
static void
turn(struct term_pty *pty, size_t max)
{
	struct wterm *term = pty->term;
	bool was_hung = pty->hung;

	pty->hung = !take(pty, max);
	if (pty->hung) {
		pty->again_at = clock_mono_ns() + AGAIN_NS;
		pty->wants_out = false;
		pty->input.len = pty->input_at = 0;
	}
	if (pty->hung || was_hung)
		watch(pty);
	if (pty->hung)
		terms_run_written(term);
	terms_run_release(term);
}

void
term_pty_drain(struct wterm *term)
{
	struct term_pty *pty = term->pty;
	uint64_t before = 0;
	bool was_hung = pty && pty->hung;

	/*
	 * Also what came since it was seen that nobody had it open.  Others may
	 * write for ever, but no more fits in between.
	 */
	for (int i = 0;
	     i < DRAIN_TURNS && pty &&
	     (i == 0 || (!pty->hung && segments_end(term->raw) > before));
	     i++) {
		before = segments_end(term->raw);
		pty->hung = !take(pty, TURN_BYTES);
	}
	if (!pty || pty->hung == was_hung)
		return;
	pty->again_at = clock_mono_ns() + AGAIN_NS;
	watch(pty);
}

/* ---- input ---- */

static void
push(struct term_pty *pty)
{
	bool wanted = pty->wants_out;
	size_t left;

	while ((left = pty->input.len - pty->input_at) > 0) {
		ssize_t n = write(pty->master, pty->input.data + pty->input_at,
				  left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		pty->input_at += (size_t)n;
	}
	if (left == 0)
		pty->input.len = pty->input_at = 0;
	pty->wants_out = left > 0;
	if (pty->wants_out || wanted)
		watch(pty);
}

static size_t
waiting(const struct term_pty *pty)
{
	return pty->input.len - pty->input_at;
}

size_t
term_pty_room(const struct wterm *term)
{
	size_t n = term->pty ? waiting(term->pty) : TERMS_INPUT;

	return n < TERMS_INPUT ? TERMS_INPUT - n : 0;
}

static void
count_line(struct term_pty *pty, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		pty->line = strchr("\n\r\003\004\025", bytes[i]) && bytes[i]
				    ? 0
				    : pty->line + 1;
}

static bool
takes_lines(const struct term_pty *pty)
{
	struct termios mode;

	return tcgetattr(pty->master, &mode) == 0 && (mode.c_lflag & ICANON);
}

bool
term_pty_is_too_long(const struct wterm *term, const char *bytes, size_t len)
{
	struct term_pty *pty = term->pty;
	size_t line = 0;

	if (!pty)
		return false;
	if (!takes_lines(pty)) {
		pty->line = 0;
		return false;
	}
	for (size_t i = 0, run = pty->line; i < len; i++) {
		run = strchr("\n\r\003\004\025", bytes[i]) && bytes[i]
			      ? 0
			      : run + 1;
		line = run > line ? run : line;
	}
	return line > LINE_BYTES;
}

size_t
term_pty_write(struct wterm *term, const void *bytes, size_t len, bool ahead)
{
	struct term_pty *pty = term->pty;
	size_t room = term_pty_room(term);

	if (!pty || pty->hung)
		return pty ? len : 0;
	if (len > room)
		len = ahead ? 0 : room;
	if (len == 0)
		return 0;
	buf_drop(&pty->input, pty->input_at);
	pty->input_at = 0;
	buf_put(&pty->input, bytes, len);
	if (buf_error(&pty->input) < 0) {
		pty->input.error = 0;
		return 0;
	}
	if (ahead) {
		memmove(pty->input.data + len, pty->input.data,
			pty->input.len - len);
		memcpy(pty->input.data, bytes, len);
		term->shell.answered = true;
	} else {
		count_line(pty, bytes, len);
		term->shell.typed = true;
	}
	push(pty);
	return len;
}

/* ---- events ---- */

static void
on_event(uv_poll_t *poll, int status, int events)
{
	struct term_pty *pty = poll->data;

	if (!pty->term)
		return;
	if (status >= 0 && (events & UV_WRITABLE))
		push(pty);
	if (pty->term && (status < 0 || (events & UV_READABLE)))
		turn(pty, TURN_BYTES);
}

static void
on_timer(uv_timer_t *timer)
{
	struct term_pty *pty = timer->data;
	int64_t now = clock_mono_ns();

	if (!pty->term)
		return;
	if (pty->term_at && pty->term_at <= now) {
		pty->term_at = 0;
		terms_run_term(pty->term);
	}
	if (pty->wants_out)
		push(pty);
	if (pty->hung && pty->again_at <= now)
		turn(pty, TURN_BYTES);
	else
		arm(pty);
}

static void
arm(struct term_pty *pty)
{
	int64_t now = clock_mono_ns(), at = INT64_MAX, left;

	if (!pty->term)
		return;
	if (pty->hung)
		at = pty->again_at;
	if (pty->term_at && pty->term_at < at)
		at = pty->term_at;
	if (pty->wants_out && now + WAKE_NS < at)
		at = now + WAKE_NS;
	if (at == INT64_MAX) {
		(void)uv_timer_stop(&pty->timer);
		return;
	}
	left = at - now;
	uv_update_time(pty->timer.loop);
	(void)uv_timer_start(
		&pty->timer, on_timer,
		left > 1000000 ? (uint64_t)(left + 999999) / 1000000 : 1, 0);
}

void
term_pty_term_later(struct wterm *term)
{
	if (!term->pty) {
		terms_run_term(term);
		return;
	}
	term->pty->term_at = clock_mono_ns() + TERM_NS;
	arm(term->pty);
}

/* ---- making it ---- */

int
term_pty_set_size(const struct wterm *term, unsigned int cols,
		  unsigned int rows)
{
	const struct winsize size = { .ws_col = (unsigned short)cols,
				      .ws_row = (unsigned short)rows };

	if (!term->pty)
		return -EPIPE;
	return ioctl(term->pty->master, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

/* Of the world; where it has none of its own, of the host. */
static int
open_master(const struct warden *warden)
{
	int flags = O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;

	return warden->devpts >= 0 ? openat(warden->devpts, "ptmx", flags)
				   : open("/dev/ptmx", flags);
}

static int
open_slave(int master, int *ret_slave)
{
	_cleanup_(closep) int slave = -1;
	struct termios mode;
	int unlocked = 0;

	if (ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0 || tcgetattr(slave, &mode) < 0)
		return -errno;
	/* So that what a person takes back is a character, not a byte. */
	mode.c_iflag |= IUTF8;
	if (tcsetattr(slave, TCSANOW, &mode) < 0)
		return -errno;
	*ret_slave = take_fd(&slave);
	return 0;
}

static int
start_handles(struct term_pty *pty, uv_loop_t *loop)
{
	int r = uv_poll_init(loop, &pty->poll, pty->master);

	if (r < 0)
		return r;
	(void)uv_timer_init(loop, &pty->timer);
	pty->handles = 2;
	pty->poll.data = pty->timer.data = pty;
	/* A world ends though its terminals are watched. */
	uv_unref((uv_handle_t *)&pty->poll);
	uv_unref((uv_handle_t *)&pty->timer);
	return 0;
}

int
term_pty_open(struct wterm *term, int *ret_slave)
{
	struct term_pty *pty = calloc(1, sizeof(*pty));
	_cleanup_(closep) int slave = -1;
	int r = 0;

	if (!pty)
		return -ENOMEM;
	pty->pipe[0] = pty->pipe[1] = -1;
	pty->master = open_master(term->host->warden);
	if (pty->master < 0 || pipe2(pty->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		r = -errno;
	if (r == 0)
		r = open_slave(pty->master, &slave);
	if (r == 0)
		r = start_handles(pty, &term->host->warden->loop);
	if (r < 0) {
		closep(&pty->master);
		closep(&pty->pipe[0]);
		closep(&pty->pipe[1]);
		free(pty);
		return r;
	}
	pty->term = term;
	term->pty = pty;
	r = term_pty_set_size(term, term->cols, term->rows);
	if (r == 0)
		r = uv_poll_start(&pty->poll, UV_READABLE, on_event);
	if (r < 0) {
		term_pty_close(term);
		return r;
	}
	*ret_slave = take_fd(&slave);
	return 0;
}
