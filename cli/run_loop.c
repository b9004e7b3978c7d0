/* SPDX-License-Identifier: MIT */

/*
 * Who gets which signal.  The command is in our process group, so what a key
 * of the terminal sends reaches it without us (si_code SI_KERNEL): passing
 * that on would make two of one.  What another process sends to us alone is
 * passed on.
 *
 * Stopping: the terminal's stop key stops the command; we, who block it, learn
 * of it and stop ourselves, so that the caller's shell sees a stopped job only
 * when the command really has stopped.  When the shell continues the job, we
 * continue the command.
 */

#include "cli/run_loop.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/command.h"

/* Between the polite and the final signal of a time-out. */
#define GRACE_MS 2000

static const int passed_on[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
				 SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN,
				 SIGTTOU, SIGCONT, SIGALRM };

struct loop {
	struct launch *launch;
	int signals;
	struct tty *tty;
	int64_t deadline_ns; /* 0: none */
	bool stopped;
	struct run_result *result;
};

int
run_signals(void)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++) {
		struct sigaction action;

		/* nohup(1) means it. */
		if (passed_on[i] != SIGTTOU &&
		    sigaction(passed_on[i], NULL, &action) == 0 &&
		    action.sa_handler == SIG_IGN)
			continue;
		(void)sigaddset(&set, passed_on[i]);
	}
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/*
 * A command that stops itself must not outlive its time so.  SIGCONT wakes a
 * stopped process, whoever sends it: a clock too.
 */
static bool
set_alarm(int64_t deadline_ns, timer_t *ret_timer)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGCONT };
	const struct itimerspec at = {
		.it_value = { .tv_sec = deadline_ns / 1000000000,
			      .tv_nsec = deadline_ns % 1000000000 },
	};

	if (timer_create(CLOCK_MONOTONIC, &event, ret_timer) < 0)
		return false;
	(void)timer_settime(*ret_timer, TIMER_ABSTIME, &at, NULL);
	return true;
}

static void
stop_with_command(struct loop *loop)
{
	bool limited = loop->deadline_ns > 0, clocked = false;
	timer_t timer;

	/* The last signal has been sent: the end is all there is to come. */
	if (loop->result->timed_out && loop->deadline_ns == 0)
		return;
	if (limited)
		clocked = set_alarm(loop->deadline_ns, &timer);
	loop->stopped = true;
	tty_take(loop->tty);
	/* Without a clock to wake us, nobody would end the command. */
	if (clocked || !limited)
		(void)kill(getpid(), SIGSTOP);
	if (clocked)
		(void)timer_delete(timer);

	/* Here again: somebody sent SIGCONT. */
	loop->stopped = false;
	tty_give_back(loop->tty);
	(void)launch_continue(loop->launch);
}

static void
on_signal(struct loop *loop)
{
	struct signalfd_siginfo info;

	if (read(loop->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCONT)
		tty_refresh(loop->tty);
	else if (info.ssi_code != SI_KERNEL)
		(void)launch_signal(loop->launch, (int)info.ssi_signo, false);
}

static void
on_exited(struct run_result *result, const struct wire_msg *msg)
{
	result->ended = true;
	result->status = msg->status;
	result->user_us = msg->user_us;
	result->sys_us = msg->sys_us;
	result->max_rss_kib = msg->max_rss_kib;
	if (msg->flags & LAUNCH_EXEC_FAILED)
		result->exec_error = msg->value;
}

/* While we were stopped it has gone on, and more has happened since. */
static bool
is_outdated(const struct loop *loop)
{
	struct pollfd one = { .fd = loop->launch->control, .events = POLLIN };

	return poll(&one, 1, 0) > 0;
}

/* True when there is nothing more to wait for. */
static bool
on_message(struct loop *loop, const struct wire_msg *msg)
{
	struct run_result *result = loop->result;

	if (msg->type == WIRE_STARTED || msg->type == WIRE_EXITED) {
		command_let_go_of_stdio();
		result->world_flags = msg->flags;
		(void)snprintf(result->limits, sizeof(result->limits), "%.15s",
			       msg->text);
	}
	if (msg->type == WIRE_STARTED) {
		result->started = true;
	} else if (msg->type == WIRE_STOPPED) {
		if (!is_outdated(loop))
			stop_with_command(loop);
	} else if (msg->type == WIRE_EXITED) {
		on_exited(result, msg);
		return true;
	} else if (msg->type == WIRE_FAILED) {
		result->failed = true;
		result->no_world = msg->flags & LAUNCH_NO_WORLD;
		(void)errmsg_set(&result->error, 0, "%s", msg->text);
		return true;
	}
	return false;
}

static int
poll_timeout(struct loop *loop)
{
	return loop->deadline_ns == 0 ? -1 : clock_left_ms(loop->deadline_ns);
}

static void
on_deadline(struct loop *loop)
{
	if (loop->deadline_ns == 0 || clock_mono_ns() < loop->deadline_ns)
		return;
	if (loop->result->timed_out) {
		(void)launch_signal(loop->launch, SIGKILL, true);
		loop->deadline_ns = 0;
		return;
	}
	loop->result->timed_out = true;
	(void)launch_signal(loop->launch, SIGTERM, false);
	(void)launch_continue(loop->launch);
	loop->deadline_ns = clock_mono_ns() + GRACE_MS * 1000000LL;
}

void
run_loop(struct launch *launch, int signals, struct tty *tty,
	 uint64_t timeout_ms, struct run_result *ret_result)
{
	int64_t start = clock_mono_ns();
	struct loop loop = { .launch = launch,
			     .signals = signals,
			     .tty = tty,
			     .result = ret_result };
	struct wire_msg msg;

	*ret_result = (struct run_result){ .limits = "none" };
	if (timeout_ms > 0)
		loop.deadline_ns = start + (int64_t)timeout_ms * 1000000;
	for (;;) {
		struct pollfd polls[2] = {
			{ .fd = launch->control, .events = POLLIN },
			{ .fd = signals, .events = POLLIN },
		};

		if (poll(polls, 2, poll_timeout(&loop)) < 0 && errno != EINTR)
			break;
		if (polls[1].revents)
			on_signal(&loop);
		on_deadline(&loop);
		if (!polls[0].revents)
			continue;
		if (launch_receive(launch, &msg) <= 0)
			break;
		if (on_message(&loop, &msg))
			break;
	}
	ret_result->duration_ns = clock_mono_ns() - start;
	if (!ret_result->ended && !ret_result->failed) {
		ret_result->failed = true;
		(void)errmsg_set(&ret_result->error, 0,
				 "the world's keeper has died, and the world "
				 "with it");
	}
}
