/* SPDX-License-Identifier: MIT */

/*
 * The program of a terminal.  Its states are a job's (jobs/state.h): it is
 * told to have ended when nobody has the pty open any more, or 500 ms later
 * with `output_open`; what comes after that is kept all the same.
 *
 * To end it is to hang up: SIGHUP and SIGCONT to all of the tree, SIGTERM half
 * a second later for those who only know that, and SIGKILL after the grace.
 * The pty itself stays, so that what they say to it is not lost.
 */

#include "warden/terms_priv.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "warden/spawn.h"

static void
touch(struct wterm *term)
{
	struct terms_host *host = term->host;

	terms_run_release(term);
	terms_host_rearm(host);
}

/* ---- what becomes of it ---- */

static void
on_started(void *data, pid_t pid)
{
	struct wterm *term = data;

	terms_fault(term->host, "started");
	term->started_ns = clock_real_ns();
	jobs_started(term->host->core, &term->core, pid);
	touch(term);
}

static void
on_failed(void *data, int error, bool by_exec, const char *why)
{
	struct wterm *term = data;

	term_pty_close(term);
	jobs_refused(term->host->core, &term->core, error, by_exec, why);
	touch(term);
}

static void
on_exited(void *data, int status, const struct rusage *usage)
{
	struct wterm *term = data;

	terms_fault(term->host, "exited");
	term->user_us = (uint64_t)usage->ru_utime.tv_sec * 1000000 +
			(uint64_t)usage->ru_utime.tv_usec;
	term->sys_us = (uint64_t)usage->ru_stime.tv_sec * 1000000 +
		       (uint64_t)usage->ru_stime.tv_usec;
	term->max_rss_kib = (uint64_t)usage->ru_maxrss;
	/* What it wrote is in the terminal: the end need not wait for it. */
	term_pty_drain(term);
	jobs_ended(term->host->core, &term->core, status);
	if (!term->pty || term->pty->hung)
		terms_run_written(term);
	touch(term);
}

static void
on_gone(void *data)
{
	struct wterm *term = data;
	uint64_t id = term->core.id;
	struct terms_host *host = term->host;

	terms_fault(host, "gone");
	term_pty_drain(term);
	jobs_gone(host->core, &term->core);
	if (!term->pty || term->pty->hung)
		terms_run_written(term);
	touch(term);
	terms_host_tell(host, id, TERMS_OVER, NULL);
}

static const struct spawn_events events = {
	.started = on_started,
	.failed = on_failed,
	.exited = on_exited,
	.gone = on_gone,
};

void
terms_run_written(struct wterm *term)
{
	/* Before its program has it, it is ours alone. */
	if (term->core.state == JOB_QUEUED || term->core.state == JOB_STARTING)
		return;
	/* Only of one that runs it is no end: it may open it again. */
	if (term->core.ended)
		jobs_written(term->host->core, &term->core);
}

/* ---- starting it ---- */

static int
spawn(struct job *core, void *data)
{
	struct terms_host *host = data;
	struct wterm *term = core->data;
	_cleanup_(closep) int slave = -1, lines = -1;
	_cleanup_(strv_fini) struct strv argv = { 0 };
	char origin[32];
	struct spawn_request request = {
		.origin = origin,
		.argv = &term->asked->argv,
		.env = &term->asked->env,
		.cwd = term->asked->cwd,
		.umask = term->asked->umask,
		.dir = term->dir,
		.terminal = true,
	};
	int r;

	(void)snprintf(origin, sizeof(origin), "terminal t%llu",
		       (unsigned long long)core->id);
	terms_fault(host, "place");
	r = term_pty_open(term, &slave);
	if (r < 0)
		return r;
	for (size_t i = 0; i < 3; i++)
		request.fds[i] = slave;
	r = term_shell_prepare(term, &argv, &lines);
	if (r == 0 && lines >= 0) {
		request.argv = &argv;
		request.fds[2] = lines;
	}
	request.drain[0] = term->pty->pipe[0];
	request.drain[1] = term->pty->master;
	if (r == 0)
		r = spawn_start(host->warden, &request, &events, term,
				&term->spawn);
	term->spawned = r == 0;
	if (r < 0)
		term_pty_close(term);
	terms_fault(host, "sent");
	return r;
}

static void
send_signal(struct job *core, int signal, void *data)
{
	const struct terms_host *host = data;
	struct wterm *term = core->data;

	if (!term->spawned)
		return;
	(void)spawn_signal(host->warden, term->spawn, signal, true);
	/* One that is stopped would not hear it. */
	(void)spawn_signal(host->warden, term->spawn, SIGCONT, true);
	term_pty_term_later(term);
}

void
terms_run_term(struct wterm *term)
{
	if (!term->spawned || !term->core.tree_alive)
		return;
	(void)spawn_signal(term->host->warden, term->spawn, SIGTERM, true);
	(void)spawn_signal(term->host->warden, term->spawn, SIGCONT, true);
}

static void
send_kill(struct job *core, void *data)
{
	const struct terms_host *host = data;
	const struct wterm *term = core->data;

	if (term->spawned)
		(void)spawn_kill(host->warden, term->spawn);
}

static void
changed(struct job *core, void *data)
{
	struct wterm *term = core->data;

	(void)data;
	if (job_state_is_final(core->state)) {
		terms_fault(term->host, "settled");
		term->ended_ns = clock_real_ns();
		/* One that never ran has nothing that will tell. */
		if (!term->spawned)
			terms_run_release(term);
	}
	terms_store_mark(term);
}

static int64_t
now(void *data)
{
	(void)data;
	return clock_mono_ns();
}

const struct jobs_ops terms_run_ops = {
	.spawn = spawn,
	.signal = send_signal,
	.kill = send_kill,
	.changed = changed,
	.now = now,
};

/* ---- its end ---- */

void
terms_run_release(struct wterm *term)
{
	struct terms_host *host = term->host;

	if (!term->held || !job_state_is_final(term->core.state) ||
	    term->core.tree_alive || (term->pty && !term->pty->hung))
		return;
	terms_fault(host, "over");
	if (term->spawned)
		spawn_forget(host->warden, term->spawn);
	term->spawned = term->held = false;
	term_pty_close(term);
	term_asked_free(term->asked);
	term->asked = NULL;
	segments_finish(term->raw);
	term_screen_close(term);
	term->bytes = segments_end(term->raw);
	term->stored = segments_stored(term->raw);
	term->raw = segments_free(term->raw);
	closep(&term->dir);
	term->dir = -1;
	/* What stayed open when it settled is closed now. */
	if (term->core.output_open || term->stored != term->recorded) {
		term->core.output_open = false;
		terms_store_mark(term);
	}
	terms_host_tell(host, term->core.id, TERMS_GREW, NULL);
	warden_release(host->warden);
}
