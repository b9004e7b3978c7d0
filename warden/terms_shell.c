/* SPDX-License-Identifier: MIT */

#include "warden/terms_shell.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "pty/shell_integration.h"
#include "pty/vt.h"
#include "warden/terms_priv.h"

#define NONCE_BYTES 16

static int
make_nonce(char text[2 * NONCE_BYTES + 1])
{
	unsigned char bytes[NONCE_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* All of it, or nothing: a pipe may be small where there are many. */
static int
fill_pipe(const struct buf *lines, int *ret_end)
{
	_cleanup_(closep) int end = -1, filled = -1;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	end = fds[0];
	filled = fds[1];
	if (fcntl(filled, F_SETFL, O_NONBLOCK) < 0 ||
	    write(filled, lines->data, lines->len) != (ssize_t)lines->len)
		return -EAGAIN;
	*ret_end = take_fd(&end);
	return 0;
}

int
term_shell_prepare(struct wterm *term, struct strv *ret_argv, int *ret_lines)
{
	_cleanup_(buf_fini) struct buf lines = { 0 };
	const struct strv *argv = &term->asked->argv;
	enum shell_kind kind = shell_kind_of(argv, &term->asked->env);
	struct vt *vt = term->screen.vt;
	char nonce[2 * NONCE_BYTES + 1];
	int r;

	*ret_lines = -1;
	/* A shell that says nothing is better than none. */
	if (kind == SHELL_OTHER || !vt || make_nonce(nonce) < 0)
		return 0;
	shell_lines(kind, nonce, &lines);
	r = buf_error(&lines);
	if (r == 0)
		r = shell_wrap(kind, argv, ret_argv);
	if (r < 0 || fill_pipe(&lines, ret_lines) < 0)
		return r;
	vt_set_nonce(vt, nonce);
	term->shell.speaks = true;
	term->shell.keeps = kind == SHELL_FISH;
	return 0;
}

void
term_shell_note(struct term_shell *shell, const struct vt_event *event)
{
	if (event->kind != VT_EVENT_MARK || !event->trusted ||
	    event->mark < 'A' || event->mark > 'D')
		return;
	shell->last = event->mark;
	shell->from = event->from;
	shell->to = event->to;
	shell->typed = false;
}

bool
term_shell_at_prompt(const struct term_shell *shell)
{
	return shell->last == 'B';
}

bool
term_shell_is_idle(const struct term_shell *shell)
{
	return term_shell_at_prompt(shell) && !shell->typed;
}

bool
term_shell_will_prompt(const struct term_shell *shell)
{
	return shell->speaks &&
	       (shell->last == 0 || shell->last == 'A' || shell->last == 'D');
}

bool
term_shell_runs(const struct term_shell *shell)
{
	return shell->last == 'C';
}
