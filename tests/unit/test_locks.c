/* SPDX-License-Identifier: MIT */

/*
 * Lock forwarding with a stand-in for libfuse's requests: what is asked and
 * what is answered.  The host is a second open file description, or a child.
 */

#include "fusefs/locks.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "tests/unit/suite.h"

#define SECOND 1000000000LL

/* ---- requests ---- */

struct fuse_req {
	struct fuse_ctx ctx;
	fuse_interrupt_func_t func;
	void *data;
	bool done;
	int error;
	struct flock lock;
	int seen; /* invalidations before the answer */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int invalidations;

const struct fuse_ctx *
fuse_req_ctx(fuse_req_t req)
{
	return &req->ctx;
}

void
fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *data)
{
	pthread_mutex_lock(&mutex);
	req->func = func;
	req->data = data;
	pthread_mutex_unlock(&mutex);
}

int
fuse_reply_err(fuse_req_t req, int error)
{
	pthread_mutex_lock(&mutex);
	ck_assert(!req->done);
	req->done = true;
	req->error = error;
	req->seen = invalidations;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
	return 0;
}

int
fuse_reply_lock(fuse_req_t req, const struct flock *lock)
{
	req->lock = *lock;
	return fuse_reply_err(req, 0);
}

static int
answer(struct fuse_req *req)
{
	int error;

	pthread_mutex_lock(&mutex);
	while (!req->done)
		pthread_cond_wait(&cond, &mutex);
	error = req->error;
	pthread_mutex_unlock(&mutex);
	return error;
}

/* Still unanswered after a while in which the waiter thread tried again. */
static bool
waits(struct fuse_req *req)
{
	bool done;

	usleep(60000);
	pthread_mutex_lock(&mutex);
	done = req->done;
	pthread_mutex_unlock(&mutex);
	return !done;
}

static void
interrupt(struct fuse_req *req)
{
	pthread_mutex_lock(&mutex);
	if (req->func)
		req->func(req, req->data);
	pthread_mutex_unlock(&mutex);
}

/* ---- fixture ---- */

static char path[] = "/tmp/test-locks-XXXXXX";
static struct locks *locks;
static int fds[3]; /* three handles of the file */

static int held_at_invalidation;

static int host_set(short type);

static void
invalidate(void *data, uint64_t ino, bool border)
{
	(void)border;
	if (held_at_invalidation < 0)
		held_at_invalidation = host_set(F_WRLCK);
	ck_assert_ptr_eq(data, &invalidations);
	ck_assert_uint_eq(ino, 7);
	pthread_mutex_lock(&mutex);
	invalidations++;
	pthread_mutex_unlock(&mutex);
}

static void
setup(void)
{
	struct locks_config config = { invalidate, &invalidations };

	snprintf(path, sizeof(path), "/tmp/test-locks-XXXXXX");
	fds[0] = mkstemp(path);
	fds[1] = open(path, O_RDWR | O_CLOEXEC);
	fds[2] = open(path, O_RDONLY | O_CLOEXEC);
	invalidations = 0;
	held_at_invalidation = 0;
	ck_assert_int_eq(locks_new(&config, &locks), 0);
}

static void
teardown(void)
{
	locks = locks_free(locks);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	unlink(path);
}

static struct locks_target
target(int handle, uint64_t owner)
{
	return (struct locks_target){ .ino = 7,
				      .owner = owner,
				      .fh = (uint64_t)handle + 100,
				      .fd = fds[handle] };
}

static void
ask(struct fuse_req *req, int handle, uint64_t owner, short type, int sleep)
{
	struct locks_target t = target(handle, owner);
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	*req = (struct fuse_req){ .ctx.pid = (pid_t)owner };
	locks_setlk(locks, req, &t, &lock, sleep);
}

/* One byte, of the file or, as its border, of a wal-index. */
static void
ask_byte(struct fuse_req *req, uint64_t owner, off_t byte, int border,
	 short type)
{
	struct locks_target t = target((int)(owner % 2), owner);
	struct flock lock = { .l_type = type,
			      .l_whence = SEEK_SET,
			      .l_start = byte,
			      .l_len = 1 };

	t.border = border;
	*req = (struct fuse_req){ .ctx.pid = (pid_t)owner };
	locks_setlk(locks, req, &t, &lock, !border && type != F_UNLCK);
}

static int
set_byte(uint64_t owner, off_t byte, int border, short type)
{
	struct fuse_req req;

	ask_byte(&req, owner, byte, border, type);
	return answer(&req);
}

static struct flock
test_byte(uint64_t owner, off_t byte, int border)
{
	struct locks_target t = target((int)(owner % 2), owner);
	struct flock lock = { .l_type = F_WRLCK,
			      .l_whence = SEEK_SET,
			      .l_start = byte,
			      .l_len = 1 };
	struct fuse_req req = { 0 };

	t.border = border;
	locks_getlk(locks, &req, &t, &lock);
	ck_assert_int_eq(answer(&req), 0);
	return req.lock;
}

static int
set(int handle, uint64_t owner, short type)
{
	struct fuse_req req;

	ask(&req, handle, owner, type, 0);
	return answer(&req);
}

static int
flock_now(int handle, int op)
{
	struct fuse_req req = { .ctx.pid = 1 };
	struct locks_target t = target(handle, 0);

	locks_flock(locks, &req, &t, op | LOCK_NB);
	return answer(&req);
}

/* What a process outside gets from F_SETLK. */
static int
host_set(short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open(path, O_RDWR | O_CLOEXEC);

		_exit(fcntl(fd, F_SETLK, &lock) == 0 ? 0 : errno);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

START_TEST(owners_exclude_each_other_and_the_host)
{
	ck_assert_int_eq(set(0, 1, F_WRLCK), 0);
	ck_assert_int_eq(set(0, 1, F_WRLCK), 0);
	ck_assert_int_eq(set(1, 2, F_WRLCK), EAGAIN);
	ck_assert_int_eq(set(2, 2, F_RDLCK), EAGAIN);
	ck_assert_int_eq(host_set(F_RDLCK), EAGAIN);
	ck_assert_int_eq(set(0, 1, F_RDLCK), 0);
	ck_assert_int_eq(set(2, 2, F_RDLCK), 0);
	ck_assert_int_eq(host_set(F_RDLCK), 0);
	ck_assert_int_eq(host_set(F_WRLCK), EAGAIN);
	ck_assert_int_eq(set(1, 3, F_UNLCK), 0);
	ck_assert_int_eq(set(0, 1, F_UNLCK), 0);
	ck_assert_int_eq(set(0, 2, F_UNLCK), 0);
	ck_assert_int_eq(host_set(F_WRLCK), 0);
}
END_TEST

START_TEST(an_owner_upgrades_across_its_handles)
{
	ck_assert_int_eq(set(2, 1, F_RDLCK), 0);
	ck_assert_int_eq(set(0, 1, F_WRLCK), 0);
	ck_assert_int_eq(host_set(F_RDLCK), EAGAIN);
}
END_TEST

START_TEST(the_cache_is_dropped_before_a_grant_is_told)
{
	struct fuse_req req;

	ask(&req, 0, 1, F_WRLCK, 0);
	ck_assert_int_eq(answer(&req), 0);
	ck_assert_int_eq(req.seen, 1);
	ck_assert_int_eq(set(1, 2, F_WRLCK), EAGAIN);
	ck_assert_int_eq(invalidations, 1);
}
END_TEST

START_TEST(what_is_stored_goes_to_the_disk_before_a_lock_ends)
{
	struct fuse_req req;

	/* A lock for reading protects no stores. */
	ck_assert_int_eq(set(0, 1, F_RDLCK), 0);
	ck_assert_int_eq(set(0, 1, F_UNLCK), 0);
	ck_assert_int_eq(invalidations, 1);
	ck_assert_int_eq(set(0, 1, F_WRLCK), 0);
	held_at_invalidation = -1;
	ask(&req, 0, 1, F_UNLCK, 0);
	ck_assert_int_eq(answer(&req), 0);
	ck_assert_int_eq(invalidations, 3);
	ck_assert_int_eq(held_at_invalidation, EAGAIN);
	ck_assert_int_eq(host_set(F_WRLCK), 0);

	ck_assert_int_eq(flock_now(0, LOCK_EX), 0);
	ck_assert_int_eq(flock_now(0, LOCK_UN), 0);
	ck_assert_int_eq(invalidations, 5);
}
END_TEST

START_TEST(a_waiting_owner_gets_the_lock_when_it_is_freed)
{
	struct fuse_req req;

	ck_assert_int_eq(set(0, 1, F_WRLCK), 0);
	ask(&req, 1, 2, F_WRLCK, 1);
	ck_assert(waits(&req));
	locks_flush(locks, 7, 1);
	ck_assert_int_eq(answer(&req), 0);
	ck_assert_int_eq(set(0, 1, F_RDLCK), EAGAIN);
}
END_TEST

START_TEST(a_waiting_owner_gets_the_lock_when_the_host_frees_it)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct fuse_req req;
	int64_t then;

	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
	ask(&req, 1, 2, F_RDLCK, 1);
	ck_assert(waits(&req));
	then = clock_mono_ns();
	close(fd);
	ck_assert_int_eq(answer(&req), 0);
	ck_assert_int_lt(clock_mono_ns() - then, SECOND);
}
END_TEST

START_TEST(a_wait_can_be_interrupted)
{
	struct fuse_req req;

	ck_assert_int_eq(set(0, 1, F_WRLCK), 0);
	ask(&req, 1, 2, F_WRLCK, 1);
	ck_assert(waits(&req));
	interrupt(&req);
	ck_assert_int_eq(answer(&req), EINTR);
	locks_flush(locks, 7, 1);
	ck_assert_int_eq(host_set(F_WRLCK), 0);
}
END_TEST

START_TEST(the_end_interrupts_whoever_waits)
{
	struct fuse_req req;

	ck_assert_int_eq(set(0, 1, F_WRLCK), 0);
	ask(&req, 1, 2, F_WRLCK, 1);
	locks = locks_free(locks);
	ck_assert_int_eq(answer(&req), ENOTCONN);
	ck_assert_int_eq(host_set(F_WRLCK), 0);
}
END_TEST

START_TEST(releasing_the_handle_ends_the_locks_of_an_open_file)
{
	/* F_OFD_SETLK inside: the owner is the open file, and no FLUSH comes. */
	ck_assert_int_eq(set(0, 10, F_WRLCK), 0);
	ck_assert_int_eq(set(1, 11, F_WRLCK), EAGAIN);
	locks_release(locks, 7, 101);
	ck_assert_int_eq(set(1, 11, F_WRLCK), EAGAIN);
	locks_release(locks, 7, 100);
	ck_assert_int_eq(set(1, 11, F_WRLCK), 0);
}
END_TEST

START_TEST(flock_excludes_handles_and_the_host)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(flock_now(0, LOCK_EX), 0);
	ck_assert_int_eq(flock_now(1, LOCK_SH), EWOULDBLOCK);
	ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), -1);
	ck_assert_int_eq(flock_now(0, LOCK_SH), 0);
	ck_assert_int_eq(flock_now(2, LOCK_SH), 0);
	ck_assert_int_eq(flock_now(0, LOCK_UN), 0);
	ck_assert_int_eq(flock_now(2, LOCK_UN), 0);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
}
END_TEST

START_TEST(a_waiting_flock_is_granted_or_interrupted)
{
	struct locks_target t = target(1, 0);
	struct fuse_req one = { 0 }, two = { 0 };

	ck_assert_int_eq(flock_now(0, LOCK_EX), 0);
	locks_flock(locks, &one, &t, LOCK_EX);
	t = target(2, 0);
	locks_flock(locks, &two, &t, LOCK_SH);
	ck_assert(waits(&one) && waits(&two));
	interrupt(&two);
	ck_assert_int_eq(answer(&two), EINTR);
	ck_assert_int_eq(flock_now(0, LOCK_UN), 0);
	ck_assert_int_eq(answer(&one), 0);
}
END_TEST

START_TEST(the_holder_is_named)
{
	struct locks_target t = target(1, 2);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct fuse_req req = { 0 };

	ck_assert_int_eq(set(0, 1, F_RDLCK), 0);
	locks_getlk(locks, &req, &t, &lock);
	ck_assert_int_eq(answer(&req), 0);
	ck_assert_int_eq(req.lock.l_type, F_RDLCK);
	ck_assert_int_eq(req.lock.l_pid, 1);
	req = (struct fuse_req){ 0 };
	t = target(0, 1);
	locks_getlk(locks, &req, &t, &lock);
	ck_assert_int_eq(answer(&req), 0);
	ck_assert_int_eq(req.lock.l_type, F_UNLCK);
}
END_TEST

START_TEST(who_closes_a_circle_of_waiting_owners_is_told)
{
	struct fuse_req one, two, three;

	ck_assert_int_eq(set_byte(1, 1, 0, F_WRLCK), 0);
	ck_assert_int_eq(set_byte(2, 2, 0, F_WRLCK), 0);
	ck_assert_int_eq(set_byte(3, 3, 0, F_WRLCK), 0);
	ask_byte(&one, 1, 2, 0, F_WRLCK);
	ck_assert(waits(&one));
	ask_byte(&two, 2, 3, 0, F_RDLCK);
	ck_assert(waits(&two));
	ask_byte(&three, 3, 1, 0, F_WRLCK);
	ck_assert_int_eq(answer(&three), EDEADLK);
	ck_assert(!one.done && !two.done);
	locks_flush(locks, 7, 3);
	ck_assert_int_eq(answer(&two), 0);
	locks_flush(locks, 7, 2);
	ck_assert_int_eq(answer(&one), 0);
}
END_TEST

START_TEST(two_readers_that_would_write_are_a_circle)
{
	struct fuse_req one, two;

	ck_assert_int_eq(set_byte(1, 5, 0, F_RDLCK), 0);
	ck_assert_int_eq(set_byte(2, 5, 0, F_RDLCK), 0);
	ask_byte(&one, 1, 5, 0, F_WRLCK);
	ck_assert(waits(&one));
	ask_byte(&two, 2, 5, 0, F_WRLCK);
	ck_assert_int_eq(answer(&two), EDEADLK);
	locks_flush(locks, 7, 2);
	ck_assert_int_eq(answer(&one), 0);
}
END_TEST

/* The circle closes when somebody else is let in, not when somebody asks. */
START_TEST(a_circle_that_closes_later_is_found)
{
	struct fuse_req one, two, three;

	ck_assert_int_eq(set_byte(1, 1, 0, F_WRLCK), 0);
	ck_assert_int_eq(set_byte(2, 2, 0, F_WRLCK), 0);
	ask_byte(&three, 3, 2, 0, F_WRLCK);
	ck_assert(waits(&three));
	ask_byte(&one, 1, 2, 0, F_WRLCK);
	ck_assert(waits(&one));
	ck_assert_int_eq(set_byte(2, 2, 0, F_UNLCK), 0);
	if (!waits(&one)) {
		/* It was luckier than the one before it: no circle. */
		locks_flush(locks, 7, 1);
		ck_assert_int_eq(answer(&three), 0);
		return;
	}
	ck_assert_int_eq(answer(&three), 0);
	ask_byte(&two, 3, 1, 0, F_WRLCK);
	ck_assert_int_eq(answer(&two), EDEADLK);
	locks_flush(locks, 7, 3);
	ck_assert_int_eq(answer(&one), 0);
}
END_TEST

START_TEST(waiting_without_a_circle_is_waiting)
{
	struct fuse_req two, three;

	ck_assert_int_eq(set_byte(1, 1, 0, F_WRLCK), 0);
	ck_assert_int_eq(set_byte(2, 2, 0, F_WRLCK), 0);
	ask_byte(&two, 2, 1, 0, F_WRLCK);
	ask_byte(&three, 3, 2, 0, F_RDLCK);
	ck_assert(waits(&two) && waits(&three));
	locks_flush(locks, 7, 1);
	ck_assert_int_eq(answer(&two), 0);
	ck_assert(waits(&three));
	locks_flush(locks, 7, 2);
	ck_assert_int_eq(answer(&three), 0);
}
END_TEST

/* What is noted of the locks against one type for each owner and byte. */
START_TEST(notes_agree_with_a_model)
{
	enum {
		OWNERS = 4,
		BYTES = 40
	};
	short model[OWNERS][BYTES];
	unsigned int seed = (unsigned int)_i;

	for (int o = 0; o < OWNERS; o++)
		for (int i = 0; i < BYTES; i++)
			model[o][i] = F_UNLCK;
	for (int step = 0; step < 400; step++) {
		static const short types[] = { F_RDLCK, F_WRLCK, F_UNLCK };
		int o = rand_r(&seed) % OWNERS, byte;
		struct flock lock = { .l_type = types[rand_r(&seed) % 3],
				      .l_whence = SEEK_SET,
				      .l_start = rand_r(&seed) % BYTES };
		struct locks_target t = target(o % 2, (uint64_t)o + 1);
		struct fuse_req req = { .ctx.pid = o + 1 };
		bool taken = false, known = false;
		struct flock seen;

		lock.l_len = 1 + rand_r(&seed) % (BYTES - lock.l_start);
		for (int i = 0; i < lock.l_len && lock.l_type != F_UNLCK; i++)
			for (int k = 0; k < OWNERS; k++)
				taken |= k != o &&
					 (model[k][lock.l_start + i] ==
						  F_WRLCK ||
					  (model[k][lock.l_start + i] !=
						   F_UNLCK &&
					   lock.l_type == F_WRLCK));
		locks_setlk(locks, &req, &t, &lock, 0);
		ck_assert_int_eq(answer(&req), taken ? EAGAIN : 0);
		for (int i = 0; i < lock.l_len && !taken; i++)
			model[o][lock.l_start + i] = lock.l_type;

		byte = rand_r(&seed) % BYTES;
		seen = test_byte((uint64_t)o + 1, byte, 0);
		taken = false;
		for (int k = 0; k < OWNERS; k++)
			if (k != o && model[k][byte] != F_UNLCK) {
				taken = true;
				known |= seen.l_pid == k + 1 &&
					 seen.l_type == model[k][byte];
			}
		ck_assert_int_eq(seen.l_type != F_UNLCK, taken);
		ck_assert(!taken || known);
	}
}
END_TEST

START_TEST(a_border_is_one_sides_alone)
{
	struct flock lock = { .l_type = F_RDLCK,
			      .l_whence = SEEK_SET,
			      .l_start = BORDER_BYTE,
			      .l_len = 1 };
	int fd = open(path, O_RDWR | O_CLOEXEC);

	/* Outside first: its shared lock keeps a shared one of inside out. */
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
	ck_assert_int_eq(test_byte(1, BORDER_BYTE, 1).l_type, F_RDLCK);
	ck_assert_int_eq(set_byte(1, BORDER_BYTE, 1, F_RDLCK), EAGAIN);
	ck_assert_int_eq(set_byte(1, BORDER_FIRST, 1, F_RDLCK), EAGAIN);
	lock.l_type = F_UNLCK;
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
	ck_assert_int_eq(test_byte(1, BORDER_BYTE, 1).l_type, F_UNLCK);

	/* Inside first: its owners share, and what they keep out is outside. */
	ck_assert_int_eq(set_byte(1, BORDER_BYTE, 1, F_RDLCK), 0);
	ck_assert_int_eq(set_byte(2, BORDER_BYTE, 1, F_RDLCK), 0);
	ck_assert_int_eq(test_byte(3, BORDER_BYTE, 1).l_type, F_RDLCK);
	ck_assert_int_eq(test_byte(3, BORDER_BYTE, 1).l_start, BORDER_BYTE);
	ck_assert_int_eq(set_byte(2, BORDER_FIRST, 1, F_WRLCK), 0);
	ck_assert_int_eq(set_byte(1, BORDER_FIRST, 1, F_RDLCK), EAGAIN);
	lock.l_type = F_WRLCK;
	ck_assert_int_eq(fcntl(fd, F_OFD_GETLK, &lock), 0);
	ck_assert_int_eq(lock.l_type, F_WRLCK);
	lock.l_pid = 0;

	/* It ends with the last that closes. */
	locks_flush(locks, 7, 1);
	lock.l_type = F_RDLCK;
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &lock), -1);
	locks_flush(locks, 7, 2);
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
	close(fd);
}
END_TEST

START_TEST(only_the_first_in_a_border_drops_the_cache)
{
	ck_assert_int_eq(set_byte(1, BORDER_BYTE, 1, F_RDLCK), 0);
	ck_assert_int_eq(invalidations, 1);
	ck_assert_int_eq(set_byte(2, BORDER_BYTE, 1, F_RDLCK), 0);
	ck_assert_int_eq(set_byte(2, BORDER_FIRST, 1, F_WRLCK), 0);
	ck_assert_int_eq(invalidations, 1);
	locks_flush(locks, 7, 1);
	locks_flush(locks, 7, 2);
	ck_assert_int_eq(set_byte(1, BORDER_BYTE, 1, F_RDLCK), 0);
	ck_assert_int_eq(invalidations, 2);
}
END_TEST

/* Owners in threads of their own; a counter that only the holder touches. */
struct racer {
	uint64_t owner;
	int *counter;
};

static void *
race(void *data)
{
	const struct racer *racer = data;

	for (int i = 0; i < 200; i++) {
		struct fuse_req req;
		int was;

		ask(&req, (int)(racer->owner % 2), racer->owner, F_WRLCK, 1);
		if (answer(&req) != 0)
			break;
		was = __atomic_load_n(racer->counter, __ATOMIC_RELAXED);
		sched_yield();
		__atomic_store_n(racer->counter, was + 1, __ATOMIC_RELAXED);
		if (i % 3)
			set((int)(racer->owner % 2), racer->owner, F_UNLCK);
		else
			locks_flush(locks, 7, racer->owner);
	}
	return NULL;
}

START_TEST(many_owners_take_turns)
{
	struct racer racers[6];
	pthread_t threads[6];
	int counter = 0;

	for (int i = 0; i < 6; i++) {
		racers[i] = (struct racer){ (uint64_t)i + 1, &counter };
		pthread_create(&threads[i], NULL, race, &racers[i]);
	}
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(counter, 1200);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("locks");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, owners_exclude_each_other_and_the_host);
	tcase_add_test(tc, an_owner_upgrades_across_its_handles);
	tcase_add_test(tc, the_cache_is_dropped_before_a_grant_is_told);
	tcase_add_test(tc, what_is_stored_goes_to_the_disk_before_a_lock_ends);
	tcase_add_test(tc, a_waiting_owner_gets_the_lock_when_it_is_freed);
	tcase_add_test(tc,
		       a_waiting_owner_gets_the_lock_when_the_host_frees_it);
	tcase_add_test(tc, a_wait_can_be_interrupted);
	tcase_add_test(tc, the_end_interrupts_whoever_waits);
	tcase_add_test(tc, releasing_the_handle_ends_the_locks_of_an_open_file);
	tcase_add_test(tc, flock_excludes_handles_and_the_host);
	tcase_add_test(tc, a_waiting_flock_is_granted_or_interrupted);
	tcase_add_test(tc, the_holder_is_named);
	tcase_add_test(tc, who_closes_a_circle_of_waiting_owners_is_told);
	tcase_add_test(tc, two_readers_that_would_write_are_a_circle);
	tcase_add_test(tc, a_circle_that_closes_later_is_found);
	tcase_add_test(tc, waiting_without_a_circle_is_waiting);
	tcase_add_loop_test(tc, notes_agree_with_a_model, 1, 9);
	tcase_add_test(tc, a_border_is_one_sides_alone);
	tcase_add_test(tc, only_the_first_in_a_border_drops_the_cache);
	tcase_add_test(tc, many_owners_take_turns);
	return suite_run("fusefs/locks", tc);
}
