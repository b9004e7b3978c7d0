/* SPDX-License-Identifier: MIT */

/*
 * The policy in force, and its change while requests are served.
 *
 * A request counts itself into the epoch it began in, looks at the policy
 * pointer afterwards, and counts itself out when what it judged is done.  A
 * swap stores the new pointer, begins the next epoch, and waits until nobody
 * is left in the old one: then no mutation that the old policy allowed is
 * still on its way, and nobody holds its pointer.  Two counters suffice, since
 * swaps are serialised and each waits for its predecessor's readers.
 *
 *	request: n = epoch; in[n & 1]++; epoch still n? else step back, retry
 *	         policy = pointer; …; in[n & 1]--
 *	swap:    pointer = new; epoch = n + 1; wait until in[n & 1] == 0
 *
 * All of these are sequentially consistent: a request that saw the old epoch
 * after counting itself is seen by the swap.
 */

#include <string.h>
#include <time.h>

#include "fusefs/fence.h"
#include "fusefs/inodes.h"
#include "fusefs/ops.h"

void
fs_policy_enter(struct fs_call *call)
{
	struct fs *fs = call->fs;

	for (;;) {
		unsigned int epoch = atomic_load(&fs->epoch);

		atomic_fetch_add(&fs->in_epoch[epoch & 1], 1);
		if (atomic_load(&fs->epoch) == epoch) {
			call->epoch = epoch;
			break;
		}
		atomic_fetch_sub(&fs->in_epoch[epoch & 1], 1);
	}
	/* The two belong together: the generation is odd during the change. */
	do {
		call->policy_gen = atomic_load(&fs->policy_gen);
		call->policy = atomic_load(&fs->policy);
	} while ((call->policy_gen & 1) ||
		 atomic_load(&fs->policy_gen) != call->policy_gen);
}

void
fs_policy_leave(struct fs_call *call)
{
	atomic_fetch_sub(&call->fs->in_epoch[call->epoch & 1], 1);
}

/*
 * By a request under way, for which a swap may be waiting: so without the
 * swap's lock.  The generation stays odd or even, whatever comes in between.
 */
void
fs_marks_outdated(struct fs *fs)
{
	atomic_fetch_add(&fs->policy_gen, 2);
}

static void
wait_for_readers(struct fs *fs, unsigned int epoch)
{
	const struct timespec pause = { .tv_nsec = 200000 };

	while (atomic_load(&fs->in_epoch[epoch & 1]) != 0)
		(void)nanosleep(&pause, NULL);
}

/* Drops pages and attributes; dirty pages are written first. */
static void
drop_pages(struct fs *fs, struct fs_inode *inode, void *data)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);
	bool is_open;

	(void)data;
	fs_shard_lock(shard);
	is_open = inode->handles;
	fs_shard_unlock(shard);
	if (is_open)
		(void)fuse_lowlevel_notify_inval_inode(
			fs->session, fs_node_id(fs, inode), 0, 0);
}

static void
drop_all(struct fs *fs, struct fs_inode *inode, void *data)
{
	struct fs_inode *parent = NULL;
	char name[NAME_MAX + 1];

	(void)data;
	/* No such name: it waits for who is listing the directory. */
	if (fs_inode_is_dir(inode))
		(void)fuse_lowlevel_notify_inval_entry(
			fs->session, fs_node_id(fs, inode), ".", 1);
	(void)fuse_lowlevel_notify_inval_inode(fs->session,
					       fs_node_id(fs, inode), 0, 0);
	if (fs_inode_place(fs, inode, &parent, name) < 0)
		return;
	(void)fuse_lowlevel_notify_inval_entry(
		fs->session, fs_node_id(fs, parent), name, strlen(name));
	fs_inode_put(fs, parent);
}

static bool
same_rules(const struct policy *a, const struct policy *b)
{
	enum rule_kind kind_a, kind_b;
	const char *text_a, *text_b, *source_a, *source_b;

	for (size_t i = 0;; i++) {
		bool has_a =
			rules_get(a->rules, i, &kind_a, &text_a, &source_a);
		bool has_b =
			rules_get(b->rules, i, &kind_b, &text_b, &source_b);

		if (has_a != has_b)
			return false;
		if (!has_a)
			return true;
		if (kind_a != kind_b || strcmp(text_a, text_b) != 0)
			return false;
	}
}

bool
fs_policy_hides(const struct policy *policy)
{
	const char *text, *source;
	enum rule_kind kind;

	for (size_t i = 0; rules_get(policy->rules, i, &kind, &text, &source);
	     i++)
		if (kind == RULE_HIDE)
			return true;
	return false;
}

int
fs_set_policy(struct fs *fs, struct policy *policy)
{
	struct policy *old;
	unsigned int epoch;
	bool names;
	int r = 0;

	pthread_mutex_lock(&fs->swap_lock);
	old = atomic_load(&fs->policy);
	if (policy->mode != old->mode &&
	    fs_passthrough(fs) == FS_PASSTHROUGH_USED) {
		pthread_mutex_unlock(&fs->swap_lock);
		return -EBUSY;
	}
	names = !same_rules(old, policy);

	/* What was stored while it was allowed is written while it is. */
	if (fs->running && policy->mode < old->mode)
		r = fs_inodes_each(fs, drop_pages, NULL);
	if (r < 0) {
		pthread_mutex_unlock(&fs->swap_lock);
		return r;
	}

	policy_ref(policy);
	if (fs_policy_hides(policy))
		atomic_store(&fs->has_hide, true);
	atomic_fetch_add(&fs->policy_gen, 1);
	atomic_store(&fs->policy, policy);
	atomic_fetch_add(&fs->policy_gen, 1);
	epoch = atomic_fetch_add(&fs->epoch, 1);
	wait_for_readers(fs, epoch);
	atomic_store(&fs->has_hide, fs_policy_hides(policy));

	/* Without memory for it, what the kernel has ends by its time-outs. */
	if (fs->running)
		(void)fs_inodes_each(fs, names ? drop_all : drop_pages, NULL);
	policy_unref(old);
	pthread_mutex_unlock(&fs->swap_lock);
	return 0;
}
