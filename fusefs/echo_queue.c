/* SPDX-License-Identifier: MIT */

/*
 * Changes that wait to be told, oldest first.
 *
 * A change of a name that has one waiting joins it, unless the two would then
 * be told in the wrong order; so there is one hashed item of a name, its last.
 * The two ends of a rename come as two changes with one object: the first
 * waits a moment for the second, which makes it a rename.  A name that was only
 * passed through on the way (a to b to c) is never told.
 */

#include <string.h>
#include <sys/inotify.h>

#include "base/limits.h"
#include "fusefs/echo_priv.h"
#include "fusefs/inodes.h"

#define GONE_BITS  (IN_DELETE | IN_MOVED_FROM)
#define THERE_BITS (IN_CREATE | IN_MOVED_TO)

void
echo_queue_init(struct echo_queue *queue)
{
	memset(queue, 0, sizeof(*queue));
	queue->last = &queue->first;
}

void
echo_item_free(struct fs *fs, struct echo_item *item)
{
	fs_inode_put(fs, item->dir);
	fs_inode_put(fs, item->dir2);
	free(item->name2);
	free(item);
}

void
echo_queue_fini(struct fs *fs, struct echo_queue *queue)
{
	while (queue->first) {
		struct echo_item *item = queue->first;

		queue->first = item->next;
		echo_item_free(fs, item);
	}
	queue->last = &queue->first;
}

static struct echo_item **
bucket_of(struct echo_queue *queue, const struct fs_inode *dir,
	  const char *name)
{
	uint64_t hash = (uint64_t)(uintptr_t)dir * 0x9e3779b97f4a7c15u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	hash ^= hash >> 32;
	return &queue->buckets[hash % ECHO_BUCKETS];
}

static struct echo_item *
find(struct echo_queue *queue, const struct fs_inode *dir, const char *name)
{
	struct echo_item *item = *bucket_of(queue, dir, name);

	while (item && (item->dir != dir || strcmp(item->name, name) != 0))
		item = item->hash_next;
	return item;
}

static void
hash_item(struct echo_queue *queue, struct echo_item *item)
{
	struct echo_item **head = bucket_of(queue, item->dir, item->name);

	item->hash_next = *head;
	*head = item;
	item->hashed = true;
}

/* Nothing joins it any more. */
static void
unhash(struct echo_queue *queue, struct echo_item *item)
{
	struct echo_item **at;

	if (!item || !item->hashed)
		return;
	at = bucket_of(queue, item->dir, item->name);
	while (*at != item)
		at = &(*at)->hash_next;
	*at = item->hash_next;
	item->hashed = false;
}

static struct echo_item *
append(struct echo_queue *queue, struct fs_inode *dir, const char *name)
{
	size_t size = strlen(name) + 1;
	struct echo_item *item = calloc(1, sizeof(*item) + size);

	if (!item)
		return NULL;
	memcpy(item->name, name, size);
	item->dir = fs_inode_ref(dir);
	*queue->last = item;
	queue->last = &item->next;
	queue->count++;
	hash_item(queue, item);
	return item;
}

/* ---- renames ---- */

static struct echo_item **
find_move(struct echo_queue *queue, uint64_t object)
{
	for (size_t i = 0; object != 0 && i < ECHO_MOVES; i++)
		if (queue->moves[i] && queue->moves[i]->object == object)
			return &queue->moves[i];
	return NULL;
}

static void
await_other_end(struct echo_queue *queue, struct echo_item *item,
		uint64_t object, int64_t now_ns)
{
	struct echo_item **slot =
		&queue->moves[queue->next_move++ % ECHO_MOVES];

	if (*slot)
		(*slot)->object = 0;
	*slot = item;
	item->object = object;
	item->at_ns = now_ns;
}

static void
forget_move(struct echo_queue *queue, struct echo_item *item)
{
	for (size_t i = 0; item->object != 0 && i < ECHO_MOVES; i++)
		if (queue->moves[i] == item)
			queue->moves[i] = NULL;
	item->object = 0;
}

/* The second end has come: 1; or -ENOMEM: they are two changes. */
static int
make_rename(struct echo_queue *queue, struct echo_item **slot,
	    const struct fs_echo_change *change)
{
	struct echo_item *item = *slot;
	char *name2 = strdup(change->name);

	if (!name2)
		return -ENOMEM;
	*slot = NULL;
	item->object = 0;
	item->name2 = name2;
	item->dir2 = fs_inode_ref(change->dir);
	item->what = ECHO_DO_RENAME;
	item->type = change->now->stx_mode & S_IFMT;
	unhash(queue, item);
	unhash(queue, find(queue, change->dir, change->name));
	return 1;
}

/* ---- adding ---- */

static unsigned int
what_of(const struct fs_echo_change *change)
{
	const struct statx *now = change->now;
	unsigned int mask = change->mask, what = 0;

	if (((mask & GONE_BITS) && (!now || !(mask & THERE_BITS))) ||
	    ((mask & THERE_BITS) && now && change->replaced))
		what |= ECHO_DO_REMOVE;
	if (!now)
		return what;
	if (mask & THERE_BITS)
		what |= ECHO_DO_MAKE;
	if (mask & IN_ATTRIB)
		what |= ECHO_DO_META;
	if (!S_ISREG(now->stx_mode))
		return what;
	if (mask & IN_MODIFY)
		what |= ECHO_DO_CONTENT;
	/* Who has a program open for writing keeps it from being run. */
	if ((mask & IN_CLOSE_WRITE) && !(now->stx_mode & 0111))
		what |= ECHO_DO_CLOSE;
	return what;
}

/*
 * What is made and gone before it was told is only gone; what goes after its
 * content changed is only gone, too.
 */
static void
join(struct echo_item *item, const struct fs_echo_change *change,
     unsigned int what)
{
	mode_t gone = change->mask & IN_ISDIR ? S_IFDIR : S_IFREG;

	if (what & ECHO_DO_REMOVE) {
		if (!(item->what & ECHO_DO_REMOVE)) {
			item->gone_type = gone;
			item->moved = !(change->mask & IN_DELETE) &&
				      (change->mask & IN_MOVED_FROM);
			item->if_known = true;
		}
		item->if_known &= !(change->mask & GONE_BITS);
		item->what = 0;
	}
	item->what |= what;
	if (change->now)
		item->type = change->now->stx_mode & S_IFMT;
}

int
echo_queue_add(struct echo_queue *queue, const struct fs_echo_change *change,
	       int64_t now_ns)
{
	struct echo_item **move = find_move(queue, change->object), *item;
	unsigned int what = what_of(change);

	if (move && (change->mask & IN_MOVED_TO)) {
		/* It has gone on from here already: to where will be told. */
		if (!change->now && (change->mask & IN_MOVED_FROM)) {
			(*move)->at_ns = now_ns;
			return 0;
		}
		if (change->now && make_rename(queue, move, change) > 0)
			what &= ~(unsigned int)(ECHO_DO_REMOVE | ECHO_DO_MAKE);
	}
	if (what == 0)
		return 0;
	item = find(queue, change->dir, change->name);
	if (!item && queue->count < LIMIT_ECHO)
		item = append(queue, change->dir, change->name);
	if (!item) {
		queue->dropped++;
		return queue->count < LIMIT_ECHO ? -ENOMEM : -ENOSPC;
	}
	forget_move(queue, item);
	join(item, change, what);
	if ((what & ECHO_DO_REMOVE) && item->moved && change->object != 0)
		await_other_end(queue, item, change->object, now_ns);
	return 0;
}

struct echo_item *
echo_queue_take(struct echo_queue *queue, int64_t now_ns, int64_t *ret_wait_ns)
{
	struct echo_item *item = queue->first;

	*ret_wait_ns = -1;
	if (!item)
		return NULL;
	if (item->object != 0 && now_ns - item->at_ns < ECHO_MOVE_NS) {
		*ret_wait_ns = ECHO_MOVE_NS - (now_ns - item->at_ns);
		return NULL;
	}
	queue->first = item->next;
	if (!queue->first)
		queue->last = &queue->first;
	queue->count--;
	unhash(queue, item);
	forget_move(queue, item);
	item->next = NULL;
	return item;
}
