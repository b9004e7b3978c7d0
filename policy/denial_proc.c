/* SPDX-License-Identifier: MIT */

/*
 * Who it was: what /proc tells of an inmate.  Only the tables of the kernel are
 * read, never the inmate's memory (cmdline, environ): that can fault on a page
 * that this very FUSE session must serve.  An inmate that is gone leaves the
 * fields empty.
 */

#include "policy/denial_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static ssize_t
read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	_cleanup_(closep) int fd = -1;
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

static void
look_up_comm(struct denial *denial, struct denial_origin *room)
{
	ssize_t n =
		read_proc(denial->pid, "comm", room->comm, sizeof(room->comm));

	if (n <= 0)
		return;
	if (room->comm[n - 1] == '\n')
		room->comm[n - 1] = '\0';
	denial->comm = room->comm;
}

static void
look_up_exe(struct denial *denial, struct denial_origin *room)
{
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)denial->pid);
	n = readlink(path, room->exe, sizeof(room->exe) - 1);
	if (n <= 0)
		return;
	room->exe[n] = '\0';
	denial->exe = room->exe;
}

/* The last of NSpid is the pid in the innermost namespace. */
static void
look_up_pids(struct denial *denial)
{
	char text[2048];
	const char *line, *end;

	if (read_proc(denial->pid, "status", text, sizeof(text)) <= 0)
		return;
	line = strstr(text, "\nPPid:");
	if (line && denial->ppid == 0)
		denial->ppid = (pid_t)strtol(line + 6, NULL, 10);
	line = strstr(text, "\nNSpid:");
	if (!line || denial->inner_pid != 0)
		return;
	end = strchr(line + 1, '\n');
	if (!end)
		return;
	while (end > line && end[-1] >= '0' && end[-1] <= '9')
		end--;
	denial->inner_pid = (pid_t)strtol(end, NULL, 10);
}

void
denial_look_up(struct denial *denial, struct denial_origin *room)
{
	if (denial->pid <= 0)
		return;
	if (!denial->comm)
		look_up_comm(denial, room);
	if (!denial->exe)
		look_up_exe(denial, room);
	if (denial->ppid == 0 || denial->inner_pid == 0)
		look_up_pids(denial);
}
