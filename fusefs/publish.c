/* SPDX-License-Identifier: MIT */

/*
 * One attempt is: lock the directory, look, judge, then make, exchange or fill.
 * -EAGAIN from it means that somebody was quicker and nothing has been changed:
 * the next attempt sees what he did, and refuses where a version was expected.
 */

#include "fusefs/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "fusefs/journal.h"
#include "fusefs/target.h"
#include "fusefs/temp.h"

#define ATTEMPTS  50
#define LEASE_NS  100000000LL
#define FILL_PART (256u << 10)

/*
 * Who has looked the old file up may not have asked for it yet when the lease
 * is looked at for the last time.
 */
#define GRACE_US 1000

/* One attempt at a file that is there. */
struct attempt {
	const struct publish_request *request;
	const struct target *target;
	int dirfd; /* locked */
	int old;   /* open for reading */
	struct stat st;
	bool leased;
	char *data; /* owned; what was read, for an edit */
	struct publish_old before, after;
	struct version version; /* of what is there */
};

void
publish_point(const char *place)
{
	const char *wanted = getenv("PALE_STOP_AT");

	if (wanted && strstr(wanted, place))
		(void)raise(SIGSTOP);
}

static void
attempt_fini(struct attempt *attempt)
{
	closep(&attempt->old);
	free(attempt->data);
}

static int
stale(struct fsfail *fail, const char *path, const char *reason,
      const char *what)
{
	fail->reason = reason;
	return fsfail_set(fail, FSFAIL_STALE_VERSION,
			  "'%s' %s; re-read the file, then retry", path, what);
}

/* ---- leases ---- */

/* 1: granted; 0: this file cannot have one; -EAGAIN: somebody is in the way. */
static int
lease_take(int fd, int kind)
{
	int64_t until = clock_mono_ns() + LEASE_NS;

	while (fcntl(fd, F_SETLEASE, kind) < 0) {
		if (errno == EACCES || errno == EPERM || errno == EINVAL ||
		    errno == EOPNOTSUPP || errno == ENOLCK)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (clock_mono_ns() > until)
			return -EAGAIN;
		(void)usleep(500);
	}
	return 1;
}

/* Nobody waits for it to be let go. */
static bool
lease_is_whole(const struct attempt *attempt)
{
	return !attempt->leased || fcntl(attempt->old, F_GETLEASE) == F_RDLCK;
}

static int
open_for_write(struct fsfail *fail, const char *path)
{
	return stale(fail, path, "open_for_write",
		     "is open for writing in another program");
}

/* ---- what is there ---- */

static int
read_old(struct attempt *attempt, bool whole, struct fsfail *fail)
{
	const char *path = attempt->request->path;
	size_t len = 0;
	int r;

	if (whole) {
		r = fd_read_file(attempt->old, PUBLISH_MAX, &attempt->data,
				 &len);
		if (r == -EFBIG)
			return fsfail_set(fail, FSFAIL_TOO_LARGE,
					  "'%s' is larger than 16 MiB; change "
					  "it with a program instead",
					  path);
		if (r == 0)
			version_of_bytes(attempt->data, len, &attempt->version);
		attempt->before = (struct publish_old){ attempt->data, len };
	} else {
		r = version_of_fd(attempt->old, &attempt->version);
	}
	return r < 0 ? fsfail_errno(fail, r, "read", path) : 0;
}

static int
check_expected(const struct attempt *attempt, struct fsfail *fail)
{
	const char *expect = attempt->request->expect;

	fail->version = attempt->version;
	if (!expect || strcmp(expect, attempt->version.text) == 0)
		return 0;
	return stale(fail, attempt->request->path, "changed",
		     "has changed since that version");
}

/* ---- a file that is not there ---- */

static int
create(const struct publish_request *request, const struct target *target,
       int dirfd, struct publish_result *ret_result, struct fsfail *fail)
{
	const struct journal_about about = { .dir = request->journals,
					     .parent = target->parent,
					     .name = target->name,
					     .dirfd = dirfd };
	_cleanup_(journal_end) struct journal journal = JOURNAL_NONE;
	_cleanup_(temp_fini) struct temp temp = TEMP_NONE;
	const struct publish_old nothing = { NULL, 0 };
	struct journal_about with_temp = about;
	struct publish_old new = { NULL, 0 };
	int r;

	r = request->make(request->data, &nothing, &new, fail);
	if (r < 0)
		return r;
	r = temp_init(dirfd, &temp);
	with_temp.temp = temp.name;
	if (r == 0)
		r = journal_begin(&with_temp, &journal);
	publish_point("create-begun");
	if (r == 0)
		r = temp_make(&temp, 0666, new.data, new.len);
	publish_point("create-made");
	if (r == 0)
		r = temp_link(&temp, target->name);
	publish_point("create-linked");
	if (r == -EEXIST)
		return -EAGAIN;
	if (r < 0)
		return fsfail_errno(fail, r, "write", request->path);
	version_of_bytes(new.data, new.len, &ret_result->version);
	ret_result->created = true;
	ret_result->size = new.len;
	return 0;
}

/* ---- a file that changes places ---- */

/* What came out is not what was verified, or somebody waits for it. */
static int
take_back(struct attempt *attempt, struct temp *temp, struct journal *journal,
	  const struct stat *mine)
{
	int r = journal_put_back(attempt->dirfd, temp->name,
				 attempt->target->name, mine);

	temp->named = false;
	/* The journal stays, for who can do better. */
	if (r < 0) {
		closep(&journal->fd);
		journal->fd = -1;
	}
	return r;
}

static int
exchange(struct attempt *attempt, struct temp *temp, struct journal *journal,
	 struct fsfail *fail)
{
	const char *name = attempt->target->name;
	struct version again;
	struct stat mine, out;
	int r;

	if (fstat(temp->fd, &mine) < 0)
		return -errno;
	r = journal_say(journal, JOURNAL_EXCHANGING, &attempt->st, &mine);
	if (r == 0)
		r = temp_name(temp);
	publish_point("replace-named");
	if (r < 0)
		return r;
	if (!lease_is_whole(attempt))
		return open_for_write(fail, attempt->request->path);
	if (renameat2(attempt->dirfd, temp->name, attempt->dirfd, name,
		      RENAME_EXCHANGE) < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	publish_point("replace-exchanged");

	if (fstatat(attempt->dirfd, temp->name, &out, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (out.st_ino != attempt->st.st_ino ||
	    out.st_dev != attempt->st.st_dev) {
		r = take_back(attempt, temp, journal, &mine);
		return r < 0 ? r : -EAGAIN;
	}
	/* Without a lease only the bytes themselves can tell. */
	if (!attempt->leased &&
	    (version_of_fd(attempt->old, &again) < 0 ||
	     strcmp(again.text, attempt->version.text) != 0)) {
		r = take_back(attempt, temp, journal, &mine);
		return r < 0 ? r : -EAGAIN;
	}
	if (lease_is_whole(attempt))
		(void)usleep(GRACE_US);
	if (!lease_is_whole(attempt)) {
		r = take_back(attempt, temp, journal, &mine);
		return r < 0 ? r : open_for_write(fail, attempt->request->path);
	}
	publish_point("replace-verified");
	return 0;
}

/* ---- a file that is filled in place ---- */

static int
put_bytes(int fd, const struct publish_old *bytes)
{
	size_t done = 0;
	ssize_t n;

	while (done < bytes->len) {
		size_t part = bytes->len - done;

		part = part < FILL_PART ? part : FILL_PART;
		n = pwrite(fd, bytes->data + done, part, (off_t)done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
		publish_point("fill-part");
	}
	return ftruncate(fd, (off_t)bytes->len) < 0 ? -errno : 0;
}

/* Alone with the file, and it is still what was verified. */
static int
take_alone(const struct attempt *attempt, int fd, struct fsfail *fail)
{
	struct flock lock = { .l_type = F_WRLCK,
			      .l_start = INT64_C(1) << 62,
			      .l_len = 1 };
	struct version again;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_ino != attempt->st.st_ino || st.st_dev != attempt->st.st_dev)
		return -EAGAIN;
	r = lease_take(fd, F_WRLCK);
	if (r == -EAGAIN)
		return open_for_write(fail, attempt->request->path);
	/* Where there are no leases, others who come this way are kept out. */
	if (r == 0 && fcntl(fd, F_OFD_SETLK, &lock) < 0 &&
	    (errno == EAGAIN || errno == EACCES))
		return -EAGAIN;
	r = version_of_fd(fd, &again);
	if (r < 0)
		return r;
	return strcmp(again.text, attempt->version.text) == 0 ? 0 : -EAGAIN;
}

static int
fill(struct attempt *attempt, struct temp *temp, struct journal *journal,
     struct fsfail *fail)
{
	_cleanup_(closep) int fd = -1;
	struct stat mine;
	int r;

	/* Our own lease and descriptor would be in the way. */
	closep(&attempt->old);
	attempt->old = -1;
	fd = openat(attempt->dirfd, attempt->target->name,
		    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == EWOULDBLOCK || errno == ENOENT ? -EAGAIN
							       : -errno;
	r = take_alone(attempt, fd, fail);
	if (r < 0)
		return r;
	if (attempt->after.len > attempt->before.len &&
	    fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)attempt->after.len) <
		    0 &&
	    errno != EOPNOTSUPP)
		return -errno;
	if (fstat(temp->fd, &mine) < 0)
		return -errno;
	r = temp_name(temp);
	if (r == 0)
		r = journal_say(journal, JOURNAL_FILLING, &attempt->st, &mine);
	publish_point("fill-named");
	if (r < 0)
		return r;
	r = put_bytes(fd, &attempt->after);
	if (r < 0 && put_bytes(fd, &attempt->before) < 0) {
		/* The journal stays: it has the new bytes. */
		temp->named = false;
		closep(&journal->fd);
		journal->fd = -1;
	}
	publish_point("fill-filled");
	return r;
}

/* ---- either ---- */

/* A new file can be made the same as the old one but for its bytes. */
static int
dress(struct attempt *attempt, const struct temp *temp, bool *ret_same)
{
	int r;

	*ret_same = false;
	if (attempt->st.st_nlink > 1)
		return 0;
	r = temp_dress(temp, attempt->old, &attempt->st);
	*ret_same = r == 0;
	return r == -EPERM || r == -EACCES ? 0 : r;
}

static int
replace(struct attempt *attempt, struct fsfail *fail)
{
	const struct publish_request *request = attempt->request;
	struct journal_about about = { .dir = request->journals,
				       .parent = attempt->target->parent,
				       .name = attempt->target->name,
				       .dirfd = attempt->dirfd };
	_cleanup_(journal_end) struct journal journal = JOURNAL_NONE;
	_cleanup_(temp_fini) struct temp temp = TEMP_NONE;
	bool same = false;
	int r;

	r = temp_init(attempt->dirfd, &temp);
	about.temp = temp.name;
	if (r == 0)
		r = journal_begin(&about, &journal);
	publish_point("replace-begun");
	if (r == 0)
		r = temp_make(&temp, 0600, attempt->after.data,
			      attempt->after.len);
	publish_point("replace-made");
	if (r == 0)
		r = dress(attempt, &temp, &same);
	if (r == 0 && !same && !attempt->data)
		r = read_old(attempt, true, fail);
	if (r < 0)
		return r;
	return same ? exchange(attempt, &temp, &journal, fail)
		    : fill(attempt, &temp, &journal, fail);
}

static int
change(struct attempt *attempt, struct publish_result *ret_result,
       struct fsfail *fail)
{
	const struct publish_request *request = attempt->request;
	struct version wanted;
	int r;

	if (faccessat(attempt->dirfd, attempt->target->name, W_OK, AT_EACCESS) <
	    0)
		return fsfail_errno(fail, -errno, "write", request->path);
	r = lease_take(attempt->old, F_RDLCK);
	if (r == -EAGAIN)
		return open_for_write(fail, request->path);
	if (r < 0)
		return fsfail_errno(fail, r, "guard", request->path);
	attempt->leased = r > 0;
	r = read_old(attempt, request->is_edit, fail);
	if (r == 0)
		r = check_expected(attempt, fail);
	if (r == 0)
		r = request->make(request->data, &attempt->before,
				  &attempt->after, fail);
	if (r < 0)
		return r;

	version_of_bytes(attempt->after.data, attempt->after.len, &wanted);
	if (strcmp(wanted.text, attempt->version.text) != 0)
		r = replace(attempt, fail);
	if (r < 0)
		return r == -EAGAIN || fail->code
			       ? r
			       : fsfail_errno(fail, r, "write", request->path);
	ret_result->version = wanted;
	ret_result->size = attempt->after.len;
	return 0;
}

static int
nothing_there(const struct publish_request *request, struct fsfail *fail)
{
	if (request->expect && strcmp(request->expect, VERSION_ABSENT) != 0) {
		fail->reason = "deleted";
		return fsfail_set(fail, FSFAIL_STALE_VERSION,
				  "'%s' is not there any more; look where it "
				  "went, or write it with --expect absent",
				  request->path);
	}
	if (request->is_edit)
		return fsfail_set(fail, FSFAIL_NOT_FOUND,
				  "'%s' is not there; pale fs write makes it",
				  request->path);
	return 0;
}

static int
open_locked(const struct target *target, int *ret_dirfd, struct fsfail *fail)
{
	int r;

	*ret_dirfd =
		openat(target->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_dirfd < 0)
		return fsfail_errno(fail, -errno, "open the directory of",
				    target->path);
	r = temp_lock(*ret_dirfd);
	if (r == -EBUSY)
		return stale(fail, target->path, "locked",
			     "is in a directory that another editor holds");
	return r < 0 ? fsfail_errno(fail, r, "lock the directory of",
				    target->path)
		     : 0;
}

static int
try_once(const struct publish_request *request, struct target *target,
	 struct publish_result *ret_result, struct fsfail *fail)
{
	_cleanup_(closep) int dirfd = -1;
	_cleanup_(attempt_fini) struct attempt attempt = { .request = request,
							   .target = target,
							   .old = -1 };
	int r;

	r = open_locked(target, &dirfd, fail);
	if (r < 0)
		return r;
	publish_point("locked");
	attempt.dirfd = dirfd;
	r = target_open_file(target, &attempt.old, &attempt.st, fail);
	if (r == 0) {
		if (request->expect &&
		    strcmp(request->expect, VERSION_ABSENT) == 0)
			return fsfail_set(
				fail, FSFAIL_EXISTS,
				"'%s' is there already; read it first, and "
				"name its version",
				request->path);
		r = fsfail_judge(fail, request->policy, POLICY_OP_OPEN_WRITE,
				 request->path);
		return r < 0 ? r : change(&attempt, ret_result, fail);
	}
	if (r != -ENOENT || fail->code)
		return r;
	r = nothing_there(request, fail);
	if (r == 0)
		r = fsfail_judge(fail, request->policy, POLICY_OP_CREATE,
				 request->path);
	return r < 0 ? r : create(request, target, dirfd, ret_result, fail);
}

/* What has no parent yet. */
static int
make_way(const struct publish_request *request, struct target *target,
	 struct fsfail *fail)
{
	int r = nothing_there(request, fail);

	if (r == 0)
		r = fsfail_judge(fail, request->policy, POLICY_OP_CREATE,
				 request->path);
	if (r < 0)
		return r;
	if (!request->make_parents)
		return fsfail_set(fail, FSFAIL_NOT_FOUND,
				  "'%s' is not there; --mkdir makes it",
				  target->parent);
	return target_make_parents(target, fail);
}

int
publish(const struct publish_request *request,
	struct publish_result *ret_result, struct fsfail *fail)
{
	_cleanup_(target_fini) struct target target = TARGET_NONE;
	struct publish_result result = { .created = false };
	bool missing = false;
	int r;

	/* A hidden name is refused as the mutation that it would be. */
	if (fsfail_judge_look(fail, request->policy, request->path, false) <
	    0) {
		r = fsfail_judge(fail, request->policy, POLICY_OP_CREATE,
				 request->path);
		return r < 0 ? r : -EACCES;
	}
	r = target_open(request->policy, request->path, &target, &missing,
			fail);
	if (r == 0 && missing)
		r = make_way(request, &target, fail);
	if (r < 0)
		return r;
	r = -EAGAIN;
	for (int i = 0; r == -EAGAIN && i < ATTEMPTS; i++) {
		fail->code = FSFAIL_NONE;
		r = try_once(request, &target, &result, fail);
	}
	if (r == -EAGAIN)
		return stale(fail, request->path, "changed",
			     "changes all the time");
	if (r == 0)
		*ret_result = result;
	return r;
}
