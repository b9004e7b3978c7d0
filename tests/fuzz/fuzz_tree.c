/* SPDX-License-Identifier: MIT */

/*
 * The control tree: orders to a job, and requests in any order, of any shape,
 * about nodes and open files that there may or may not be.
 *
 *	'c' BYTES		what is written to `ctl`
 *	'r' (OP ROW ITEM FILE ARGUMENT LEN BYTES)...	requests
 */

#include "jobs/orders.h"
#include "tests/unit/small_tree.h"

#define FILES 8

static struct small_tree small;
static struct {
	uint64_t node, fh;
} files[FILES];

static void
fuzz_orders(const uint8_t *data, size_t size)
{
	struct job_order orders[JOB_ORDERS_MAX];
	const char *wrong = NULL;
	size_t n = 0;
	int r = job_orders_parse((const char *)data, size, orders, &n, &wrong);

	if (r == 0 ? n > JOB_ORDERS_MAX : wrong == NULL)
		abort();
	for (size_t i = 0; i < n; i++)
		if (orders[i].signal < 1 || orders[i].signal > 64)
			abort();
}

struct step {
	uint8_t op, row, item, file, argument;
	char text[256];
	uint8_t len;
};

/* The kernel knows of an open file until it has closed it. */
static void
open_one(const struct step *step, uint64_t node)
{
	struct fuse_open_in in = { .flags = step->argument & O_ACCMODE };
	bool dir = step->op == 1;
	struct fuse_open_out out;

	if (files[step->file].node ||
	    small_ask(&small, dir ? FUSE_OPENDIR : FUSE_OPEN, node, &in,
		      sizeof(in), NULL, 0) != 0)
		return;
	memcpy(&out, small.body, sizeof(out));
	files[step->file].node = node;
	files[step->file].fh = out.fh;
}

static bool
is_dir(uint64_t node)
{
	return tree_is_dir(&small_rows[tree_node_of(node).row]);
}

static void
use_one(const struct step *step)
{
	uint64_t node = files[step->file].node, fh = files[step->file].fh;
	const struct fuse_read_in read = { .fh = fh,
					   .offset = step->argument,
					   .size = step->len * 16u,
					   .flags = step->argument & 64
							    ? O_NONBLOCK
							    : 0 };
	const struct fuse_write_in write = { .fh = fh, .size = step->len };
	const struct fuse_lseek_in seek = { .fh = fh,
					    .offset = step->argument,
					    .whence = step->len & 1
							      ? SEEK_DATA
							      : SEEK_HOLE };
	const struct fuse_poll_in poll = { .fh = fh, .flags = step->len & 1 };
	const struct fuse_release_in release = { .fh = fh };

	if (!node)
		return;
	if (step->op == 7) {
		files[step->file].node = 0;
		(void)small_ask(&small,
				is_dir(node) ? FUSE_RELEASEDIR : FUSE_RELEASE,
				node, &release, sizeof(release), NULL, 0);
	} else if (is_dir(node)) {
		(void)small_ask(&small, FUSE_READDIR, node, &read, sizeof(read),
				NULL, 0);
	} else if (step->op == 3) {
		(void)small_ask(&small, FUSE_READ, node, &read, sizeof(read),
				NULL, 0);
	} else if (step->op == 4) {
		(void)small_ask(&small, FUSE_WRITE, node, &write, sizeof(write),
				step->text, step->len);
	} else if (step->op == 5) {
		(void)small_ask(&small, FUSE_LSEEK, node, &seek, sizeof(seek),
				NULL, 0);
	} else {
		(void)small_ask(&small, FUSE_POLL, node, &poll, sizeof(poll),
				NULL, 0);
	}
}

static void
change(const struct step *step)
{
	const struct fuse_interrupt_in interrupt = { .unique = small.unique -
							       step->argument };

	if (step->len == 0 && small.out_len < sizeof(small.out))
		small.out[small.out_len++] = 'x';
	if (step->len == 1)
		small.ended = !small.ended;
	if (step->len == 2)
		small.pending = !small.pending;
	if (step->len == 3)
		small.hole_to = small.hole_from + step->argument;
	if (step->len == 4)
		small.hole_from = step->argument;
	small.room = step->argument;
	if (step->len & 1)
		tree_changed(small.tree,
			     (struct tree_node){ .row = step->row % SMALL_ROWS,
						 .item = step->item });
	else
		(void)small_ask(&small, FUSE_INTERRUPT, 0, &interrupt,
				sizeof(interrupt), NULL, 0);
}

static void
do_step(const struct step *step)
{
	uint64_t node = small_node(step->row, step->item);
	const struct fuse_getattr_in getattr = { 0 };
	const struct fuse_setattr_in setattr = { .valid = step->argument };
	uint32_t name_op = step->argument & 1 ? FUSE_RMDIR : FUSE_LOOKUP;

	switch (step->op) {
	case 0:
	case 1:
		open_one(step, node);
		break;
	case 2:
		(void)small_ask(&small, name_op, node, step->text,
				strlen(step->text) + 1, NULL, 0);
		break;
	case 8:
		(void)small_ask(&small, FUSE_GETATTR, node, &getattr,
				sizeof(getattr), NULL, 0);
		break;
	case 9:
		(void)small_ask(&small, FUSE_SETATTR, node, &setattr,
				sizeof(setattr), NULL, 0);
		break;
	case 10:
		change(step);
		break;
	default:
		use_one(step);
	}
}

static void
fuzz_requests(const uint8_t *data, size_t size)
{
	memset(files, 0, sizeof(files));
	small_start(&small);
	while (size >= 6) {
		struct step step = { .op = data[0] % 11,
				     .row = data[1] % (SMALL_ROWS + 1),
				     .item = data[2] % 4,
				     .file = data[3] % FILES,
				     .argument = data[4],
				     .len = data[5] };

		data += 6;
		size -= 6;
		if (step.len > size)
			step.len = (uint8_t)size;
		memcpy(step.text, data, step.len);
		data += step.len;
		size -= step.len;
		/* Of a directory nothing but its list can be asked. */
		if (step.row < SMALL_ROWS &&
		    tree_is_dir(&small_rows[step.row]) != (step.op == 1) &&
		    step.op < 2)
			continue;
		do_step(&step);
	}
	small_end(&small);
}

/* It keeps an interrupt that came too late. */
const char *__lsan_default_suppressions(void);

const char *
__lsan_default_suppressions(void)
{
	return "leak:libfuse3.so\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] == 'c')
		fuzz_orders(data + 1, size - 1);
	else
		fuzz_requests(data + 1, size - 1);
	return 0;
}
