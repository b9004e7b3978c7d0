/* SPDX-License-Identifier: MIT */

/*
 * One thread that tells the kernel to forget names, attributes and pages.
 *
 * A notification can wait: for the lock of a directory, which the kernel holds
 * until it has the reply to a request in it, or for a page that is being read.
 * So it is never made by a thread that requests wait for, and no lock of ours
 * is held meanwhile.
 *
 * The wait cannot be killed, and as long as it lasts the process keeps its
 * descriptors, so that a warden killed at that moment would leave the request
 * unanswered for ever, and both threads asleep.  Hence the thread has a table
 * of descriptors of its own, with nothing in it but a clone of the connection:
 * when the others die, the kernel ends the requests that they had read.
 *
 * Notes name nodes, not inodes: a number that means another inode by the time
 * costs that one a question, and nobody has to keep an inode for a note.
 */

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>

#include "base/fd.h"
#include "base/limits.h"
#include "fusefs/inodes.h"
#include "fusefs/notify.h"
#include "fusefs/ops.h"
#include "fusefs/watch.h"

/* Since 7.38; older headers call the field padding. */
#define ENTRY_EXPIRE 1u

enum what {
	FORGET_NAME, /* the name leads elsewhere, or nowhere */
	EXPIRE_NAME, /* it is to be asked for again */
	ATTRIBUTES,  /* of the node */
	PAGES,	     /* of the node, and its attributes */
};

struct note {
	struct note *next;
	enum what what;
	fuse_ino_t node;   /* of the two latter; else unused */
	fuse_ino_t parent; /* of the name; 0: no name */
	char name[];
};

struct fs_notify {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more, less;
	struct note *first, **last;
	uint64_t queued, done; /* since the start */
	bool ending;
};

fuse_ino_t
fs_node_id(const struct fs *fs, const struct fs_inode *inode)
{
	return inode == fs->roots[0] ? FUSE_ROOT_ID
				     : (fuse_ino_t)(uintptr_t)inode;
}

/* ---- telling ---- */

static int
notify_kernel(int fd, int code, const void *what, size_t size, const char *name)
{
	struct fuse_out_header head = { .error = code };
	struct iovec iov[3] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)what, .iov_len = size },
		{ .iov_base = (void *)name,
		  .iov_len = name ? strlen(name) + 1 : 0 },
	};

	head.len = (uint32_t)(sizeof(head) + size + iov[2].iov_len);
	return writev(fd, iov, name ? 3 : 2) < 0 ? -errno : 0;
}

static int
forget_name(int fd, const struct note *note, unsigned int flags)
{
	struct fuse_notify_inval_entry_out out = {
		.parent = note->parent,
		.namelen = (uint32_t)strlen(note->name),
	};

	memcpy((char *)&out + sizeof(out) - sizeof(flags), &flags,
	       sizeof(flags));
	return notify_kernel(fd, FUSE_NOTIFY_INVAL_ENTRY, &out, sizeof(out),
			     note->name);
}

static int
forget_node(int fd, const struct note *note)
{
	const struct fuse_notify_inval_inode_out out = {
		.ino = note->node,
		/* Negative: attributes only, which waits for nothing. */
		.off = note->what == PAGES ? 0 : -1,
	};

	return notify_kernel(fd, FUSE_NOTIFY_INVAL_INODE, &out, sizeof(out),
			     NULL);
}

static void
tell(int fd, const struct note *note)
{
	switch (note->what) {
	case FORGET_NAME:
		(void)forget_name(fd, note, 0);
		break;
	case EXPIRE_NAME:
		(void)forget_name(fd, note, ENTRY_EXPIRE);
		break;
	case ATTRIBUTES:
	case PAGES:
		/*
		 * A node that the kernel does not know may be on its way there,
		 * with a reply that was made before the change.  The kernel has
		 * the directory locked until it has taken it in; a directory's
		 * own name must stay, so it waits by one that there cannot be.
		 */
		if (forget_node(fd, note) == -ENOENT && note->parent) {
			(void)forget_name(fd, note, 0);
			(void)forget_node(fd, note);
		}
		break;
	}
}

/* ---- the thread ---- */

static struct note *
next_note(struct fs_notify *notify)
{
	struct note *note;

	pthread_mutex_lock(&notify->lock);
	while (!notify->first && !notify->ending)
		pthread_cond_wait(&notify->more, &notify->lock);
	note = notify->first;
	if (note) {
		notify->first = note->next;
		if (!notify->first)
			notify->last = &notify->first;
	}
	pthread_mutex_unlock(&notify->lock);
	return note;
}

/* Leaves the table of descriptors, if it can have the connection to itself. */
static int
connection_alone(const struct fs *fs)
{
	uint32_t session_fd = (uint32_t)fuse_session_fd(fs->session);
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0 && ioctl(fd, FUSE_DEV_IOC_CLONE, &session_fd) == 0 &&
	    unshare(CLONE_FILES) == 0) {
		if (fd > 0)
			(void)close_range(0, (unsigned int)fd - 1, 0);
		(void)close_range((unsigned int)fd + 1, ~0U, 0);
		return fd;
	}
	closep(&fd);
	return (int)session_fd;
}

static void *
notify_main(void *data)
{
	struct fs *fs = data;
	struct fs_notify *notify = fs->notify;
	int fd = connection_alone(fs);
	struct note *note;

	while ((note = next_note(notify))) {
		if (!atomic_load(&fs->stopping))
			tell(fd, note);
		free(note);
		pthread_mutex_lock(&notify->lock);
		notify->done++;
		pthread_cond_broadcast(&notify->less);
		pthread_mutex_unlock(&notify->lock);
	}
	return NULL;
}

static void
queue(struct fs *fs, const struct note *what, const char *name)
{
	struct fs_notify *notify = fs->notify;
	size_t size = strlen(name) + 1;
	struct note *note;

	if (!notify)
		return;
	/* Somebody inside keeps the kernel from being told. */
	note = fs_notify_pending(fs) < LIMIT_NOTES
		       ? malloc(sizeof(*note) + size)
		       : NULL;
	if (!note) {
		fs_watch_lost(fs);
		return;
	}
	*note = *what;
	note->next = NULL;
	memcpy(note->name, name, size);
	pthread_mutex_lock(&notify->lock);
	*notify->last = note;
	notify->last = &note->next;
	notify->queued++;
	pthread_cond_signal(&notify->more);
	pthread_mutex_unlock(&notify->lock);
}

void
fs_notify_entry(struct fs *fs, struct fs_inode *dir, const char *name)
{
	queue(fs,
	      &(struct note){ .what = FORGET_NAME,
			      .parent = fs_node_id(fs, dir) },
	      name);
}

void
fs_notify_doubt(struct fs *fs, struct fs_inode *dir, const char *name,
		const struct fs_inode *inode)
{
	if (atomic_load(&fs->can_expire))
		queue(fs,
		      &(struct note){ .what = EXPIRE_NAME,
				      .parent = fs_node_id(fs, dir) },
		      name);
	else if (!fs_inode_is_dir(inode))
		fs_notify_entry(fs, dir, name);
}

/* `name` in `parent`: where the kernel may be learning of it; or NULL. */
static void
queue_node(struct fs *fs, struct fs_inode *inode, enum what what,
	   struct fs_inode *parent, const char *name)
{
	struct note note = { .what = what, .node = fs_node_id(fs, inode) };

	fs_watch_settling(inode);
	if (parent)
		note.parent = fs_node_id(fs, parent);
	if (!parent || fs_inode_is_dir(inode))
		name = parent ? "." : "";
	queue(fs, &note, name);
}

static void
queue_placed(struct fs *fs, struct fs_inode *inode, enum what what)
{
	struct fs_inode *parent = NULL;
	char name[NAME_MAX + 1];

	if (fs_inode_place(fs, inode, &parent, name) < 0)
		parent = NULL;
	queue_node(fs, inode, what, parent, name);
	fs_inode_put(fs, parent);
}

void
fs_notify_pages(struct fs *fs, struct fs_inode *inode)
{
	queue_placed(fs, inode, PAGES);
}

void
fs_notify_attr(struct fs *fs, struct fs_inode *inode)
{
	queue_placed(fs, inode, ATTRIBUTES);
}

void
fs_notify_child(struct fs *fs, struct fs_inode *dir, const char *name,
		struct fs_inode *inode, bool pages)
{
	queue_node(fs, inode, pages ? PAGES : ATTRIBUTES, dir, name);
}

size_t
fs_notify_pending(struct fs *fs)
{
	struct fs_notify *notify = fs->notify;
	size_t n;

	if (!notify)
		return 0;
	pthread_mutex_lock(&notify->lock);
	n = notify->queued - notify->done;
	pthread_mutex_unlock(&notify->lock);
	return n;
}

int
fs_notify_wait(struct fs *fs, const struct timespec *deadline)
{
	struct fs_notify *notify = fs->notify;
	uint64_t upto;
	int r = 0;

	if (!notify)
		return 0;
	pthread_mutex_lock(&notify->lock);
	upto = notify->queued;
	while (notify->done < upto && r == 0)
		r = pthread_cond_timedwait(&notify->less, &notify->lock,
					   deadline);
	pthread_mutex_unlock(&notify->lock);
	return -r;
}

/* ---- its life ---- */

static void
init_conditions(struct fs_notify *notify)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&notify->more, &attr);
	pthread_cond_init(&notify->less, &attr);
	pthread_condattr_destroy(&attr);
}

int
fs_notify_start(struct fs *fs)
{
	struct fs_notify *notify = calloc(1, sizeof(*notify));
	int r;

	if (!notify)
		return -ENOMEM;
	pthread_mutex_init(&notify->lock, NULL);
	init_conditions(notify);
	notify->last = &notify->first;
	fs->notify = notify;
	r = pthread_create(&notify->thread, NULL, notify_main, fs);
	if (r != 0) {
		fs->notify = NULL;
		free(notify);
		return -r;
	}
	return 0;
}

void
fs_notify_stop(struct fs *fs)
{
	struct fs_notify *notify = fs->notify;

	if (!notify)
		return;
	pthread_mutex_lock(&notify->lock);
	notify->ending = true;
	pthread_cond_signal(&notify->more);
	pthread_mutex_unlock(&notify->lock);
	(void)pthread_join(notify->thread, NULL);
	pthread_mutex_destroy(&notify->lock);
	pthread_cond_destroy(&notify->more);
	pthread_cond_destroy(&notify->less);
	fs->notify = NULL;
	free(notify);
}
