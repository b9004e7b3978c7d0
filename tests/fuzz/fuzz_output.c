/* SPDX-License-Identifier: MIT */

/*
 * The reader of a job's output, whose directory anyone of the user may have
 * written in: the input is the order index and the name of a segment.  Whatever
 * they say, each reading goes forward or ends, and tells nothing that is not
 * there.
 */

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jobs/output.h"

#define OUT_BYTES 300
#define ERR_BYTES 200
#define READ_MAX  4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64];
static int dir_fd = -1;

static void
clean_up(void)
{
	char command[96];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command) != 0)
		abort();
}

static void
make_dir(void)
{
	(void)snprintf(dir, sizeof(dir), "/dev/shm/pale-fuzz-XXXXXX");
	if (!mkdtemp(dir))
		abort();
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)atexit(clean_up);
}

static void
put(const char *name, const void *bytes, size_t len)
{
	int fd = openat(dir_fd, name,
			O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			0600);

	if (fd < 0)
		return;
	if (write(fd, bytes, len) != (ssize_t)len)
		abort();
	(void)close(fd);
}

static void
read_all(struct output *output, enum output_stream stream)
{
	struct output_cursor cursor = { .stream = stream };
	uint64_t at = 0, end = output_end(output, stream);
	unsigned char bytes[READ_MAX];

	for (int i = 0; i < 100; i++) {
		struct segments_view view;

		if (output_read(output, &cursor, at, bytes, sizeof(bytes),
				&view) < 0)
			break;
		if (view.next < at || view.next > end ||
		    view.len > sizeof(bytes) ||
		    (view.reason != SEGMENTS_KEPT &&
		     view.lost_to <= view.lost_from))
			abort();
		if (view.next == at)
			break;
		at = view.next;
	}
	output_cursor_fini(&cursor);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct output *output = NULL;
	char name[32] = "stdout.";
	unsigned char bytes[OUT_BYTES];
	size_t name_len = 0;

	if (dir_fd < 0)
		make_dir();
	if (size < 1)
		return 0;
	/* A name of digits and dashes, as long as the first byte says. */
	name_len = data[0] % 20;
	if (size < 1 + name_len)
		return 0;
	for (size_t i = 0; i < name_len; i++)
		name[7 + i] = "0123456789-"[data[1 + i] % 11];
	name[7 + name_len] = '\0';
	memset(bytes, 'x', sizeof(bytes));
	put("stdout.000000000000000", bytes, OUT_BYTES);
	put("stderr.000000000000000", bytes, ERR_BYTES);
	put("index.000000000000000", data + 1 + name_len, size - 1 - name_len);
	put(name, bytes, 10);
	if (output_open(dir_fd, NULL, &output) == 0)
		for (int i = 0; i <= OUTPUT_BOTH; i++)
			read_all(output, (enum output_stream)i);
	output_free(output);
	(void)unlinkat(dir_fd, name, 0);
	return 0;
}
