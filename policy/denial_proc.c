/* SPDX-License-Identifier: MIT */

/*
 * Who it was: what /proc tells of an inmate.  Only the tables of the kernel are
 * read, never the inmate's memory (cmdline, environ): that can fault on a page
 * that this very FUSE session must serve.  An inmate that is gone leaves the
 * fields empty.
 *
 * Who is refused is mostly refused again, and opening files of /proc is dear.
 * So the last few processes stay open: a descriptor below /proc/PID answers for
 * that process as long as it lives and never for another of the same number.
 * Name and program are read each time, since exec changes them; the inner pid
 * never changes, and the parent's holds while the parent can be read.
 */

#include "policy/denial_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const struct denial_known unknown = { .dir = -1,
					     .comm = -1,
					     .parent = -1 };

static void
forget(struct denial_known *known)
{
	closep(&known->dir);
	closep(&known->comm);
	closep(&known->parent);
	*known = unknown;
}

static ssize_t
read_comm(int fd, char *text, size_t size)
{
	ssize_t n = fd < 0 ? -1 : pread(fd, text, size - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	return n;
}

/* The last of NSpid is the pid in the innermost namespace. */
static void
read_status(struct denial_known *known)
{
	_cleanup_(closep) int fd =
		openat(known->dir, "status", O_RDONLY | O_CLOEXEC);
	const char *line, *end;
	char text[2048];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	line = strstr(text, "\nPPid:");
	if (line)
		known->ppid = (pid_t)strtol(line + 6, NULL, 10);
	line = strstr(text, "\nNSpid:");
	end = line ? strchr(line + 1, '\n') : NULL;
	if (!end)
		return;
	while (end > line && end[-1] >= '0' && end[-1] <= '9')
		end--;
	known->inner_pid = (pid_t)strtol(end, NULL, 10);
}

static int
open_comm(pid_t pid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void
meet(pid_t pid, struct denial_known *known)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	*known = unknown;
	known->pid = pid;
	known->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (known->dir < 0)
		return;
	known->comm = openat(known->dir, "comm", O_RDONLY | O_CLOEXEC);
	read_status(known);
	known->parent = known->ppid > 0 ? open_comm(known->ppid) : -1;
}

/* The process is the one that was met, and its parent is the one it had. */
static bool
holds(const struct denial_known *known)
{
	char name[64];

	return read_comm(known->comm, name, sizeof(name)) > 0 &&
	       read_comm(known->parent, name, sizeof(name)) > 0;
}

/* Taken out while it is used: nothing is read under the lock. */
static void
take(struct denial_cache *cache, pid_t pid, struct denial_known *ret_known)
{
	*ret_known = unknown;
	pthread_mutex_lock(&cache->lock);
	for (unsigned int i = 0; i < DENIAL_KNOWN; i++) {
		if (cache->known[i].pid != pid)
			continue;
		*ret_known = cache->known[i];
		cache->known[i] = unknown;
		break;
	}
	pthread_mutex_unlock(&cache->lock);
}

/* Whoever was here longest leaves. */
static void
put_back(struct denial_cache *cache, struct denial_known *known)
{
	struct denial_known *slot, old;

	pthread_mutex_lock(&cache->lock);
	slot = &cache->known[cache->next];
	for (unsigned int i = 0; i < DENIAL_KNOWN; i++)
		if (cache->known[i].pid == 0)
			slot = &cache->known[i];
	if (slot->pid != 0)
		cache->next = (cache->next + 1) % DENIAL_KNOWN;
	old = *slot;
	*slot = *known;
	pthread_mutex_unlock(&cache->lock);
	forget(&old);
}

static void
look_up_exe(const struct denial_known *known, struct denial *denial,
	    struct denial_origin *room)
{
	ssize_t n =
		readlinkat(known->dir, "exe", room->exe, sizeof(room->exe) - 1);

	if (n <= 0)
		return;
	room->exe[n] = '\0';
	denial->exe = room->exe;
}

void
denial_look_up(struct denial_cache *cache, struct denial *denial,
	       struct denial_origin *room)
{
	struct denial_known known;

	if (denial->pid <= 0)
		return;
	take(cache, denial->pid, &known);
	if (!holds(&known)) {
		forget(&known);
		meet(denial->pid, &known);
	}
	if (!denial->comm &&
	    read_comm(known.comm, room->comm, sizeof(room->comm)) > 0)
		denial->comm = room->comm;
	if (!denial->exe && known.dir >= 0)
		look_up_exe(&known, denial, room);
	if (denial->ppid == 0)
		denial->ppid = known.ppid;
	if (denial->inner_pid == 0)
		denial->inner_pid = known.inner_pid;
	if (known.comm < 0)
		forget(&known);
	else
		put_back(cache, &known);
}

void
denial_cache_init(struct denial_cache *cache)
{
	(void)pthread_mutex_init(&cache->lock, NULL);
	cache->next = 0;
	for (unsigned int i = 0; i < DENIAL_KNOWN; i++)
		cache->known[i] = unknown;
}

void
denial_cache_fini(struct denial_cache *cache)
{
	for (unsigned int i = 0; i < DENIAL_KNOWN; i++)
		forget(&cache->known[i]);
	(void)pthread_mutex_destroy(&cache->lock);
}
