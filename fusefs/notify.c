/* SPDX-License-Identifier: MIT */

/*
 * One thread that tells the kernel to forget names and pages.  The queue is
 * bounded by what it is for: a note comes from a request that somebody waits
 * for.
 *
 * A note is queued before the reply and told after it, because the kernel
 * holds the directory's or the page's lock until it has the reply and the
 * notification waits for that lock.
 */

#include <string.h>

#include "fusefs/inodes.h"
#include "fusefs/ops.h"

struct note {
	struct note *next;
	struct fs_inode *inode; /* referenced */
	char name[];		/* in that directory; "": its pages */
};

struct fs_notify {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct note *first, **last;
	bool ending;
};

fuse_ino_t
fs_node_id(const struct fs *fs, const struct fs_inode *inode)
{
	return inode == fs->roots[0] ? FUSE_ROOT_ID
				     : (fuse_ino_t)(uintptr_t)inode;
}

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

static void
tell(struct fs *fs, const struct note *note)
{
	fuse_ino_t ino = fs_node_id(fs, note->inode);

	if (note->name[0] != '\0')
		(void)fuse_lowlevel_notify_inval_entry(
			fs->session, ino, note->name, strlen(note->name));
	else
		(void)fuse_lowlevel_notify_inval_inode(fs->session, ino, 0, 0);
}

static void *
notify_main(void *data)
{
	struct fs *fs = data;
	struct note *note;

	while ((note = next_note(fs->notify))) {
		if (!atomic_load(&fs->stopping))
			tell(fs, note);
		fs_inode_put(fs, note->inode);
		free(note);
	}
	return NULL;
}

void
fs_notify_entry(struct fs *fs, struct fs_inode *dir, const char *name)
{
	struct fs_notify *notify = fs->notify;
	size_t size = strlen(name) + 1;
	struct note *note = malloc(sizeof(*note) + size);

	/* Without memory what the kernel has is stale until its time-out. */
	if (!note || !notify) {
		free(note);
		return;
	}
	note->next = NULL;
	note->inode = fs_inode_ref(dir);
	memcpy(note->name, name, size);
	pthread_mutex_lock(&notify->lock);
	*notify->last = note;
	notify->last = &note->next;
	pthread_cond_signal(&notify->more);
	pthread_mutex_unlock(&notify->lock);
}

void
fs_notify_pages(struct fs *fs, struct fs_inode *inode)
{
	fs_notify_entry(fs, inode, "");
}

int
fs_notify_start(struct fs *fs)
{
	struct fs_notify *notify = calloc(1, sizeof(*notify));
	int r;

	if (!notify)
		return -ENOMEM;
	pthread_mutex_init(&notify->lock, NULL);
	pthread_cond_init(&notify->more, NULL);
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
	fs->notify = NULL;
	free(notify);
}
