/* SPDX-License-Identifier: MIT */

/*
 * The spool as a file: its birth, its lock, its end.
 *
 * The lock tells the living from the dead: a warden holds it for life, and
 * whoever imports an orphan takes it first.  That is sound only if no file is
 * ever found under its name without its owner's lock, so a new one is made,
 * filled and locked under another name and then linked.
 */

#include "policy/spool_priv.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/limits.h"

#define SPOOL_FILE "denials.spool"
#define SPOOL_NEW  "denials.spool.new"
#define SPOOL_BAD  "denials.spool.bad"

struct spool *
spool_free(struct spool *spool)
{
	if (!spool)
		return NULL;
	if (spool->header)
		(void)munmap(spool->header, SPOOL_HEADER + spool->capacity);
	closep(&spool->fd);
	closep(&spool->dirfd);
	free(spool);
	return NULL;
}

static int
allocate(int fd, const char *dir, struct errmsg *why)
{
	int flags = 0, r;

	/*
	 * Copy on write (btrfs) would need room again at every store, and a
	 * store into a mapping cannot fail but by SIGBUS.
	 */
	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
		flags |= FS_NOCOW_FL;
		(void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
	}
	r = -posix_fallocate(fd, 0, LIMIT_SPOOL_BYTES);
	if (r < 0)
		return errmsg_set(why, r,
				  "cannot reserve %u bytes for the record of "
				  "denials in '%s': %s",
				  LIMIT_SPOOL_BYTES, dir, strerror(-r));
	return 0;
}

static int
map(struct spool *spool, size_t len, int prot)
{
	void *bytes = mmap(NULL, len, prot, MAP_SHARED, spool->fd, 0);

	if (bytes == MAP_FAILED)
		return -errno;
	/* Else the first touch reads ahead: all of it, zeroed, for 1 ms. */
	(void)madvise(bytes, len, MADV_RANDOM);
	spool->header = bytes;
	spool->ring = (unsigned char *)bytes + SPOOL_HEADER;
	spool->capacity = len - SPOOL_HEADER;
	return 0;
}

static int
spool_new(const char *dir, struct spool **ret_spool, struct errmsg *why)
{
	_cleanup_(spool_freep) struct spool *spool = NULL;

	spool = calloc(1, sizeof(*spool));
	if (!spool)
		return errmsg_set(why, -ENOMEM, "out of memory");
	spool->fd = -1;
	spool->dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (spool->dirfd < 0)
		return errmsg_set(why, -errno, "cannot open '%s': %s", dir,
				  strerror(errno));
	*ret_spool = take_ptr(&spool);
	return 0;
}

/* A name that stands in the way: is its owner alive? */
static int
judge_existing(int dirfd, const char *dir, struct errmsg *why)
{
	_cleanup_(closep) int fd = -1;

	fd = openat(dirfd, SPOOL_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errmsg_set(why, -EBUSY,
				  "the record of denials in '%s' is in use",
				  dir);
	return errmsg_set(why, -EEXIST,
			  "'%s/" SPOOL_FILE "' is left from an earlier world",
			  dir);
}

static int
publish_file(const struct spool *spool, const char *dir, struct errmsg *why)
{
	int r = 0;

	/* link, not rename: it refuses to replace one that is there. */
	if (linkat(spool->dirfd, SPOOL_NEW, spool->dirfd, SPOOL_FILE, 0) < 0)
		r = errno == EEXIST
			    ? judge_existing(spool->dirfd, dir, why)
			    : errmsg_set(why, -errno,
					 "cannot make '%s/" SPOOL_FILE "': %s",
					 dir, strerror(errno));
	(void)unlinkat(spool->dirfd, SPOOL_NEW, 0);
	return r;
}

static int
fill_header(struct spool_header *header, const char *session, const char *world)
{
	assert(header);
	header->size = LIMIT_SPOOL_BYTES;
	(void)snprintf(header->world, sizeof(header->world), "%s", world);
	(void)snprintf(header->session, sizeof(header->session), "%s", session);
	if (getrandom(&header->key, sizeof(header->key), 0) !=
	    sizeof(header->key))
		return -EIO;
	header->magic = SPOOL_MAGIC;
	return 0;
}

int
spool_create(const char *dir, const char *session, const char *world,
	     struct spool **ret_spool, struct errmsg *why)
{
	_cleanup_(spool_freep) struct spool *spool = NULL;
	int r;

	if (strlen(session) >= SPOOL_NAME_MAX ||
	    strlen(world) >= SPOOL_NAME_MAX || !session[0] || !world[0])
		return errmsg_set(why, -EINVAL,
				  "the name of a session or world must have "
				  "1 to %u bytes",
				  SPOOL_NAME_MAX - 1);
	r = spool_new(dir, &spool, why);
	if (r < 0)
		return r;

	(void)unlinkat(spool->dirfd, SPOOL_NEW, 0);
	spool->fd = openat(spool->dirfd, SPOOL_NEW,
			   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (spool->fd < 0)
		return errmsg_set(why, -errno, "cannot make '%s/%s': %s", dir,
				  SPOOL_NEW, strerror(errno));
	r = allocate(spool->fd, dir, why);
	if (r < 0)
		goto undo_file;
	r = map(spool, LIMIT_SPOOL_BYTES, PROT_READ | PROT_WRITE);
	if (r == 0)
		r = fill_header(spool->header, session, world);
	if (r == 0 && flock(spool->fd, LOCK_EX | LOCK_NB) < 0)
		r = -errno;
	if (r < 0) {
		(void)errmsg_set(why, r, "cannot set up '%s/%s': %s", dir,
				 SPOOL_NEW, strerror(-r));
		goto undo_file;
	}
	r = publish_file(spool, dir, why);
	if (r < 0)
		return r;
	*ret_spool = take_ptr(&spool);
	return 0;

undo_file:
	(void)unlinkat(spool->dirfd, SPOOL_NEW, 0);
	return r;
}

int
spool_open_orphan(const char *dir, struct spool **ret_spool, struct errmsg *why)
{
	_cleanup_(spool_freep) struct spool *spool = NULL;
	struct spool view;
	struct stat st, named;
	int r;

	r = spool_new(dir, &spool, why);
	if (r < 0)
		return r;
	spool->fd = openat(spool->dirfd, SPOOL_FILE,
			   O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (spool->fd < 0)
		return errmsg_set(why, -errno, "cannot open '%s/%s': %s", dir,
				  SPOOL_FILE, strerror(errno));
	if (flock(spool->fd, LOCK_EX | LOCK_NB) < 0)
		return errmsg_set(why, errno == EWOULDBLOCK ? -EBUSY : -errno,
				  "the record of denials in '%s' is in use",
				  dir);
	if (fstat(spool->fd, &st) < 0)
		return errmsg_set(why, -errno, "cannot look at '%s/%s': %s",
				  dir, SPOOL_FILE, strerror(errno));
	/* Another importer was faster: what is locked here has no name now. */
	if (fstatat(spool->dirfd, SPOOL_FILE, &named, AT_SYMLINK_NOFOLLOW) <
		    0 ||
	    named.st_ino != st.st_ino || named.st_dev != st.st_dev)
		return -ENOENT;
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)SPOOL_HEADER + 1024 ||
	    st.st_size > (off_t)LIMIT_SPOOL_BYTES * 16)
		return errmsg_set(why, -EBADMSG, "'%s/%s' is damaged", dir,
				  SPOOL_FILE);
	r = map(spool, (size_t)st.st_size, PROT_READ);
	if (r < 0)
		return errmsg_set(why, r, "cannot map '%s/%s': %s", dir,
				  SPOOL_FILE, strerror(-r));
	r = spool_view(spool->header, (size_t)st.st_size, &view);
	if (r < 0)
		return errmsg_set(why, r, "'%s/%s' is damaged", dir,
				  SPOOL_FILE);
	*ret_spool = take_ptr(&spool);
	return 0;
}

void
spool_unlink(struct spool *spool)
{
	(void)unlinkat(spool->dirfd, SPOOL_FILE, 0);
}

void
spool_put_aside(const char *dir)
{
	_cleanup_(closep) int dirfd =
		open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dirfd >= 0)
		(void)renameat(dirfd, SPOOL_FILE, dirfd, SPOOL_BAD);
}
