/* SPDX-License-Identifier: MIT */

/*
 * Open files and directories.  The kernel holds one reference from the reply
 * to OPEN until RELEASE; whoever works through the descriptor meanwhile
 * (fs_hold) holds another, so it is never closed under a request.
 */

#include "fusefs/dirbuf.h"
#include "fusefs/gitguard.h"
#include "fusefs/inodes.h"
#include "fusefs/ops.h"
#include "fusefs/passthrough.h"

static int
handle_new(struct fs_call *call, const struct fs_handle *what,
	   struct fs_handle **ret_handle)
{
	struct fs_handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return -ENOMEM;
	atomic_init(&handle->refs, 1);
	atomic_init(&handle->policy_gen, call->policy_gen);
	handle->inode = fs_inode_ref(what->inode);
	handle->fd = what->fd;
	handle->small = what->small;
	handle->backing = what->backing;
	handle->flags = what->flags;
	handle->pid = call->pid;
	handle->uid = call->uid;
	handle->gid = call->gid;
	fs_inode_add_handle(call->fs, handle);
	*ret_handle = handle;
	return 0;
}

int
fs_handle_new(struct fs_call *call, struct fs_inode *inode, int fd, int flags,
	      struct fs_handle **ret_handle)
{
	const struct fs_handle what = { .inode = inode,
					.fd = fd,
					.flags = flags };
	int r = handle_new(call, &what, ret_handle);

	if (r < 0)
		(void)close(fd);
	return r;
}

int
fs_handle_new_file(struct fs_call *call, const struct fs_handle *what,
		   struct fs_handle **ret_handle)
{
	int r = handle_new(call, what, ret_handle);

	if (r < 0) {
		(void)close(what->fd);
		fs_backing_put(call->fs, what->backing);
	}
	return r;
}

int
fs_handle_new_small(struct fs_call *call, struct fs_inode *inode,
		    struct gitguard_small *small, int flags,
		    struct fs_handle **ret_handle)
{
	const struct fs_handle what = { .inode = inode,
					.fd = gitguard_small_fd(small),
					.small = small,
					.flags = flags };
	int r = handle_new(call, &what, ret_handle);

	if (r < 0)
		gitguard_small_free(small);
	return r;
}

struct fs_handle *
fs_handle_ref(struct fs_handle *handle)
{
	atomic_fetch_add(&handle->refs, 1);
	return handle;
}

void
fs_handle_destroy(struct fs_handle *handle)
{
	if (handle->small)
		gitguard_small_free(handle->small); /* owns the descriptor */
	else
		(void)close(handle->fd);
	(void)fs_backing_forget(handle->backing);
	fs_dirbuf_free(handle->dir);
	free(handle);
}

void
fs_handle_put(struct fs *fs, struct fs_handle *handle)
{
	struct fs_inode *inode = handle->inode;

	if (atomic_fetch_sub(&handle->refs, 1) != 1)
		return;
	handle->backing = fs_backing_put(fs, handle->backing);
	fs_handle_destroy(handle);
	fs_inode_put(fs, inode);
}

void
fs_handle_close(struct fs *fs, struct fs_handle *handle)
{
	fs_inode_remove_handle(fs, handle);
	fs_handle_put(fs, handle);
}
