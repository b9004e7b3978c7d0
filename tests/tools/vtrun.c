/* SPDX-License-Identifier: MIT */

/*
 * The screen model by hand.
 *
 *   vtrun [-s COLSxROWS] [-f text|screen|ansi|lines|cursor|replies] [-r COLSxROWS]… [FILE]
 *       feeds FILE (or standard input) and shows the screen
 *   vtrun -b [-s COLSxROWS]
 *       how fast it takes what terminals get, in MB a second of processor
 *   vtrun -m [-s COLSxROWS]
 *       how much memory an idle model takes
 */

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pty/vt.h"

#define BENCH_BYTES (32u << 20)
#define CHUNK	    65536

static unsigned int cols = 80, rows = 24;

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

static double
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
make_size(const char *text, unsigned int *ret_cols, unsigned int *ret_rows)
{
	char *end;

	*ret_cols = (unsigned int)strtoul(text, &end, 10);
	*ret_rows = *end ? (unsigned int)strtoul(end + 1, NULL, 10) : 0;
}

static struct vt *
make(const struct vt_ops *ops)
{
	struct vt *vt;

	if (vt_new(cols, rows, NULL, ops, NULL, &vt) < 0)
		die("vt_new");
	return vt;
}

/* ---- speed ---- */

static void
put_ascii(struct buf *out, unsigned int i)
{
	for (unsigned int x = 0; x < 79; x++) {
		char c = (char)('!' + (i + x) % 90);

		buf_put(out, &c, 1);
	}
	buf_puts(out, "\r\n");
}

static void
put_y(struct buf *out, unsigned int i)
{
	(void)i;
	buf_puts(out, "y\r\n");
}

static void
put_sgr(struct buf *out, unsigned int i)
{
	buf_putf(out, "\033[1;%um%s\033[0m \033[38;5;%umfile%u.c\033[m  ",
		 31 + i % 7, "drwxr-xr-x", i % 256, i % 1000);
	if (i % 3 == 2)
		buf_puts(out, "\r\n");
}

static void
put_wide(struct buf *out, unsigned int i)
{
	for (unsigned int x = 0; x < 30; x++) {
		unsigned int ch = 0x4e00 + (i * 31 + x) % 20000;
		unsigned char b[3] = { (unsigned char)(0xe0 | ch >> 12),
				       (unsigned char)(0x80 | (ch >> 6 & 63)),
				       (unsigned char)(0x80 | (ch & 63)) };

		buf_put(out, b, sizeof(b));
	}
	buf_puts(out, "\r\n");
}

static void
put_random(struct buf *out, unsigned int i)
{
	static uint64_t x = 88172645463325252ull;

	(void)i;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	buf_put(out, &x, sizeof(x));
}

static void
put_full_screen(struct buf *out, unsigned int i)
{
	buf_putf(out, "\033[%u;%uH\033[%um%u\033[K", 1 + i % rows,
		 1 + i * 7 % cols, 30 + i % 8, i);
}

static const struct {
	const char *name;
	void (*put)(struct buf *out, unsigned int i);
} loads[] = {
	{ "ascii", put_ascii },	  { "y", put_y },
	{ "sgr", put_sgr },	  { "wide", put_wide },
	{ "random", put_random }, { "screen", put_full_screen },
};

static void
bench(void)
{
	for (size_t l = 0; l < sizeof(loads) / sizeof(*loads); l++) {
		struct vt *vt = make(NULL);
		struct buf text = { 0 };
		double best = 0;

		for (unsigned int i = 0; text.len < (4u << 20); i++)
			loads[l].put(&text, i);
		for (int round = 0; round < 5; round++) {
			double start = now(), rate;
			size_t fed = 0;

			while (fed < BENCH_BYTES) {
				size_t at = fed % text.len;
				size_t n = text.len - at;

				n = n < CHUNK ? n : CHUNK;
				vt_feed(vt, text.data + at, n);
				fed += n;
			}
			rate = (double)fed / 1e6 / (now() - start);
			best = rate > best ? rate : best;
		}
		printf("%-8s %7.1f MB/s\n", loads[l].name, best);
		buf_fini(&text);
		(void)vt_free(vt);
	}
}

static void
memory(void)
{
	enum {
		COUNT = 1000
	};
	static struct vt *all[COUNT];
	struct mallinfo2 before = mallinfo2(), after;

	for (int i = 0; i < COUNT; i++) {
		all[i] = make(NULL);
		vt_feed(all[i], "$ ", 2);
	}
	after = mallinfo2();
	printf("%zu bytes a model\n", (after.uordblks + after.hblkhd -
				       before.uordblks - before.hblkhd) /
					      COUNT);
	for (int i = 0; i < COUNT; i++)
		(void)vt_free(all[i]);
}

/* ---- a screen ---- */

static void
on_reply(void *data, const void *bytes, size_t len)
{
	(void)data;
	(void)!write(STDERR_FILENO, bytes, len);
}

static void
show(const struct vt *vt, const char *format)
{
	struct vt_state state;
	struct buf out = { 0 };

	vt_state(vt, &state);
	if (strcmp(format, "cursor") == 0)
		buf_putf(&out, "%u %u\n", state.x, state.y);
	else if (strcmp(format, "lines") == 0)
		(void)vt_lines(vt, 0, 10000, &out);
	else if (strcmp(format, "ansi") == 0)
		vt_ansi(vt, 0, &out);
	else
		vt_text(vt, 0, &out);
	if (strcmp(format, "screen") == 0)
		buf_putf(&out, "%u %u\n", state.x, state.y);
	(void)!write(STDOUT_FILENO, out.data, out.len);
	buf_fini(&out);
}

int
main(int argc, char **argv)
{
	static const struct vt_ops ops = { .reply = on_reply };
	const char *format = "text", *sizes[64];
	unsigned int resizes = 0;
	char chunk[CHUNK];
	struct vt *vt;
	ssize_t n;
	int opt, fd = STDIN_FILENO;

	while ((opt = getopt(argc, argv, "bms:f:r:")) != -1) {
		switch (opt) {
		case 'b':
			bench();
			return 0;
		case 'm':
			memory();
			return 0;
		case 's':
			make_size(optarg, &cols, &rows);
			break;
		case 'f':
			format = optarg;
			break;
		case 'r':
			if (resizes < sizeof(sizes) / sizeof(*sizes))
				sizes[resizes++] = optarg;
			break;
		default:
			return 2;
		}
	}
	if (optind < argc)
		fd = open(argv[optind], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(argv[optind]);
	vt = make(strcmp(format, "replies") == 0 ? &ops : NULL);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		vt_feed(vt, chunk, (size_t)n);
	for (unsigned int i = 0; i < resizes; i++) {
		make_size(sizes[i], &cols, &rows);
		(void)vt_resize(vt, cols, rows);
	}
	show(vt, format);
	(void)vt_free(vt);
	return 0;
}
