/* SPDX-License-Identifier: MIT */

/*
 * The command of a job.
 *
 *	command ──▶ pipe ──(splice)──▶ segment files
 *	                 ╰── the keeper holds the read end too
 *
 * What is in a pipe when this process dies is the keeper's to save; what has
 * left it is in the page cache, or on record as lost.  Nothing is ever in the
 * memory of this process alone.
 */

#include "warden/jobs_priv.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "warden/spawn.h"

/* Taken from one pipe before others have their turn. */
#define TURN_BYTES (1u << 20)

static void touch(struct wjob *job);

/* ---- pipes ---- */

static void
on_drain_closed(uv_handle_t *handle)
{
	struct drain *drain = handle->data;

	(void)close(drain->fd);
	free(drain);
}

static void
drop_drain(struct wjob *job, enum output_stream stream)
{
	struct drain *drain = job->drains[stream];

	if (!drain)
		return;
	job->drains[stream] = NULL;
	drain->job = NULL;
	uv_close((uv_handle_t *)&drain->poll, on_drain_closed);
}

void
jobs_run_abandon(struct wjob *job)
{
	drop_drain(job, OUTPUT_STDOUT);
	drop_drain(job, OUTPUT_STDERR);
}

/* Takes up to `max` bytes; false: nothing more is there now. */
static bool
take(struct wjob *job, enum output_stream stream, size_t max)
{
	struct drain *drain = job->drains[stream];
	size_t taken = 0;
	ssize_t n = 0;

	jobs_fault(job->host, "readable");
	while (drain && taken < max) {
		n = output_splice(job->output, stream, drain->fd, max - taken);
		if (n <= 0)
			break;
		jobs_fault(job->host, "spliced");
		if (stream == OUTPUT_STDERR)
			jobs_fault(job->host, "stderr-spliced");
		taken += (size_t)n;
	}
	/* The end of the pipe, or one that fails in a way of its own. */
	if (n == 0 || (n < 0 && n != -EAGAIN)) {
		jobs_fault(job->host, stream == OUTPUT_STDOUT ? "stdout-end"
							      : "stderr-end");
		drop_drain(job, stream);
	}
	return taken >= max;
}

void
jobs_run_drain(struct wjob *job)
{
	for (int i = 0; i < 2; i++)
		while (job->drains[i] &&
		       take(job, (enum output_stream)i, TURN_BYTES))
			;
}

static void
check_written(struct wjob *job)
{
	if (job->drains[0] || job->drains[1])
		return;
	jobs_fault(job->host, "written");
	jobs_written(job->host->core, &job->core);
}

static void
on_readable(uv_poll_t *poll, int status, int events)
{
	struct drain *drain = poll->data;
	struct wjob *job = drain->job;

	(void)status;
	(void)events;
	if (!job)
		return;
	(void)take(job, drain->stream, TURN_BYTES);
	jobs_host_tell(job->host, job->core.id, JOBS_GREW);
	check_written(job);
	touch(job);
}

/* `fd` is taken. */
static int
add_drain(struct wjob *job, enum output_stream stream, int fd)
{
	struct drain *drain = calloc(1, sizeof(*drain));
	int r;

	if (!drain) {
		(void)close(fd);
		return -ENOMEM;
	}
	drain->job = job;
	drain->stream = stream;
	drain->fd = fd;
	r = uv_poll_init(&job->host->warden->loop, &drain->poll, fd);
	if (r < 0) {
		(void)close(fd);
		free(drain);
		return r;
	}
	drain->poll.data = drain;
	uv_unref((uv_handle_t *)&drain->poll);
	job->drains[stream] = drain;
	return uv_poll_start(&drain->poll, UV_READABLE | UV_DISCONNECT,
			     on_readable);
}

static int
open_output_pipe(struct wjob *job, enum output_stream stream, int *ret_write)
{
	int fds[2];
	int r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	/* A writer waits less often; where it may not be, it works as well. */
	(void)fcntl(fds[0], F_SETPIPE_SZ, JOBS_PIPE_BYTES);
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	r = add_drain(job, stream, fds[0]);
	if (r < 0) {
		(void)close(fds[1]);
		return r;
	}
	*ret_write = fds[1];
	return 0;
}

static int
open_stdin(struct wjob *job, int *ret_read)
{
	struct asked *asked = job->asked;
	int fds[2];

	closep(&job->stdin_pipe);
	job->stdin_pipe = -1;
	if (asked->stdin_kind == JOBS_STDIN_FD) {
		*ret_read = fcntl(asked->stdin_fd, F_DUPFD_CLOEXEC, 3);
		return *ret_read < 0 ? -errno : 0;
	}
	if (asked->stdin_kind == JOBS_STDIN_NULL) {
		*ret_read = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return *ret_read < 0 ? -errno : 0;
	}
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	(void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
	job->stdin_pipe = fds[1];
	*ret_read = fds[0];
	return 0;
}

/* ---- what becomes of it ---- */

static void
on_started(void *data, pid_t pid)
{
	struct wjob *job = data;

	jobs_fault(job->host, "started");
	job->started_ns = clock_real_ns();
	jobs_started(job->host->core, &job->core, pid);
	wjob_tell_start(job);
	touch(job);
}

static void
on_failed(void *data, int error, bool by_exec, const char *why)
{
	struct wjob *job = data;

	jobs_fault(job->host, "failed");
	jobs_run_abandon(job);
	jobs_refused(job->host->core, &job->core, error, by_exec, why);
	touch(job);
}

static void
on_exited(void *data, int status, const struct rusage *usage)
{
	struct wjob *job = data;

	jobs_fault(job->host, "exited");
	job->user_us = (uint64_t)usage->ru_utime.tv_sec * 1000000 +
		       (uint64_t)usage->ru_utime.tv_usec;
	job->sys_us = (uint64_t)usage->ru_stime.tv_sec * 1000000 +
		      (uint64_t)usage->ru_stime.tv_usec;
	job->max_rss_kib = (uint64_t)usage->ru_maxrss;
	/* What it wrote is in the pipes now: the end need not wait for it. */
	jobs_run_drain(job);
	jobs_host_tell(job->host, job->core.id, JOBS_GREW);
	jobs_ended(job->host->core, &job->core, status);
	if (job->drains[0] || job->drains[1])
		jobs_fault(job->host, "draining");
	check_written(job);
	touch(job);
}

static void
on_gone(void *data)
{
	struct wjob *job = data;

	jobs_fault(job->host, "gone");
	jobs_run_drain(job);
	jobs_gone(job->host->core, &job->core);
	check_written(job);
	touch(job);
	jobs_host_tell(job->host, job->core.id, JOBS_GONE);
}

static const struct spawn_events events = {
	.started = on_started,
	.failed = on_failed,
	.exited = on_exited,
	.gone = on_gone,
};

/* ---- starting it ---- */

static void
close_all(int fds[3])
{
	for (size_t i = 0; i < 3; i++)
		closep(&fds[i]);
}

static int
open_files(struct wjob *job, int fds[3])
{
	int r = open_stdin(job, &fds[0]);

	if (r == 0)
		r = open_output_pipe(job, OUTPUT_STDOUT, &fds[1]);
	if (r < 0)
		return r;
	if (!job->asked->merge)
		return open_output_pipe(job, OUTPUT_STDERR, &fds[2]);
	fds[2] = fcntl(fds[1], F_DUPFD_CLOEXEC, 3);
	return fds[2] < 0 ? -errno : 0;
}

static int
spawn(struct job *core, void *data)
{
	struct jobs_host *host = data;
	struct wjob *job = core->data;
	char origin[32];
	struct spawn_request request = {
		.origin = origin,
		.argv = &job->asked->argv,
		.env = &job->asked->env,
		.cwd = job->asked->cwd,
		.umask = job->asked->umask,
		.fds = { -1, -1, -1 },
		.drain = { -1, -1 },
		.dir = job->dir,
	};
	int r;

	/* Of an attempt before this one. */
	jobs_run_abandon(job);
	if (job->spawned)
		spawn_forget(host->warden, job->spawn);
	job->spawned = false;
	core->tree_alive = false;

	(void)snprintf(origin, sizeof(origin), "job j%llu",
		       (unsigned long long)core->id);
	jobs_fault(host, "place");
	r = open_files(job, request.fds);
	for (int i = 0; r == 0 && i < 2; i++)
		request.drain[i] = job->drains[i] ? job->drains[i]->fd : -1;
	jobs_fault(host, "piped");
	if (r == 0)
		r = spawn_start(host->warden, &request, &events, job,
				&job->spawn);
	job->spawned = r == 0;
	close_all(request.fds);
	if (r < 0)
		jobs_run_abandon(job);
	jobs_fault(host, "sent");
	return r;
}

static void
send_signal(struct job *core, int signal, void *data)
{
	struct jobs_host *host = data;
	struct wjob *job = core->data;

	if (!job->spawned)
		return;
	jobs_fault(host, "term");
	(void)spawn_signal(host->warden, job->spawn, signal, true);
	/* One that is stopped would not hear it. */
	(void)spawn_signal(host->warden, job->spawn, SIGCONT, true);
	jobs_fault(host, "termed");
}

static void
send_kill(struct job *core, void *data)
{
	struct jobs_host *host = data;
	struct wjob *job = core->data;

	if (!job->spawned)
		return;
	jobs_fault(host, "kill");
	(void)spawn_kill(host->warden, job->spawn);
	jobs_fault(host, "killed");
}

static void
changed(struct job *core, void *data)
{
	struct wjob *job = core->data;

	(void)data;
	if (core->state == JOB_QUEUED)
		jobs_fault(job->host, "retry");
	if (core->state == JOB_STOPPING && core->timed_out)
		jobs_fault(job->host, "timeout");
	if (job_state_is_final(core->state)) {
		jobs_fault(job->host, "settled");
		if (core->output_open)
			jobs_fault(job->host, "output-open");
		job->ended_ns = clock_real_ns();
		/* A queued one waits for who asked: here is the answer. */
		wjob_tell_start(job);
		/* One that never ran has nothing that will tell. */
		if (!job->spawned)
			jobs_run_release(job);
	}
	jobs_store_mark(job);
}

static int64_t
now(void *data)
{
	(void)data;
	return clock_mono_ns();
}

const struct jobs_ops jobs_run_ops = {
	.spawn = spawn,
	.signal = send_signal,
	.kill = send_kill,
	.changed = changed,
	.now = now,
};

/* ---- its end ---- */

int
jobs_run_output(struct wjob *job, struct output **ret_output, bool *ret_own)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(closep) int dir = -1;

	*ret_own = !job->output;
	if (job->output) {
		*ret_output = job->output;
		return 0;
	}
	path = jobs_dir_path(job->host->warden->places.state,
			     job->host->warden->opt.world, job->core.id);
	if (!path)
		return -ENOMEM;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return dir < 0 ? -errno : output_open(dir, NULL, ret_output);
}

void
jobs_run_release(struct wjob *job)
{
	struct jobs_host *host = job->host;

	if (!job->held || !job_state_is_final(job->core.state) ||
	    job->core.tree_alive || job->drains[0] || job->drains[1])
		return;
	jobs_fault(host, "over");
	if (job->spawned)
		spawn_forget(host->warden, job->spawn);
	job->spawned = job->held = false;
	closep(&job->stdin_pipe);
	job->stdin_pipe = -1;
	wjob_forget_asked(job);
	output_finish(job->output);
	job->sizes[0] = output_end(job->output, OUTPUT_STDOUT);
	job->sizes[1] = output_end(job->output, OUTPUT_STDERR);
	job->stored = output_stored(job->output);
	job->output = output_free(job->output);
	closep(&job->dir);
	job->dir = -1;
	/* What stayed open when it settled is closed now. */
	if (job->core.output_open || job->stored != job->recorded) {
		job->core.output_open = false;
		jobs_store_mark(job);
	}
	jobs_host_tell(host, job->core.id, JOBS_GREW);
	warden_release(host->warden);
}

/* After any event of the job; it may have been the last. */
static void
touch(struct wjob *job)
{
	struct jobs_host *host = job->host;

	jobs_run_release(job);
	jobs_host_rearm(host);
}
