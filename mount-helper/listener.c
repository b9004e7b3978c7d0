/* SPDX-License-Identifier: MIT */

/*
 * A call can be received once, by whoever is first; so the keeper takes none
 * while the observer takes some.  It learns of that from the shared page, and
 * looks at it only while calls come: an idle world wakes nobody.
 *
 *	IDLE ──a call comes──▶ ACTIVE ──none taken for 50 ms──▶ BEHIND
 *	  ◀──none for 50 ms───────┘ ◀──────the observer took one──┘
 *
 * The call in hand is answered by its id: the kernel takes one answer, from any
 * holder of the listener.
 */

#include "mount-helper/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

/* The same for an observer that would run if there were a processor for it. */
#define BUSY_MS 1000

/* More than may ever wait at once; the rest waits for the next round. */
#define RELEASES_MAX 4096

void
listener_watch(struct listener *l, int page_fd)
{
	void *page;

	if (l->pace || l->fd < 0)
		return;
	page = mmap(NULL, sizeof(struct wire_pace), PROT_READ | PROT_WRITE,
		    MAP_SHARED, page_fd, 0);
	if (page == MAP_FAILED)
		return;
	l->pace = page;
	l->state = LISTENER_IDLE;
}

void
listener_join(struct listener *l, const struct listener *other)
{
	l->pace = other->pace;
	l->state = LISTENER_IDLE;
}

/* POLLOUT is there while somebody has a call in hand, connects included. */
struct pollfd
listener_poll(const struct listener *l)
{
	struct pollfd poll = { .fd = l->fd, .events = POLLIN };

	if (!l->pace || l->state == LISTENER_ACTIVE)
		poll.fd = -1;
	if (l->state == LISTENER_IDLE)
		poll.events |= POLLOUT;
	return poll;
}

int
listener_timeout(const struct listener *l)
{
	return l->pace && l->state != LISTENER_IDLE ? clock_left_ms(l->next_ns)
						    : -1;
}

static bool
answer(const struct listener *l, uint64_t id, int error)
{
	struct seccomp_notif_resp response = { .id = id, .error = -error };

	if (error == 0)
		response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	return ioctl(l->fd, SECCOMP_IOCTL_NOTIF_SEND, &response) == 0;
}

static bool
is_readable(const struct listener *l)
{
	struct pollfd one = { .fd = l->fd, .events = POLLIN };

	return poll(&one, 1, 0) > 0 && (one.revents & POLLIN);
}

static bool
tell_warden(const struct listener *l, const struct seccomp_notif *request,
	    int warden_sock)
{
	struct wire_msg msg = { .type = WIRE_CALL, .id = l->id };

	_Static_assert(sizeof(*request) <= sizeof(msg.text),
		       "a call fits into a record");
	memcpy(msg.text, request, sizeof(*request));
	return warden_sock >= 0 && send(warden_sock, &msg, sizeof(msg),
					MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* Performed by the usher once the warden is back; never by the inmate. */
static void
hand_over(const struct listener *l, const struct seccomp_notif *request,
	  int warden_sock)
{
	if (!tell_warden(l, request, warden_sock))
		(void)answer(l, request->id, EACCES);
}

/* That somebody watches for changes the warden must know, if late. */
static bool
is_watching(const struct seccomp_notif *request)
{
#ifdef SYS_inotify_init
	if (request->data.nr == SYS_inotify_init)
		return true;
#endif
	return request->data.nr == SYS_inotify_init1 ||
	       request->data.nr == SYS_fanotify_init;
}

static void
take_waiting(struct listener *l, int warden_sock)
{
	for (int i = 0; i < RELEASES_MAX && is_readable(l); i++) {
		struct seccomp_notif request;

		/* ENOENT: killed, or the observer was faster. */
		memset(&request, 0, sizeof(request));
		if (ioctl(l->fd, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
			return;
		if (is_watching(&request))
			(void)tell_warden(l, &request, warden_sock);
		if (request.data.nr == SYS_connect)
			hand_over(l, &request, warden_sock);
		else if (answer(l, request.id, 0) && l->pace)
			l->pace->stood_in++;
	}
}

/*
 * Late for want of a processor, as everybody is then: no reason yet to lose
 * records.
 */
static bool
is_excused(const struct listener *l, int64_t since_ns)
{
	char path[64], stat[512];
	const char *state;
	ssize_t n;
	int fd;

	if (clock_mono_ns() > since_ns + BUSY_MS * 1000000LL)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", l->pace->thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, stat, sizeof(stat) - 1);
	(void)close(fd);
	stat[n > 0 ? n : 0] = '\0';
	/* "PID (NAME) STATE ..." */
	state = strrchr(stat, ')');
	return state && strncmp(state, ") R", 3) == 0;
}

enum hand {
	HAND_EMPTY,
	HAND_IN_TIME,
	HAND_LATE
};

/* The call that the observer has; it goes on when that takes too long. */
static enum hand
look_at_hand(struct listener *l)
{
	uint64_t id = l->pace->id, since = l->pace->since_ns;
	uint64_t now = (uint64_t)clock_mono_ns();

	/* Unless it changed as we read. */
	if (id == 0 || id != l->pace->id)
		return HAND_EMPTY;
	if (now < since + WIRE_PACE_MS * 1000000ULL ||
	    is_excused(l, (int64_t)since))
		return HAND_IN_TIME;
	if (answer(l, id, 0))
		l->pace->stood_in++;
	return HAND_LATE;
}

/* Once in WIRE_PACE_MS, and at every call while the observer is behind. */
static void
judge(struct listener *l, int warden_sock)
{
	uint64_t received = l->pace->received;
	enum hand hand = look_at_hand(l);

	if (received != l->received) {
		l->received = received;
		l->since_ns = clock_mono_ns();
		l->state = LISTENER_ACTIVE;
	} else if (is_readable(l)) {
		if (is_excused(l, l->since_ns))
			return;
		l->state = LISTENER_BEHIND;
		take_waiting(l, warden_sock);
	} else if (hand == HAND_EMPTY) {
		l->state = LISTENER_IDLE;
	}
}

void
listener_look(struct listener *l, int revents, int warden_sock)
{
	bool called = revents & (POLLIN | POLLOUT), due;

	if (!l->pace)
		return;
	/* No inmate is left that the filter watches. */
	if (revents & (POLLHUP | POLLERR | POLLNVAL)) {
		l->pace = NULL;
		return;
	}
	due = l->state != LISTENER_IDLE && clock_left_ms(l->next_ns) == 0;
	if (l->state == LISTENER_IDLE && called) {
		l->state = LISTENER_ACTIVE;
		l->received = l->pace->received;
		l->since_ns = clock_mono_ns();
	} else if (due || (l->state == LISTENER_BEHIND && called)) {
		judge(l, warden_sock);
	} else {
		return;
	}
	l->next_ns = clock_mono_ns() + WIRE_PACE_MS * 1000000LL;
}

void
listener_release(int fd)
{
	struct listener l = { .fd = fd };

	take_waiting(&l, -1);
}
