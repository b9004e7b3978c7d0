/* SPDX-License-Identifier: MIT */

/*
 * What a change on the disk means for what the kernel has.
 *
 * An event says where something happened, not what is there now: that is looked
 * up when it is read, and a later change has a later event.  What the kernel
 * has by a name is what places.c knows by it.
 */

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "fusefs/dirbuf.h"
#include "fusefs/echo.h"
#include "fusefs/inodes.h"
#include "fusefs/notify.h"
#include "fusefs/ops.h"
#include "fusefs/places.h"
#include "fusefs/watch.h"
#include "fusefs/watch_priv.h"

#define FOUND_MAX 8

/* A name, what was seen by it, and what is there now. */
struct subject {
	struct fs_inode *dir;
	const char *name;
	struct fs_inode *seen[FOUND_MAX];
	size_t n_seen;
	struct fs_inode *now; /* NULL: nothing, or nothing that is known */
	struct statx stx;
	bool there; /* `stx` is of what is there now */
};

static void
subject_find(struct fs *fs, struct subject *subject)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct fs_ident ident;

	subject->n_seen = fs_places_find(fs, subject->dir, subject->name,
					 subject->seen, FOUND_MAX);
	subject->there =
		fs_hold(fs, subject->dir, &hold) == 0 &&
		fs_statx_at(hold.fd, subject->name, &subject->stx) == 0;
	if (subject->there && fs_ident_of(fs, &subject->stx, &ident) == 0)
		subject->now = fs_inode_find(fs, &ident);
}

static void
subject_fini(struct fs *fs, struct subject *subject)
{
	for (size_t i = 0; i < subject->n_seen; i++)
		fs_inode_put(fs, subject->seen[i]);
	fs_inode_put(fs, subject->now);
}

/* The next open is not to keep the pages, whatever the times say. */
static void
spoil_stamp(struct fs *fs, struct fs_inode *inode)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);

	fs_shard_lock(shard);
	if (!fs_inode_is_dir(inode))
		inode->stamp = 0;
	fs_shard_unlock(shard);
}

void
fs_watch_adrift(struct fs *fs, struct fs_inode *inode)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);

	fs_shard_lock(shard);
	if (!fs_inode_is_dir(inode))
		inode->flags |= FS_INODE_ADRIFT;
	fs_shard_unlock(shard);
}

static void
ask_in(struct fs *fs, struct fs_inode *inode, void *data)
{
	struct fs_inode *parent = NULL;
	char name[NAME_MAX + 1];

	if (fs_inode_place(fs, inode, &parent, name) < 0)
		return;
	if (parent == data && fs_inode_is_dir(inode))
		fs_notify_doubt(fs, parent, name, inode);
	else if (parent == data)
		fs_notify_entry(fs, parent, name);
	fs_inode_put(fs, parent);
}

void
fs_watch_searched(struct fs *fs, struct fs_inode *dir)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct statx stx;

	if (fs->config.multi_uid || fs_hold(fs, dir, &hold) < 0 ||
	    fs_statx_at(hold.fd, ".", &stx) != -EACCES)
		return;
	if (fs_inodes_each(fs, ask_in, dir) < 0)
		fs_watch_lost(fs);
}

/* Whether its pages are to go, too. */
static bool
content_changed(struct fs *fs, struct fs_inode *inode, unsigned int changes)
{
	if (!(changes & WATCH_CONTENT) || fs_inode_is_dir(inode))
		return false;
	spoil_stamp(fs, inode);
	return true;
}

static void
inode_changed(struct fs *fs, const struct subject *subject,
	      struct fs_inode *inode, unsigned int changes)
{
	bool pages = content_changed(fs, inode, changes);

	fs_notify_child(fs, subject->dir, subject->name, inode, pages);
}

/*
 * The name as such.  If it leads to what the kernel was told last, asking anew
 * is enough: to forget a directory would take away what is mounted on it and
 * the path of whoever is in it.
 */
static void
binding_changed(struct fs *fs, const struct subject *subject)
{
	if (subject->n_seen == 1 && subject->seen[0] == subject->now)
		fs_notify_doubt(fs, subject->dir, subject->name, subject->now);
	else
		fs_notify_entry(fs, subject->dir, subject->name);
	/* After that, which waited for who is reading it: the list, too. */
	fs_notify_pages(fs, subject->dir);
}

static bool
is_subject(const struct subject *subject, const struct fs_inode *inode)
{
	for (size_t i = 0; i < subject->n_seen; i++)
		if (subject->seen[i] == inode)
			return true;
	return subject->now == inode;
}

/* By the name that it was last seen by. */
static void
placed_changed(struct fs *fs, struct fs_inode *inode, unsigned int changes)
{
	if (content_changed(fs, inode, changes))
		fs_notify_pages(fs, inode);
	else
		fs_notify_attr(fs, inode);
}

static void
number_changed(struct fs *fs, const struct subject *by_name, uint64_t number,
	       unsigned int changes)
{
	struct fs_inode *found[FOUND_MAX];
	size_t n = fs_inodes_numbered(fs, by_name->dir->dev, number, found,
				      FOUND_MAX);

	for (size_t i = 0; i < n; i++) {
		if (!is_subject(by_name, found[i]))
			placed_changed(fs, found[i], changes);
		fs_inode_put(fs, found[i]);
	}
}

/*
 * The object may be known by another name than the event's: who has it open by
 * a name that is gone is told of by that one.  Its handle is opaque, but the
 * inode number is one of its words; to take another word for it costs the
 * kernel a question.
 */
static void
object_changed(struct fs *fs, const struct subject *by_name,
	       const struct watch_event *event)
{
	const unsigned char *bytes = event->object;
	uint64_t wide;
	uint32_t word;

	for (size_t at = 0; at + sizeof(word) <= event->object_size;
	     at += sizeof(word)) {
		memcpy(&word, bytes + at, sizeof(word));
		if (word != 0)
			number_changed(fs, by_name, word, event->changes);
		if (at + sizeof(wide) > event->object_size)
			break;
		memcpy(&wide, bytes + at, sizeof(wide));
		if (wide > UINT32_MAX)
			number_changed(fs, by_name, wide, event->changes);
	}
}

/* What names the object of both events of one rename; 0: nothing does. */
static uint64_t
object_of(const struct watch_event *event)
{
	if (event->cookie != 0)
		return event->cookie;
	if (event->object_size == 0 || !(event->changes & WATCH_BINDING))
		return 0;
	return watch_fan_key(0, event->object, event->object_size);
}

static void
tell_inside(struct fs *fs, const struct subject *subject,
	    const struct watch_event *event)
{
	const struct fs_echo_change change = {
		.dir = subject->dir,
		.name = event->name,
		.mask = event->mask,
		.object = fs_echo_is_on(fs) ? object_of(event) : 0,
		.replaced = subject->n_seen > 1 ||
			    (subject->n_seen == 1 &&
			     subject->seen[0] != subject->now),
		.may_be_ours = event->may_be_ours,
		.pid = event->pid,
		.now = subject->there ? &subject->stx : NULL,
		.inode = subject->now,
	};

	if (fs_echo_is_on(fs))
		fs_echo_changed(fs, &change);
}

void
watch_changed(struct fs *fs, struct fs_inode *dir,
	      const struct watch_event *event)
{
	struct subject subject = { .dir = dir, .name = event->name };
	bool listed = false;

	if (event->name[0] == '\0') {
		fs_notify_attr(fs, dir);
		fs_watch_searched(fs, dir);
		subject.there = fs_echo_is_on(fs) &&
				fs_stat(fs, dir, &subject.stx) == 0;
		tell_inside(fs, &subject, event);
		return;
	}
	subject_find(fs, &subject);
	if (event->changes & WATCH_BINDING)
		binding_changed(fs, &subject);
	for (size_t i = 0; i < subject.n_seen; i++) {
		struct fs_inode *inode = subject.seen[i];

		listed |= inode == subject.now;
		if (inode != subject.now && (event->changes & WATCH_BINDING))
			fs_watch_adrift(fs, inode);
		inode_changed(fs, &subject, inode, event->changes);
	}
	/* A new link: the kernel may be learning of the file by the old one. */
	if (subject.now && !listed) {
		inode_changed(fs, &subject, subject.now, event->changes);
		placed_changed(fs, subject.now, event->changes);
	}
	object_changed(fs, &subject, event);
	tell_inside(fs, &subject, event);
	subject_fini(fs, &subject);
}

#define NOTES_MAX 16384
#define PACE_NS	  INT64_C(1000000000)

void
watch_pace(struct fs *fs)
{
	int64_t end;

	if (fs_notify_pending(fs) < NOTES_MAX)
		return;
	end = clock_mono_ns() + PACE_NS;
	(void)fs_notify_wait(fs,
			     &(struct timespec){ .tv_sec = end / 1000000000,
						 .tv_nsec = end % 1000000000 });
}

/* ---- all of it ---- */

/*
 * Names on the disk that no inode was seen by: the kernel may hold that they
 * are not there, or that they lead to a file of another name.
 */
static void
forget_strangers(struct fs *fs, struct fs_inode *dir)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	_cleanup_(closep) int fd = -1;
	struct fs_dirbuf *dirbuf = NULL;
	struct fs_dirent entry;
	off_t position = 0;

	if (fs_hold(fs, dir, &hold) < 0)
		return;
	fd = openat(hold.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fs_dirbuf_new(&dirbuf) < 0)
		return;
	while (fs_dirbuf_peek(dirbuf, fd, position, &entry) > 0) {
		struct fs_inode *seen;

		position = entry.next;
		if (fs_name_is_bad(entry.name))
			continue;
		if (fs_places_find(fs, dir, entry.name, &seen, 1) > 0)
			fs_inode_put(fs, seen);
		else
			fs_notify_entry(fs, dir, entry.name);
	}
	fs_dirbuf_free(dirbuf);
}

/*
 * Also a name that leads where it should: the kernel may have heard before that
 * it is not there.
 */
static void
check_place(struct fs *fs, struct fs_inode *inode)
{
	struct subject subject = { 0 };
	char name[NAME_MAX + 1];

	if (fs_inode_place(fs, inode, &subject.dir, name) < 0)
		return;
	subject.name = name;
	subject_find(fs, &subject);
	if (subject.now != inode)
		fs_watch_adrift(fs, inode);
	if (subject.n_seen == 1 && subject.now == inode)
		fs_notify_doubt(fs, subject.dir, name, inode);
	else
		fs_notify_entry(fs, subject.dir, name);
	subject_fini(fs, &subject);
	fs_inode_put(fs, subject.dir);
}

static void
drop_one(struct fs *fs, struct fs_inode *inode, void *data)
{
	(void)data;
	if (atomic_load(&fs->watch->ending))
		return;
	watch_pace(fs);
	check_place(fs, inode);
	if (fs_inode_is_dir(inode)) {
		forget_strangers(fs, inode);
		/* No such name: it waits for who is listing the directory. */
		fs_notify_entry(fs, inode, ".");
	}
	spoil_stamp(fs, inode);
	fs_notify_pages(fs, inode);
}

void
watch_all_changed(struct fs *fs)
{
	/* Without memory: again, when there is some. */
	if (fs_inodes_each(fs, drop_one, NULL) < 0)
		atomic_store(&fs->watch->lost, true);
}

static void
drop_untold(struct fs *fs, struct fs_inode *inode, void *data)
{
	struct fs_inode *parent = NULL;
	char name[NAME_MAX + 1];
	bool untold =
		fs_inode_is_dir(inode) && (inode->flags & FS_INODE_UNWATCHED);

	if (!untold && fs_inode_place(fs, inode, &parent, name) == 0) {
		untold = parent->flags & FS_INODE_UNWATCHED;
		fs_inode_put(fs, parent);
	}
	if (untold || (inode->flags & FS_INODE_ADRIFT))
		drop_one(fs, inode, data);
	/* A link made or removed where nobody tells changes a count here. */
	else if (!fs_inode_is_dir(inode))
		fs_notify_attr(fs, inode);
}

void
watch_untold_changed(struct fs *fs)
{
	atomic_fetch_add(&fs->changes, 1);
	(void)fs_inodes_each(fs, drop_untold, NULL);
}
