/* SPDX-License-Identifier: MIT */

#include "warden/jobs_row.h"

#include <string.h>

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz0123456789+/";

void
jobs_put_base64(struct buf *out, const unsigned char *bytes, size_t len)
{
	char group[4];

	buf_puts(out, "\"");
	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t bits = (uint32_t)bytes[i] << 16;

		if (n > 1)
			bits |= (uint32_t)bytes[i + 1] << 8;
		if (n > 2)
			bits |= bytes[i + 2];
		for (int k = 0; k < 4; k++)
			group[k] = base64_digits[bits >> (18 - 6 * k) & 63];
		if (n < 3)
			group[3] = '=';
		if (n < 2)
			group[2] = '=';
		buf_put(out, group, 4);
	}
	buf_puts(out, "\"");
}

static int
base64_value(char digit)
{
	const char *at = digit ? strchr(base64_digits, digit) : NULL;

	return at ? (int)(at - base64_digits) : -1;
}

int
jobs_base64_decode(const char *text, size_t len, struct buf *out)
{
	if (len % 4 != 0)
		return -EINVAL;
	for (size_t i = 0; i < len; i += 4) {
		bool last = i + 4 == len;
		int pad =
			last ? (text[i + 3] == '=') + (text[i + 2] == '=') : 0;
		uint32_t bits = 0;
		unsigned char bytes[3];

		if (pad == 1 && text[i + 3] != '=')
			return -EINVAL;
		for (int k = 0; k < 4; k++) {
			int value = k >= 4 - pad
					    ? 0
					    : base64_value(text[i + (size_t)k]);

			if (value < 0)
				return -EINVAL;
			bits = bits << 6 | (uint32_t)value;
		}
		bytes[0] = (unsigned char)(bits >> 16);
		bytes[1] = (unsigned char)(bits >> 8);
		bytes[2] = (unsigned char)bits;
		buf_put(out, bytes, 3 - (size_t)pad);
	}
	return buf_error(out);
}
