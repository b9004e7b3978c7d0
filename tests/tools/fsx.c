/* SPDX-License-Identifier: MIT */

/*
 * One file against the obvious model, a buffer: every way to change or read a
 * range, in any order, through one name, several handles and a mapping.
 *
 *	fsx FILE OPERATIONS SEED
 *
 * Exits 0 when every byte read and every size was right; else says which
 * operation saw what.
 */

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE_MAX_BYTES ((size_t)256 * 1024)
#define RANGE_MAX      ((size_t)64 * 1024)

static unsigned char model[SIZE_MAX_BYTES];
static unsigned char bytes[RANGE_MAX];
static size_t size;
static unsigned int seed;
static int fd = -1;
static const char *path;
static long step;

static size_t
pick(size_t n)
{
	return n == 0 ? 0 : (size_t)rand_r(&seed) % n;
}

static void
wrong(const char *what, size_t at)
{
	errx(1, "step %ld: %s at %zu, size %zu", step, what, at, size);
}

/* The model after bytes [at, at + len) were written. */
static void
model_write(size_t at, size_t len)
{
	if (at > size)
		memset(model + size, 0, at - size);
	memcpy(model + at, bytes, len);
	if (at + len > size)
		size = at + len;
}

static void
model_resize(size_t to)
{
	if (to > size)
		memset(model + size, 0, to - size);
	size = to;
}

static void
check_bytes(const unsigned char *seen, size_t at, size_t len, const char *what)
{
	for (size_t i = 0; i < len; i++)
		if (seen[i] != model[at + i])
			wrong(what, at + i);
}

static void
fill(size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)rand_r(&seed);
}

static void
reopen(int flags)
{
	if (fd >= 0 && close(fd) < 0)
		err(1, "close");
	fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
	if (fd < 0)
		err(1, "%s", path);
}

static void
do_write(size_t at, size_t len)
{
	fill(len);
	if (pwrite(fd, bytes, len, (off_t)at) != (ssize_t)len)
		err(1, "step %ld: pwrite", step);
	model_write(at, len);
}

static void
do_append(size_t len)
{
	int other = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (size + len > SIZE_MAX_BYTES)
		len = SIZE_MAX_BYTES - size;
	fill(len);
	if (other < 0 || write(other, bytes, len) != (ssize_t)len)
		err(1, "step %ld: append", step);
	(void)close(other);
	model_write(size, len);
}

static void
do_read(size_t at, size_t len)
{
	static unsigned char seen[RANGE_MAX];
	size_t want = at >= size ? 0 : size - at < len ? size - at : len;
	ssize_t n = pread(fd, seen, len, (off_t)at);

	if (n != (ssize_t)want)
		wrong("short or long read", at);
	check_bytes(seen, at, want, "read");
}

static void
do_truncate(size_t to)
{
	if ((pick(2) ? ftruncate(fd, (off_t)to) : truncate(path, (off_t)to)) <
	    0)
		err(1, "step %ld: truncate", step);
	model_resize(to);
}

static void
do_map(size_t at, size_t len, int writing)
{
	unsigned char *map;

	if (at >= size)
		return;
	if (at + len > size)
		len = size - at;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		err(1, "step %ld: mmap", step);
	check_bytes(map + at, at, len, "map");
	if (writing) {
		fill(len);
		memcpy(map + at, bytes, len);
		model_write(at, len);
		if (pick(2) && msync(map, size, MS_SYNC) < 0)
			err(1, "step %ld: msync", step);
	}
	(void)munmap(map, size);
}

static void
do_fallocate(int mode, size_t at, size_t len)
{
	if (fallocate(fd, mode, (off_t)at, (off_t)len) < 0) {
		if (errno == EOPNOTSUPP)
			return;
		err(1, "step %ld: fallocate %d", step, mode);
	}
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		for (size_t i = at; i < at + len && i < size; i++)
			model[i] = 0;
	if (!(mode & FALLOC_FL_KEEP_SIZE) && at + len > size)
		model_resize(at + len);
}

static void
do_copy(size_t from, size_t to, size_t len)
{
	off_t in = (off_t)from, out = (off_t)to;
	ssize_t n;

	/* Ranges of one file must not overlap. */
	if (from < to ? from + len > to : to + len > from)
		return;
	n = copy_file_range(fd, &in, fd, &out, len, 0);
	if (n < 0)
		err(1, "step %ld: copy_file_range", step);
	memcpy(bytes, model + from, (size_t)n);
	if (n > 0)
		model_write(to, (size_t)n);
}

static void
check_all(void)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || (size_t)st.st_size != size)
		wrong("fstat: another size", (size_t)st.st_size);
	for (size_t at = 0; at < size; at += RANGE_MAX)
		do_read(at, RANGE_MAX);
}

static void
one_step(void)
{
	size_t at = pick(SIZE_MAX_BYTES - 1);
	size_t len = 1 + pick(RANGE_MAX - 1);

	if (pick(3) == 0)
		len = 1 + pick(300);
	if (at + len > SIZE_MAX_BYTES)
		len = SIZE_MAX_BYTES - at;
	switch (pick(14)) {
	case 0:
	case 1:
	case 2:
		do_write(at, len);
		break;
	case 3:
	case 4:
		do_read(at, len);
		break;
	case 5:
		do_truncate(at);
		break;
	case 6:
		do_append(1 + pick(1000));
		break;
	case 7:
		do_map(at, len, 0);
		break;
	case 8:
		do_map(at, len, 1);
		break;
	case 9:
		do_fallocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
			     len);
		break;
	case 10:
		do_fallocate(FALLOC_FL_ZERO_RANGE, at, len);
		break;
	case 11:
		do_fallocate(pick(2) ? FALLOC_FL_KEEP_SIZE : 0, at, len);
		break;
	case 12:
		do_copy(pick(size + 1), at, len);
		break;
	default:
		reopen(pick(8) == 0 ? O_DIRECT : 0);
		reopen(0);
		break;
	}
}

int
main(int argc, char **argv)
{
	long steps;

	if (argc != 4)
		errx(2, "usage: fsx FILE OPERATIONS SEED");
	path = argv[1];
	steps = strtol(argv[2], NULL, 10);
	seed = (unsigned int)strtoul(argv[3], NULL, 10);
	reopen(O_CREAT | O_EXCL);
	for (step = 0; step < steps; step++) {
		one_step();
		if (step % 50 == 0)
			check_all();
	}
	check_all();
	return 0;
}
