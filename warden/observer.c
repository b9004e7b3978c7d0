/* SPDX-License-Identifier: MIT */

/*
 * The watcher: one notification after the other, nothing of it waits for
 * another process.  Its longest step is looking at the file system of the host.
 *
 * An answer to a notification that is no longer valid (the inmate was killed)
 * is refused by the kernel and needs no care.  Before anything is put on
 * record the id is checked *after* the inmate's memory was read: by then the
 * pid could belong to another process.
 */

#include "warden/observer.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "warden/observer_priv.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no seccomp architecture for this machine"
#endif

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

/* Wakes the watcher out of an ioctl whose notification another one took. */
#define WAKE_SIGNAL (SIGRTMIN + 3)
#define WAKE_NS	    200000L

#define DELAY_MAX_MS 10000

#define ANSWER_ROOM 256 /* struct seccomp_notif and _resp, with room to grow */

static void
respond(int listener, uint64_t id, int error, uint32_t flags)
{
	union {
		struct seccomp_notif_resp resp;
		char room[ANSWER_ROOM];
	} answer;

	memset(&answer, 0, sizeof(answer));
	answer.resp.id = id;
	answer.resp.error = -error;
	answer.resp.flags = flags;
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer.resp);
}

void
observer_answer(struct observer *o, int listener, uint64_t id, int error)
{
	if (error != 0)
		o->refused++;
	respond(listener, id, error, 0);
}

bool
observer_waits(int listener, uint64_t id)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* Which mode would have let it: inside the roots and /tmp the next one. */
static void
add_remedy(const struct policy *policy, struct denial *denial)
{
	bool near = denial->op != POLICY_OP_CONNECT &&
		    policy->mode == POLICY_READ_ONLY &&
		    (policy_root_of(policy, denial->path, NULL) >= 0 ||
		     strncmp(denial->path, "/tmp/", 5) == 0 ||
		     strncmp(denial->path, "/var/tmp/", 9) == 0 ||
		     strncmp(denial->path, "/dev/shm/", 9) == 0);

	denial->remedy = DENIAL_REMEDY_ESCALATE;
	denial->remedy_text = policy_mode_name(
		near ? POLICY_WORKSPACE_WRITE : POLICY_DANGER_FULL_ACCESS);
}

void
observer_record(struct observer *o, const struct policy *policy,
		struct denial *denial)
{
	char path[32];
	struct stat st;

	denial->source = DENIAL_OBSERVED;
	denial->origin = "run"; /* no other world is observed */
	denial->mode = policy->mode;
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)denial->pid);
	if (stat(path, &st) == 0) {
		denial->uid = st.st_uid;
		denial->gid = st.st_gid;
	}
	add_remedy(policy, denial);
	if (denial_record(o->config.denials, denial) < 0)
		o->lost++;
	else
		o->recorded++;
}

static void
record_finding(struct observer *o, const struct policy *policy,
	       const struct finding *finding)
{
	struct denial denial = {
		.code = finding->verdict.code,
		.rule = finding->verdict.rule,
		.op = finding->op,
		.path = finding->place.path,
		.path2 = finding->has_place2 ? finding->place2.path : NULL,
		.error = finding->error,
		.pid = o->call.pid,
	};

	observer_record(o, policy, &denial);
}

/* Returns the errno to answer with; 0: the call goes on. */
static int
judge(struct observer *o, int listener, uint64_t id)
{
	struct policy *policy = o->config.policy_get(o->config.data);
	struct finding *finding = &o->finding;
	int error = 0;

	judge_call(&o->look, policy, &o->call, finding);
	if (!finding->place.settled)
		o->looked++;
	if (finding->denied && observer_waits(listener, id)) {
		record_finding(o, policy, finding);
		if (finding->forbidden)
			error = finding->error;
	}
	policy_unref(policy);
	return error;
}

/* What another let go on in our place may have been such a call, too. */
static void
look_for_watches(struct observer *o, const struct seccomp_notif *notif)
{
	uint64_t stood_in = o->pace->stood_in;

	if (!call_watches(notif->data.nr) && stood_in == o->stood_in)
		return;
	o->stood_in = stood_in;
	if (o->config.watched)
		o->config.watched(o->config.data);
}

static void
handle(struct observer *o, int listener, const struct seccomp_notif *notif)
{
	int error = 0, r;

	/* The filter kills or refuses every other architecture. */
	if (notif->data.arch != NATIVE_ARCH) {
		observer_answer(o, listener, notif->id, ENOSYS);
		return;
	}
	look_for_watches(o, notif);
	r = call_decode(notif, &o->call);
	if (r > 0 && o->call.kind == CALL_CONNECT) {
		connector_take(o, listener, notif);
		return;
	}
	/* Kept from reading (yama): what may be refused now goes unrecorded. */
	if ((r == -EPERM || r == -EACCES) &&
	    (pid_t)notif->pid != o->config.init_pid)
		o->lost++;
	if (r < 0)
		o->unreadable++;
	else if (r > 0)
		error = judge(o, listener, notif->id);
	if (error != 0)
		observer_answer(o, listener, notif->id, error);
	else
		respond(listener, notif->id, 0,
			SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

static void
account(struct observer *o, uint64_t start)
{
	uint64_t took = (uint64_t)clock_mono_ns() - start;

	o->busy_ns += took;
	if (took > o->longest_ns)
		o->longest_ns = took;
	o->since_ns = 0;
}

/* Returns false when no inmate is left that the filter watches. */
static bool
receive(struct observer *o, int listener)
{
	union {
		struct seccomp_notif notif;
		char room[ANSWER_ROOM];
	} in;
	uint64_t start;

	memset(&in, 0, sizeof(in));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &in.notif) < 0)
		return errno == EINTR || errno == ENOENT || errno == EAGAIN;
	start = (uint64_t)clock_mono_ns();
	o->since_ns = start;
	o->notified++;
	/*
	 * A connect is the usher's, for as long as it takes.  Whose listener
	 * it is the keeper finds out by trying: no other knows the id.
	 */
	if (in.notif.data.nr != SYS_connect) {
		o->pace->since_ns = start;
		o->pace->id = in.notif.id;
	}
	o->pace->received++;
	if (o->delay_ms > 0)
		(void)poll(NULL, 0, o->delay_ms);
	handle(o, listener, &in.notif);
	o->pace->id = 0;
	account(o, start);
	return true;
}

enum {
	POLL_STOP,
	POLL_ADMIT,
	POLL_LISTENERS
};

/* -ENOMEM: the listener is not watched, and closed. */
static int
watch(struct observer *o, int listener)
{
	struct pollfd *pfds = o->pfds;

	if (o->n_pfds == o->pfds_room) {
		pfds = reallocarray(pfds, 2 * o->n_pfds + POLL_LISTENERS + 1,
				    sizeof(*pfds));
		if (!pfds)
			return -ENOMEM;
		o->pfds = pfds;
		o->pfds_room = 2 * o->n_pfds + POLL_LISTENERS + 1;
	}
	pfds[o->n_pfds++] = (struct pollfd){ .fd = listener, .events = POLLIN };
	return 0;
}

/* No inmate is left that its filter watches. */
static void
unwatch(struct observer *o, size_t at)
{
	int listener = o->pfds[at].fd;

	connector_drop(o, listener);
	o->pfds[at] = o->pfds[--o->n_pfds];
	if (listener != o->config.listener)
		(void)close(listener);
}

static void
take_admitted(struct observer *o)
{
	uint64_t count;

	(void)!read(o->admit_event, &count, sizeof(count));
	pthread_mutex_lock(&o->admit_lock);
	while (o->n_admitted > 0) {
		int listener = o->admitted[--o->n_admitted];

		/* Closed: its calls fail, and none waits for ever. */
		if (watch(o, listener) < 0)
			(void)close(listener);
	}
	pthread_mutex_unlock(&o->admit_lock);
}

static void *
watcher_main(void *data)
{
	struct observer *o = data;

	o->pace->thread = gettid();
	while (!atomic_load(&o->stopping)) {
		if (poll(o->pfds, o->n_pfds, -1) < 0)
			continue;
		/* From the end: who leaves is replaced by the last one. */
		for (size_t i = o->n_pfds; i-- > POLL_LISTENERS;) {
			short events = o->pfds[i].revents;
			bool more = true;

			if (events & POLLIN)
				more = receive(o, o->pfds[i].fd);
			else if (events & (POLLHUP | POLLERR | POLLNVAL))
				more = false;
			if (!more)
				unwatch(o, i);
		}
		if (o->pfds[POLL_ADMIT].revents & POLLIN)
			take_admitted(o);
	}
	atomic_store(&o->watcher_ended, true);
	return NULL;
}

static void
no_action(int sig)
{
	(void)sig;
}

static int
check_listener(int listener, struct errmsg *why)
{
	struct seccomp_notif_sizes sizes;
	uint64_t id = 0;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return errmsg_set(why, -errno,
				  "cannot observe: seccomp notification: %s",
				  strerror(errno));
	if (sizes.seccomp_notif > ANSWER_ROOM ||
	    sizes.seccomp_notif_resp > ANSWER_ROOM)
		return errmsg_set(why, -EINVAL,
				  "cannot observe: seccomp notifications of "
				  "this kernel are too large");

	/* No notification has this id: a listener says ENOENT. */
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0 ||
	    errno != ENOENT)
		return errmsg_set(why, -EINVAL,
				  "cannot observe: descriptor %d is no seccomp "
				  "listener",
				  listener);

	/* Wakes on the inmate's own processor; Linux 6.6, else nothing. */
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS,
		    SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	return 0;
}

static struct observer *
observer_free(struct observer *o)
{
	if (!o)
		return NULL;
	closep(&o->stop_event);
	closep(&o->connect_event);
	closep(&o->admit_event);
	for (size_t i = POLL_LISTENERS; i < o->n_pfds; i++)
		if (o->pfds[i].fd != o->config.listener)
			(void)close(o->pfds[i].fd);
	while (o->n_admitted > 0)
		(void)close(o->admitted[--o->n_admitted]);
	free(o->pfds);
	(void)pthread_mutex_destroy(&o->admit_lock);
	closep(&o->pace_fd);
	if (o->pace)
		(void)munmap(o->pace, sizeof(*o->pace));
	look_fini(&o->look);
	(void)pthread_mutex_destroy(&o->pending_lock);
	free(o);
	return NULL;
}
DEFINE_CLEANUP(observer)

static int
make_pace(struct observer *o)
{
	void *page;

	o->pace_fd = memfd_create("pale-pace", MFD_CLOEXEC);
	if (o->pace_fd < 0 || ftruncate(o->pace_fd, sizeof(*o->pace)) < 0)
		return -errno;
	page = mmap(NULL, sizeof(*o->pace), PROT_READ | PROT_WRITE, MAP_SHARED,
		    o->pace_fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	o->pace = page;
	return 0;
}

/* PALE_OBSERVER_DELAY=MS can only spoil records, so every build has it. */
static int
delay_of_tests(void)
{
	const char *text = getenv("PALE_OBSERVER_DELAY");
	long ms = text ? strtol(text, NULL, 10) : 0;

	return ms > 0 && ms <= DELAY_MAX_MS ? (int)ms : 0;
}

static int
prepare(struct observer *o, struct errmsg *why)
{
	struct policy *policy;
	int r;

	o->delay_ms = delay_of_tests();
	r = make_pace(o);
	if (r < 0)
		return errmsg_set(why, r, "cannot observe: %s", strerror(-r));
	o->stop_event = eventfd(0, EFD_CLOEXEC);
	o->connect_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	o->admit_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (o->stop_event < 0 || o->connect_event < 0 || o->admit_event < 0)
		return errmsg_set(why, -errno, "cannot observe: %s",
				  strerror(errno));
	r = check_listener(o->config.listener, why);
	if (r < 0)
		return r;
	r = watch(o, o->stop_event);
	if (r == 0)
		r = watch(o, o->admit_event);
	if (r == 0)
		r = watch(o, o->config.listener);
	if (r < 0)
		return errmsg_set(why, r, "cannot observe: %s", strerror(-r));
	policy = o->config.policy_get(o->config.data);
	r = look_init(&o->look, policy);
	if (r == 0)
		connector_setup(o, policy);
	policy_unref(policy);
	return r < 0 ? errmsg_set(why, r, "cannot observe: %s", strerror(-r))
		     : 0;
}

/*
 * Sets the flag, then wakes a thread until it has seen it: a signal that comes
 * just before the system call is lost.
 */
static void
end_thread(struct observer *o, pthread_t thread, atomic_bool *ended)
{
	const struct timespec pause = { .tv_nsec = WAKE_NS };

	atomic_store(&o->stopping, true);
	(void)!write(o->stop_event, &(uint64_t){ 1 }, sizeof(uint64_t));
	while (!atomic_load(ended)) {
		(void)pthread_kill(thread, WAKE_SIGNAL);
		(void)nanosleep(&pause, NULL);
	}
	(void)pthread_join(thread, NULL);
}

int
observer_start(const struct observer_config *config,
	       struct observer **ret_observer, struct errmsg *why)
{
	_cleanup_(observer_freep) struct observer *o = calloc(1, sizeof(*o));
	struct sigaction action = { .sa_handler = no_action };
	int r;

	if (!o)
		return errmsg_set(why, -ENOMEM, "cannot observe: no memory");
	o->config = *config;
	o->stop_event = -1;
	o->connect_event = -1;
	o->admit_event = -1;
	(void)pthread_mutex_init(&o->admit_lock, NULL);
	o->pace_fd = -1;
	o->look.own_fds = -1;
	(void)pthread_mutex_init(&o->pending_lock, NULL);
	r = prepare(o, why);
	if (r < 0)
		return r;

	/* Without SA_RESTART: its one purpose is to end an ioctl. */
	if (sigaction(WAKE_SIGNAL, &action, NULL) < 0)
		return errmsg_set(why, -errno, "cannot observe: %s",
				  strerror(errno));
	r = -pthread_create(&o->connector, NULL, connector_main, o);
	if (r < 0)
		return errmsg_set(why, r, "cannot observe: no thread: %s",
				  strerror(-r));
	r = -pthread_create(&o->watcher, NULL, watcher_main, o);
	if (r < 0) {
		end_thread(o, o->connector, &o->connector_ended);
		return errmsg_set(why, r, "cannot observe: no thread: %s",
				  strerror(-r));
	}
	*ret_observer = take_ptr(&o);
	return 0;
}

struct observer *
observer_stop(struct observer *observer)
{
	if (!observer)
		return NULL;
	end_thread(observer, observer->watcher, &observer->watcher_ended);
	end_thread(observer, observer->connector, &observer->connector_ended);
	return observer_free(observer);
}

static int
admit_listener(struct observer *o, int listener)
{
	bool room;
	int r;

	r = check_listener(listener, NULL);
	if (r < 0)
		return r;
	pthread_mutex_lock(&o->admit_lock);
	room = o->n_admitted < OBSERVER_ADMITTED;
	if (room)
		o->admitted[o->n_admitted++] = listener;
	pthread_mutex_unlock(&o->admit_lock);
	if (!room)
		return -EINVAL;
	(void)!write(o->admit_event, &(uint64_t){ 1 }, sizeof(uint64_t));
	return 0;
}

int
observer_admit(struct observer *observer, const struct observer_home *home,
	       int listener)
{
	_cleanup_(closep) int owned = listener;
	int r;

	r = look_add_home(&observer->look, home);
	if (r == 0 && listener >= 0) {
		r = admit_listener(observer, listener);
		if (r == 0)
			(void)take_fd(&owned);
		else
			look_remove_home(&observer->look, home);
	}
	if (r == 0)
		connector_home(observer, home, true);
	return r;
}

void
observer_dismiss(struct observer *observer, const struct observer_home *home)
{
	look_remove_home(&observer->look, home);
	connector_home(observer, home, false);
}

int
observer_pace_fd(const struct observer *observer)
{
	return observer->pace_fd;
}

void
observer_take(struct observer *observer, int listener, const void *notif)
{
	struct seccomp_notif copy;

	if (listener < 0)
		listener = observer->config.listener;
	memcpy(&copy, notif, sizeof(copy));
	/* That one has gone on already. */
	if (call_watches(copy.data.nr) && observer->config.watched)
		observer->config.watched(observer->config.data);
	else if (copy.data.nr == SYS_connect && copy.data.arch == NATIVE_ARCH)
		connector_take(observer, listener, &copy);
	else
		observer_answer(observer, listener, copy.id, ENOSYS);
}

void
observer_stats(const struct observer *observer,
	       struct observer_stats *ret_stats)
{
	const struct observer *o = observer;

	*ret_stats = (struct observer_stats){
		.notified = o->notified,
		.looked = o->looked,
		.recorded = o->recorded,
		.lost = o->lost,
		.refused = o->refused,
		.connects = o->connects,
		.unreadable = o->unreadable,
		.busy_ns = o->busy_ns,
		.longest_ns = o->longest_ns,
		.since_ns = o->since_ns,
		.stood_in = o->pace->stood_in,
	};
}
