/* SPDX-License-Identifier: MIT */

/*
 * The life of a mount: roots opened, session served, ended, freed.
 *
 * The session runs in a thread of our own, which makes and joins the serving
 * threads (serve.c).  Those sleep in the device, and are woken by a signal with
 * an empty handler.
 */

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/fd.h"
#include "fusefs/echo.h"
#include "fusefs/gitguard.h"
#include "fusefs/inodes.h"
#include "fusefs/locks.h"
#include "fusefs/ops.h"
#include "fusefs/passthrough.h"
#include "fusefs/places.h"
#include "fusefs/tree_priv.h"
#include "fusefs/watch.h"

#define IDLE_FDS_MAX 8192
#define EXPIRE_MINOR 38 /* FUSE_EXPIRE_ONLY, Linux 6.2 */
/* Where changes are told of; it bounds what nobody tells of (watch.h). */
#define TIMEOUT_TOLD 3600.0
#define WAKE_SIGNAL  (SIGRTMAX - 3)

/* That this process serves. */
static atomic_uint sessions;

unsigned int
fs_sessions(void)
{
	return atomic_load(&sessions);
}

static const struct fuse_lowlevel_ops operations = {
	.init = fs_op_init,
	.lookup = fs_op_lookup,
	.forget = fs_op_forget,
	.forget_multi = fs_op_forget_multi,
	.getattr = fs_op_getattr,
	.setattr = fs_op_setattr,
	.access = fs_op_access,
	.statfs = fs_op_statfs,
	.readlink = fs_op_readlink,
	.mknod = fs_op_mknod,
	.mkdir = fs_op_mkdir,
	.symlink = fs_op_symlink,
	.link = fs_op_link,
	.unlink = fs_op_unlink,
	.rmdir = fs_op_rmdir,
	.rename = fs_op_rename,
	.open = fs_op_open,
	.create = fs_op_create,
	.release = fs_op_release,
	.flush = fs_op_flush,
	.read = fs_op_read,
	.write = fs_op_write,
	.fsync = fs_op_fsync,
	.fallocate = fs_op_fallocate,
	.lseek = fs_op_lseek,
	.copy_file_range = fs_op_copy_file_range,
	.ioctl = fs_op_ioctl,
	.opendir = fs_op_opendir,
	.readdir = fs_op_readdir,
	.readdirplus = fs_op_readdirplus,
	.releasedir = fs_op_releasedir,
	.fsyncdir = fs_op_fsync,
	.setxattr = fs_op_setxattr,
	.getxattr = fs_op_getxattr,
	.listxattr = fs_op_listxattr,
	.removexattr = fs_op_removexattr,
	.getlk = fs_op_getlk,
	.setlk = fs_op_setlk,
	.flock = fs_op_flock,
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
	.tmpfile = fs_op_tmpfile,
#endif
};

void
fs_op_init(void *data, struct fuse_conn_info *conn)
{
	struct fs *fs = data;
	unsigned int wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_POSIX_LOCKS |
			      FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_ATOMIC_O_TRUNC |
			      FUSE_CAP_DONT_MASK | FUSE_CAP_SPLICE_WRITE |
			      FUSE_CAP_SPLICE_MOVE | FUSE_CAP_IOCTL_DIR |
			      FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_READDIRPLUS |
			      FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_ASYNC_DIO |
			      FUSE_CAP_PARALLEL_DIROPS |
			      FUSE_CAP_HANDLE_KILLPRIV;

	/* The kernel judges by mode bits (default_permissions): by ACLs too. */
	if (fs->config.multi_uid)
		wanted |= FUSE_CAP_POSIX_ACL;
#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2
	/* Older libfuse: raw.c. */
	wanted |= FUSE_CAP_HANDLE_KILLPRIV_V2;
#endif
#ifdef FUSE_CAP_PASSTHROUGH
	if (fs_passthrough_offered(fs, conn->capable & FUSE_CAP_PASSTHROUGH)) {
		wanted |= FUSE_CAP_PASSTHROUGH;
		conn->max_backing_stack_depth = FS_STACK_DEPTH;
	}
#endif
	/*
	 * Not wanted: the writeback cache (the host's writes would be lost
	 * under ours), and SPLICE_READ (an appending write could not be one).
	 */
	conn->want = wanted & conn->capable;
	atomic_store(&fs->can_expire,
		     conn->proto_major > 7 ||
			     (conn->proto_major == 7 &&
			      conn->proto_minor >= EXPIRE_MINOR));
}

/* ---- roots ---- */

static int
open_root(struct fs *fs, size_t index, struct errmsg *why)
{
	const char *path = fs->config.policy->roots[index].path;
	_cleanup_(closep) int fd = -1;
	struct fs_seen seen = { 0 };
	struct fs_inode *inode;
	struct fs_ident ident;
	struct statx stx;
	int r;

	fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errmsg_set(why, -errno, "cannot open '%s': %s", path,
				  strerror(errno));
	r = fs_statx_fd(fd, &stx);
	if (r == 0)
		r = fs_ident_of(fs, &stx, &ident);
	if (r == 0)
		r = fs_inode_upsert(fs, &ident, &seen, &inode);
	if (r != 0)
		return errmsg_set(why, r, "cannot serve '%s': %s", path,
				  strerror(-r));
	if (inode->fd >= 0) {
		fs_inode_put(fs, inode);
		return errmsg_set(why, -EINVAL, "'%s' is a root twice", path);
	}
	inode->root = (uint8_t)index;
	inode->flags |= FS_INODE_ROOT;
	fs_inode_pin(fs, inode, take_fd(&fd));
	fs->roots[index] = inode;
	return 0;
}

static int
open_roots(struct fs *fs, struct errmsg *why)
{
	const struct policy *policy = fs->config.policy;
	int r;

	if (policy->n_roots == 0 || policy->n_roots > LIMIT_ROOTS)
		return errmsg_set(why, -EINVAL, "no root to serve");
	fs->n_roots = policy->n_roots;
	for (size_t i = 0; i < policy->n_roots; i++) {
		if (policy->roots[i].kind == POLICY_ROOT_RW)
			continue;
		r = open_root(fs, i, why);
		if (r < 0)
			return r;
	}
	return 0;
}

static void
add_own_dir(struct fs *fs, const char *path, bool above)
{
	struct stat st;

	if (stat(path, &st) == 0)
		fs->own_dirs[fs->n_own_dirs++] = (struct fs_own_dir){
			.dev = st.st_dev, .ino = st.st_ino, .above = above
		};
}

/* They, and what they lie in: all that leads to one stays in its place. */
static int
find_own_dirs(struct fs *fs)
{
	const char *const *paths = fs->config.own_dirs;
	size_t n = 0;

	for (size_t i = 0; paths && paths[i]; i++)
		for (const char *c = paths[i]; *c; c++)
			n += *c == '/';
	fs->own_dirs = calloc(n + 1, sizeof(*fs->own_dirs));
	if (!fs->own_dirs)
		return -ENOMEM;
	for (size_t i = 0; paths && paths[i]; i++) {
		char path[PATH_MAX];

		if ((size_t)snprintf(path, sizeof(path), "%s", paths[i]) >=
		    sizeof(path))
			return -ENAMETOOLONG;
		add_own_dir(fs, path, false);
		for (char *slash = strrchr(path, '/'); slash && slash != path;
		     slash = strrchr(path, '/')) {
			*slash = '\0';
			add_own_dir(fs, path, true);
		}
	}
	return 0;
}

/* Returns how many idle descriptors may be kept. */
static size_t
raise_fd_limit(void)
{
	struct rlimit limit;
	size_t half;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 256;
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	half = limit.rlim_cur / 2;
	return half < IDLE_FDS_MAX ? half : IDLE_FDS_MAX;
}

int
fs_new(const struct fs_config *config, struct fs **ret_fs, struct errmsg *why)
{
	_cleanup_(fs_freep) struct fs *fs = calloc(1, sizeof(*fs));
	struct locks_config locks;
	int r;

	if (!fs)
		return errmsg_set(why, -ENOMEM, "out of memory");
	fs->config = *config;
	fs->timeouts = (struct fs_timeouts){ .entry = TIMEOUT_TOLD,
					     .attr = TIMEOUT_TOLD,
					     .negative = TIMEOUT_TOLD };
	fs->short_timeouts = (struct fs_timeouts){ .entry = 1.0,
						   .attr = 1.0,
						   .negative = 0.5 };
	fs->config.policy = policy_ref(config->policy);
	atomic_init(&fs->policy, policy_ref(config->policy));
	atomic_init(&fs->policy_gen, 2);
	if (config->passthrough)
		atomic_init(&fs->passing, geteuid() == 0 ? FS_PASSING_WANTED
							 : FS_PASSING_REFUSED);
	atomic_init(&fs->has_hide, fs_policy_hides(config->policy));
	pthread_mutex_init(&fs->swap_lock, NULL);
	(void)pthread_rwlock_init(&fs->moving, NULL);
	pthread_mutex_init(&fs->dev_lock, NULL);

	locks = (struct locks_config){ .invalidate = fs_lock_granted,
				       .data = fs };
	r = fs_owner_init(fs);
	if (r == 0)
		r = fs_inodes_init(fs, raise_fd_limit());
	if (r == 0)
		r = find_own_dirs(fs);
	if (r == 0)
		r = gitguard_new(&fs->guard);
	if (r == 0)
		r = locks_new(&locks, &fs->locks);
	if (r < 0)
		return errmsg_set(why, r, "cannot prepare the mount: %s",
				  strerror(-r));
	r = open_roots(fs, why);
	if (r < 0)
		return r;
	*ret_fs = take_ptr(&fs);
	return 0;
}

/* ---- serving ---- */

static void
wake(int signal)
{
	(void)signal;
}

static void *
session_main(void *data)
{
	struct fs *fs = data;

	fs_serve(fs, WAKE_SIGNAL);
	if (!atomic_load(&fs->stopping) && fs->config.ended)
		fs->config.ended(fs->config.data);
	return NULL;
}

static int
new_session(struct fs *fs, int fuse_fd)
{
	char *argv[] = { (char *)"pale", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	struct fuse_lowlevel_ops ops = operations;
	int r;

	if (fs->config.tree)
		tree_take_over(&ops);
	fs_echo_take_over(fs, &ops);
	fs->session = fuse_session_new(&args, &ops, sizeof(ops), fs);
	fuse_opt_free_args(&args);
	if (!fs->session)
		return -ENOMEM;
	r = fs_session_attach(fs, fuse_fd);
	if (r < 0) {
		fuse_session_destroy(fs->session);
		fs->session = NULL;
	}
	return r;
}

/*
 * The device of this very mount, as far as the kernel tells: where the mount
 * is visible to this process, a lookup must not come back to itself.
 */
static dev_t
own_device(int fuse_fd)
{
	_cleanup_(freep) char *text = NULL;
	const char *at;
	char path[64];
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fuse_fd);
	if (fd_read_path(AT_FDCWD, path, 4096, &text, &len) < 0)
		return 0;
	at = strstr(text, "fuse_connection:");
	return at ? makedev(0, strtoul(at + 16, NULL, 10)) : 0;
}

int
fs_start(struct fs *fs, int fuse_fd, struct errmsg *why)
{
	struct sigaction action = { .sa_handler = wake };
	int r;

	fs->own_device = fs->config.host_visible ? own_device(fuse_fd) : 0;
	if (sigaction(WAKE_SIGNAL, &action, NULL) < 0)
		r = -errno;
	else
		r = fs_echo_new(fs);
	if (r == 0)
		r = new_session(fs, fuse_fd);
	if (r < 0) {
		(void)close(fuse_fd);
		return errmsg_set(why, r, "cannot serve the mount: %s",
				  strerror(-r));
	}
	r = fs_notify_start(fs);
	if (r == 0)
		r = fs_watch_start(fs);
	if (r == 0)
		r = fs_serve_new(fs);
	if (r == 0)
		r = -pthread_create(&fs->thread, NULL, session_main, fs);
	if (r < 0)
		return errmsg_set(why, r, "cannot start a thread: %s",
				  strerror(-r));
	fs->running = true;
	atomic_fetch_add(&sessions, 1);
	return 0;
}

void
fs_stop(struct fs *fs)
{
	if (!fs || !fs->running)
		return;
	atomic_store(&fs->stopping, true);
	fuse_session_exit(fs->session);
	for (;;) {
		struct timespec deadline;

		fs_serve_wake(fs);
		(void)clock_gettime(CLOCK_REALTIME, &deadline);
		deadline.tv_nsec += 10000000;
		if (deadline.tv_nsec >= 1000000000) {
			deadline.tv_nsec -= 1000000000;
			deadline.tv_sec++;
		}
		if (pthread_timedjoin_np(fs->thread, NULL, &deadline) == 0)
			break;
	}
	fs->running = false;
	atomic_fetch_sub(&sessions, 1);
}

struct fs *
fs_free(struct fs *fs)
{
	if (!fs)
		return NULL;
	fs_stop(fs);
	/* Waiting lock requests are answered while there is a session. */
	fs->locks = locks_free(fs->locks);
	tree_leave(fs->config.tree, fs);
	fs_echo_stop(fs);
	fs_watch_stop(fs);
	fs_notify_stop(fs);
	if (fs->session)
		fuse_session_destroy(fs->session);
	fs_serve_free(fs);
	fs_echo_free(fs);
	fs_inodes_fini(fs);
	fs_backing_drain(fs, false);
	gitguard_free(fs->guard);
	policy_unref(atomic_load(&fs->policy));
	policy_unref(fs->config.policy);
	free(fs->own_dirs);
	free(fs->owner.groups);
	pthread_mutex_destroy(&fs->swap_lock);
	(void)pthread_rwlock_destroy(&fs->moving);
	pthread_mutex_destroy(&fs->dev_lock);
	free(fs);
	return NULL;
}

int
fs_mount_options(uid_t uid, gid_t gid, bool multi_uid, char *ret_options,
		 size_t size)
{
	int n = snprintf(ret_options, size,
			 "rootmode=40000,user_id=%u,group_id=%u%s", uid, gid,
			 multi_uid ? ",allow_other,default_permissions" : "");

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

void
fs_born_repositories(struct fs *fs, void (*each)(void *data, const char *path),
		     void *data)
{
	gitguard_born(fs->guard, each, data);
}

void
fs_stats(struct fs *fs, struct fs_stats *ret_stats)
{
	struct fs_stats stats = {
		.requests = atomic_load(&fs->requests),
	};

	for (size_t i = 0; i < FS_SHARDS; i++) {
		struct fs_shard *shard = &fs->shards[i];

		fs_shard_lock(shard);
		stats.inodes += shard->count;
		stats.open_fds += shard->n_fds;
		stats.inode_bytes +=
			shard->count * sizeof(struct fs_inode) +
			shard->n_buckets * sizeof(struct fs_inode *);
		fs_shard_unlock(shard);
	}
	stats.inode_bytes += fs_places_bytes(fs);
	fs_watch_stats(fs, &stats);
	stats.unheard = fs_echo_dropped(fs);
	*ret_stats = stats;
}
