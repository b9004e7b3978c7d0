/* SPDX-License-Identifier: MIT */

/*
 * The serving threads.
 *
 * A request costs mostly what waking a thread for it costs, the more so on
 * another processor.  So as a rule one thread reads the device, and what comes
 * while it works waits for it, which wakes nobody.  More read
 *
 *   - when requests have queued up again and again: as many as there are
 *     cores, or up to the bound where it is the disk that takes the time;
 *   - when a request is known to take long (fs_serve_long());
 *   - when one takes longer than a tick: the manager sees that the reader has
 *     not come back.
 *
 * Whoever reads too much, because it sleeps each time, parks.  The manager is
 * the thread that began serving; it ticks only while there is something to do.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "base/clock.h"
#include "fusefs/ops.h"
#include "fusefs/passthrough.h"

/* More than cores: a slow disk or network must not stop everybody. */
#define SPARE_THREADS 8
#define THREADS_MAX   64

#define TICK_NS	   1000000
#define IDLE_TICKS 20
/* A read that returns sooner found a request waiting. */
#define QUEUED_NS    3000
#define QUEUED_TIMES 8
#define SLEPT_TIMES  4
#define LARGE	     16384
#define SLOW_NS	     50000 /* not the processor's doing */
#define JOIN_NS	     5000000

/* Requests of one thread in a row, before and between looking where it is. */
#define BESIDE_FIRST 4
#define BESIDE_AGAIN 64
#define STAT_CPU     37

struct worker {
	struct fs_serve *serve;
	pthread_t thread;
	atomic_uint step; /* odd: in a request */
	/* Under the lock. */
	atomic_bool reads; /* counts as a reader */
	unsigned int seen; /* by the manager, at the last tick */
	bool ended;
};

struct fs_serve {
	struct fs *fs;
	unsigned int max, cores;
	pthread_mutex_t lock;
	pthread_cond_t parked;	/* for those who are */
	pthread_cond_t manager; /* for that one */
	atomic_bool idle;	/* the manager sleeps */
	bool ending;
	unsigned int n_workers, n_parked;
	atomic_uint n_readers; /* changed under the lock */
	unsigned int calls;    /* upon parked ones */
	struct worker workers[THREADS_MAX];
};

static __thread struct worker *self;

static void *worker_main(void *data);

/* One more that reads; without memory for it, those who do must suffice. */
static void
add_reader(struct fs_serve *serve)
{
	struct worker *worker;

	if (serve->n_parked > serve->calls) {
		serve->calls++;
		serve->n_readers++;
		pthread_cond_signal(&serve->parked);
		return;
	}
	if (serve->n_workers >= serve->max)
		return;
	worker = &serve->workers[serve->n_workers];
	worker->serve = serve;
	worker->reads = true;
	if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0)
		return;
	serve->n_workers++;
	serve->n_readers++;
}

/* This one reads no more until it is called. */
static void
park_locked(struct worker *worker)
{
	struct fs_serve *serve = worker->serve;

	if (worker->reads)
		serve->n_readers--;
	worker->reads = false;
	serve->n_parked++;
	while (serve->calls == 0 && !serve->ending)
		pthread_cond_wait(&serve->parked, &serve->lock);
	serve->n_parked--;
	if (serve->calls > 0)
		serve->calls--;
	worker->reads = true;
}

static void
wake_manager(struct fs_serve *serve)
{
	pthread_mutex_lock(&serve->lock);
	pthread_cond_signal(&serve->manager);
	pthread_mutex_unlock(&serve->lock);
}

/* Somebody else reads from here on, until the request is done. */
void
fs_serve_long(void)
{
	struct worker *worker = self;

	if (!worker)
		return;
	pthread_mutex_lock(&worker->serve->lock);
	if (worker->reads) {
		worker->reads = false;
		worker->serve->n_readers--;
		if (worker->serve->n_readers == 0)
			add_reader(worker->serve);
	}
	pthread_mutex_unlock(&worker->serve->lock);
}

/* How reading went, of late. */
struct trend {
	unsigned int queued, slept;
};

/* After a request: one more, one less, or all as it is. */
static void
adapt(struct worker *worker, struct trend *trend, bool slow)
{
	struct fs_serve *serve = worker->serve;

	pthread_mutex_lock(&serve->lock);
	if (!worker->reads && serve->n_readers == 0) {
		/* There was nobody to take its place. */
		worker->reads = true;
		serve->n_readers++;
	} else if (!worker->reads) {
		park_locked(worker);
		*trend = (struct trend){ 0 };
	} else if (trend->queued >= QUEUED_TIMES) {
		trend->queued = 0;
		if (serve->n_readers < (slow ? serve->max : serve->cores))
			add_reader(serve);
	} else if (trend->slept >= SLEPT_TIMES) {
		trend->slept = 0;
		if (serve->n_readers > 1)
			park_locked(worker);
	}
	pthread_mutex_unlock(&serve->lock);
}

/* ---- beside the caller ---- */

/*
 * Who asks one thing after the other sleeps while we work, so its processor is
 * ours for the asking; another one that sleeps takes far longer to wake (here
 * a request costs a third of that).  Only while one thread reads alone, and
 * only for as long as one thread asks.
 */
struct beside {
	uint32_t pid;	    /* of the last request */
	unsigned int times; /* in a row */
	bool is;	    /* bound to one processor */
	int cpu;
	bool known; /* `all` is what we may run on */
	cpu_set_t all;
};

/* The processor that a thread was last on; negative: not known. */
static int
cpu_of(uint32_t pid)
{
	char path[40], text[512];
	const char *at;
	int fd, cpu = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n < 0 ? 0 : n] = '\0';
	/* The name may hold anything; the 37th word after it is meant. */
	at = strrchr(text, ')');
	for (int i = 0; at && i < STAT_CPU; i++)
		at = strchr(at + 1, ' ');
	if (at)
		cpu = (int)strtol(at, NULL, 10);
	return cpu < CPU_SETSIZE ? cpu : -1;
}

static void
bind_to(struct beside *beside, int cpu)
{
	cpu_set_t one;

	if (!beside->known) {
		beside->known = true;
		CPU_ZERO(&beside->all);
		(void)sched_getaffinity(0, sizeof(beside->all), &beside->all);
	}
	CPU_ZERO(&one);
	if (cpu >= 0 && CPU_ISSET(cpu, &beside->all))
		CPU_SET(cpu, &one);
	else
		one = beside->all;
	(void)sched_setaffinity(0, sizeof(one), &one);
	beside->is = cpu >= 0;
	beside->cpu = cpu;
}

static void
stay_beside(struct beside *beside, const struct fuse_buf *buf, bool alone)
{
	const struct fuse_in_header *in = buf->mem;
	int cpu;

	if (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET ||
	    in->opcode == FUSE_RELEASE || in->opcode == FUSE_RELEASEDIR)
		return;
	beside->times = in->pid == beside->pid ? beside->times + 1 : 0;
	beside->pid = in->pid;
	if (!alone || beside->times == 0) {
		if (beside->is)
			bind_to(beside, -1);
		return;
	}
	if (beside->times != BESIDE_FIRST && beside->times % BESIDE_AGAIN != 0)
		return;
	cpu = cpu_of(in->pid);
	if (cpu >= 0 && (!beside->is || cpu != beside->cpu))
		bind_to(beside, cpu);
}

static void *
worker_main(void *data)
{
	struct worker *worker = data;
	struct fs_serve *serve = worker->serve;
	struct fuse_session *session = serve->fs->session;
	struct fuse_buf buf = { 0 };
	struct trend trend = { 0 };
	struct beside beside = { 0 };
	int64_t before = clock_mono_ns();

	self = worker;
	while (!fuse_session_exited(session)) {
		int n = fuse_session_receive_buf(session, &buf);
		int64_t after = clock_mono_ns();

		if (n == -EINTR || n == -EAGAIN)
			continue;
		if (n <= 0)
			break;
		/* Of a larger one, copying took the time. */
		if (n <= LARGE)
			trend = after - before < QUEUED_NS
					? (struct trend){ trend.queued + 1, 0 }
					: (struct trend){ 0, trend.slept + 1 };

		atomic_fetch_add(&worker->step, 1);
		if (atomic_load(&serve->idle) &&
		    atomic_exchange(&serve->idle, false))
			wake_manager(serve);
		stay_beside(&beside, &buf, atomic_load(&serve->n_readers) == 1);
		fuse_session_process_buf(session, &buf);
		atomic_fetch_add(&worker->step, 1);
		before = clock_mono_ns();
		if (!worker->reads || trend.queued >= QUEUED_TIMES ||
		    trend.slept >= SLEPT_TIMES)
			adapt(worker, &trend, before - after > SLOW_NS);
	}
	free(buf.mem);
	fuse_session_exit(session);
	pthread_mutex_lock(&serve->lock);
	worker->ended = true;
	serve->ending = true;
	pthread_cond_broadcast(&serve->parked);
	pthread_cond_signal(&serve->manager);
	pthread_mutex_unlock(&serve->lock);
	return NULL;
}

/*
 * Readers that are where they were a tick ago count no more.  Returns whether
 * anything has moved.
 */
static bool
look(struct fs_serve *serve)
{
	bool moved = false;

	for (unsigned int i = 0; i < serve->n_workers; i++) {
		struct worker *worker = &serve->workers[i];
		unsigned int step = atomic_load(&worker->step);

		if (step != worker->seen)
			moved = true;
		else if ((step & 1) && worker->reads) {
			worker->reads = false;
			serve->n_readers--;
		}
		worker->seen = step;
	}
	if (serve->n_readers == 0)
		add_reader(serve);
	return moved;
}

static void
pause_until(struct fs_serve *serve, int64_t ns)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ns;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	(void)pthread_cond_timedwait(&serve->manager, &serve->lock, &until);
}

/* A request either is seen here or sees that it must wake us. */
static void
sleep_idle(struct fs_serve *serve)
{
	atomic_store(&serve->idle, true);
	if (look(serve))
		atomic_store(&serve->idle, false);
	while (atomic_load(&serve->idle) && !serve->ending &&
	       !fuse_session_exited(serve->fs->session))
		pthread_cond_wait(&serve->manager, &serve->lock);
	atomic_store(&serve->idle, false);
}

static void
manage(struct fs_serve *serve)
{
	unsigned int still = 0;

	while (!serve->ending && !fuse_session_exited(serve->fs->session)) {
		if (still >= IDLE_TICKS)
			sleep_idle(serve);
		else
			pause_until(serve, TICK_NS);
		pthread_mutex_unlock(&serve->lock);
		fs_backing_drain(serve->fs, true);
		pthread_mutex_lock(&serve->lock);
		still = look(serve) ? 0 : still + 1;
	}
	serve->ending = true;
	pthread_cond_broadcast(&serve->parked);
}

/* Those who sleep in the device or in a system call are woken by a signal. */
static void
join_all(struct fs_serve *serve, int wake_signal)
{
	for (unsigned int i = 0; i < serve->n_workers; i++) {
		struct worker *worker = &serve->workers[i];

		while (!worker->ended) {
			(void)pthread_kill(worker->thread, wake_signal);
			pause_until(serve, JOIN_NS);
		}
		pthread_mutex_unlock(&serve->lock);
		(void)pthread_join(worker->thread, NULL);
		pthread_mutex_lock(&serve->lock);
	}
}

void
fs_serve_wake(struct fs *fs)
{
	if (fs->serve)
		wake_manager(fs->serve);
}

void
fs_serve(struct fs *fs, int wake_signal)
{
	struct fs_serve *serve = fs->serve;

	pthread_mutex_lock(&serve->lock);
	add_reader(serve);
	if (serve->n_readers > 0)
		manage(serve);
	join_all(serve, wake_signal);
	pthread_mutex_unlock(&serve->lock);
}

int
fs_serve_new(struct fs *fs)
{
	struct fs_serve *serve = calloc(1, sizeof(*serve));
	int n = get_nprocs();
	pthread_condattr_t attr;

	if (!serve)
		return -ENOMEM;
	serve->fs = fs;
	serve->cores = n < 2 ? 2 : (unsigned int)n;
	if (fs->config.threads)
		serve->cores = fs->config.threads;
	serve->max = serve->cores + SPARE_THREADS;
	if (serve->max > THREADS_MAX)
		serve->max = THREADS_MAX;
	if (serve->cores > serve->max)
		serve->cores = serve->max;
	pthread_mutex_init(&serve->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&serve->parked, NULL);
	pthread_cond_init(&serve->manager, &attr);
	pthread_condattr_destroy(&attr);
	fs->serve = serve;
	return 0;
}

void
fs_serve_free(struct fs *fs)
{
	struct fs_serve *serve = fs->serve;

	if (!serve)
		return;
	pthread_cond_destroy(&serve->parked);
	pthread_cond_destroy(&serve->manager);
	pthread_mutex_destroy(&serve->lock);
	fs->serve = NULL;
	free(serve);
}
