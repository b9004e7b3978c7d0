/* SPDX-License-Identifier: MIT */

#include "fusefs/version.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "tests/unit/suite.h"

static void
hex_of(const char *data, size_t len, size_t step, char ret_hex[65])
{
	unsigned char bytes[DIGEST_LEN];
	struct digest digest;

	digest_init(&digest);
	for (size_t at = 0; at < len; at += step)
		digest_add(&digest, data + at,
			   len - at < step ? len - at : step);
	digest_end(&digest, bytes);
	for (size_t i = 0; i < DIGEST_LEN; i++)
		(void)snprintf(ret_hex + 2 * i, 3, "%02x", bytes[i]);
}

/* As b2sum -l 256 says. */
START_TEST(the_digest_is_that_of_the_rfc)
{
	static const struct {
		size_t len; /* of this many letters a */
		const char *hex;
	} known[] = {
		{ 0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf"
		     "12fe3a8" },
		{ 1, "8928aae63c84d87ea098564d1e03ad813f107add474e56aedd286349c"
		     "0c03ea4" },
		{ 127, "59e2f1aba240f20aa591016f5ef429990bc9c2131dcd0d30f0ffd75"
		       "ed18f317d" },
		{ 128, "ae2aa48507885c4c950fb809b2076f959cde9f8ea6da260d9a3587d"
		       "f33dac450" },
		{ 129, "2f64744a6de0d2c0b56e64cf6e29a5aaa255010d415d51c75ccc82f"
		       "73dccd865" },
		{ 256, "eae4d3a7627549b383179dc18049964f91a6fed14c9f3fb26705eda"
		       "3eeda5558" },
		{ 1000, "e00b0ddbf1e2cdaf5c898e1a5e8826ea3a2c339bcf2a478da2e5fc"
			"a9ff126672" },
	};
	char text[1000], hex[65];

	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		for (size_t step = 1; step < 300; step += 63) {
			hex_of(text, known[i].len, step, hex);
			ck_assert_str_eq(hex, known[i].hex);
		}
}
END_TEST

START_TEST(equal_bytes_have_equal_versions_and_no_others)
{
	struct version a, b, c;
	_cleanup_(closep) int fd = -1;

	version_of_bytes("same", 4, &a);
	ck_assert_int_eq(fd_memfile("version", "same", 4, &fd), 0);
	ck_assert_int_eq(version_of_fd(fd, &b), 0);
	version_of_bytes("sane", 4, &c);
	ck_assert_str_eq(a.text, b.text);
	ck_assert_str_ne(a.text, c.text);
	version_of_bytes("", 0, &b);
	version_of_bytes("\0", 1, &c);
	ck_assert_str_ne(b.text, c.text);
}
END_TEST

START_TEST(a_version_is_a_short_text_that_is_known_again)
{
	struct version version;

	version_of_bytes("x", 1, &version);
	ck_assert_uint_eq(strlen(version.text), VERSION_LEN);
	ck_assert_int_le(VERSION_LEN, 64);
	ck_assert(version_is_valid(version.text));
	ck_assert(version_is_valid("absent"));
	ck_assert(!version_is_valid(""));
	ck_assert(!version_is_valid("b"));
	version.text[5] = '/';
	ck_assert(!version_is_valid(version.text));
}
END_TEST

START_TEST(what_cannot_be_read_has_no_version)
{
	struct version version;
	_cleanup_(closep) int fd = open("/", O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(version_of_fd(fd, &version), -EISDIR);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("version");

	tcase_add_test(tc, the_digest_is_that_of_the_rfc);
	tcase_add_test(tc, equal_bytes_have_equal_versions_and_no_others);
	tcase_add_test(tc, a_version_is_a_short_text_that_is_known_again);
	tcase_add_test(tc, what_cannot_be_read_has_no_version);
	return suite_run("version", tc);
}
