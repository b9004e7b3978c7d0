/* SPDX-License-Identifier: MIT */

#include "fusefs/passthrough.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "fusefs/gitguard.h"
#include "fusefs/inodes.h"
#include "fusefs/ops.h"

#define SMALL_FILE 131072

/* As in newer <linux/fuse.h>. */
struct backing_map {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define BACKING_OPEN  _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

bool
fs_passthrough_offered(struct fs *fs, bool offered)
{
	if (atomic_load(&fs->passing) != FS_PASSING_WANTED)
		return false;
	atomic_store(&fs->passing,
		     offered ? FS_PASSING_ON : FS_PASSING_LACKING);
	return offered;
}

enum fs_passthrough
fs_passthrough(const struct fs *fs)
{
	switch (atomic_load(&fs->passing)) {
	case FS_PASSING_WANTED:
	case FS_PASSING_ON:
		return FS_PASSTHROUGH_USED;
	case FS_PASSING_LACKING:
		return FS_PASSTHROUGH_NO_KERNEL;
	case FS_PASSING_REFUSED:
		return FS_PASSTHROUGH_NO_PRIVILEGE;
	default:
		return FS_PASSTHROUGH_OFF;
	}
}

const char *
fs_passthrough_name(enum fs_passthrough value)
{
	static const char *const names[] = {
		[FS_PASSTHROUGH_OFF] = "off",
		[FS_PASSTHROUGH_USED] = "used",
		[FS_PASSTHROUGH_NO_KERNEL] = "the kernel does not offer it",
		[FS_PASSTHROUGH_NO_PRIVILEGE] =
			"only root of the first user namespace may",
	};

	return names[value];
}

struct fs_backing *
fs_backing_ref(struct fs_backing *backing)
{
	if (backing)
		atomic_fetch_add(&backing->refs, 1);
	return backing;
}

bool
fs_backing_forget(struct fs_backing *backing)
{
	if (!backing || atomic_fetch_sub(&backing->refs, 1) != 1)
		return false;
	free(backing);
	return true;
}

/*
 * The number is given back by a thread that has the capability anyway: taking
 * it up and laying it down again costs more than all the rest.
 */
struct fs_backing *
fs_backing_put(struct fs *fs, struct fs_backing *backing)
{
	if (!backing || atomic_fetch_sub(&backing->refs, 1) != 1)
		return NULL;
	backing->next = atomic_load(&fs->unbacked);
	while (!atomic_compare_exchange_weak(&fs->unbacked, &backing->next,
					     backing))
		;
	return NULL;
}

void
fs_backing_drain(struct fs *fs, bool connected)
{
	struct fs_backing *backing = atomic_exchange(&fs->unbacked, NULL);

	while (backing) {
		struct fs_backing *next = backing->next;
		uint32_t id = (uint32_t)backing->id;

		if (connected)
			(void)ioctl(fuse_session_fd(fs->session), BACKING_CLOSE,
				    &id);
		free(backing);
		backing = next;
	}
}

/* The first open file of an inode has decided. */
static bool
is_decided(struct fs *fs, struct fs_inode *inode, struct fs_backing **ret)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);
	bool is;

	fs_shard_lock(shard);
	is = inode->handles;
	if (is)
		*ret = fs_backing_ref(inode->handles->backing);
	fs_shard_unlock(shard);
	return is;
}

/* A name under which a write would be judged by its bytes. */
static bool
is_guarded(struct fs *fs, struct fs_inode *inode)
{
	struct fs_inode *parent = NULL;
	char name[NAME_MAX + 1];
	struct gitguard_at at = { .dirfd = -1, .name = name };

	if (fs_inode_place(fs, inode, &parent, name) < 0)
		return true;
	fs_inode_put(fs, parent);
	return gitguard_cares(POLICY_OP_OPEN_WRITE, &at);
}

static int
register_file(struct fs *fs, int fd)
{
	struct backing_map map = { .fd = fd };
	int id = fs_call_as_admin(true);

	if (id == 0)
		id = ioctl(fuse_session_fd(fs->session), BACKING_OPEN, &map);
	if (id < 0)
		id = -errno;
	(void)fs_call_as_admin(false);
	/* Other failures are of this file: it is on a stacked one, maybe. */
	if (id == -EPERM)
		atomic_store(&fs->passing, FS_PASSING_REFUSED);
	return id;
}

/* Not for what the page cache serves as well, without two more calls. */
static bool
is_worth_it(const struct statx *stx, int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || stx->stx_size >= SMALL_FILE;
}

struct fs_backing *
fs_backing_open(struct fs *fs, struct fs_inode *inode, int fd,
		const struct statx *stx, int flags)
{
	struct fs_backing *backing = NULL;
	int id;

	if (atomic_load(&fs->passing) != FS_PASSING_ON ||
	    is_decided(fs, inode, &backing))
		return backing;
	if (!S_ISREG(stx->stx_mode) || (stx->stx_mode & (S_ISUID | S_ISGID)) ||
	    (flags & (O_DIRECT | O_APPEND)) || !is_worth_it(stx, flags) ||
	    is_guarded(fs, inode))
		return NULL;
	backing = calloc(1, sizeof(*backing));
	if (!backing)
		return NULL;
	id = register_file(fs, fd);
	if (id <= 0) {
		free(backing);
		return NULL;
	}
	atomic_init(&backing->refs, 1);
	backing->id = id;
	return backing;
}

#define WRITER_MS 5000

static uint32_t
now_ms(void)
{
	return (uint32_t)(clock_mono_ns() / 1000000);
}

static atomic_uint_fast64_t *
writer_of(struct fs *fs, pid_t pid)
{
	return &fs->writers[(uint32_t)pid % FS_WRITERS];
}

void
fs_writer_note(struct fs *fs, pid_t pid)
{
	atomic_store(writer_of(fs, pid), (uint64_t)pid << 32 | now_ms());
}

bool
fs_writer_is(struct fs *fs, pid_t pid)
{
	uint64_t writer = atomic_load(writer_of(fs, pid));

	if ((pid_t)(writer >> 32) != pid || pid == 0 ||
	    now_ms() - (uint32_t)writer > WRITER_MS)
		return false;
	fs_writer_note(fs, pid);
	return true;
}
