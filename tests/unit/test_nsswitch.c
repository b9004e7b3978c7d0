/* SPDX-License-Identifier: MIT */

#include "policy/nsswitch.h"

#include <check.h>

#include "suite.h"

START_TEST(services_are_found_in_their_databases)
{
	static const struct {
		const char *text;
		unsigned int services;
	} rows[] = {
		{ "", 0 },
		{ "passwd: files\ngroup: compat\nhosts: files dns", 0 },
		{ "passwd:files systemd", NSSWITCH_SYSTEMD | NSSWITCH_NSCD },
		{ " group :\tfiles [SUCCESS=merge] systemd",
		  NSSWITCH_SYSTEMD | NSSWITCH_NSCD },
		{ "initgroups: ldap", NSSWITCH_NSCD },
		{ "hosts: mymachines resolve [!UNAVAIL=return] files",
		  NSSWITCH_RESOLVE },
		{ "hosts: systemd\npasswd: resolve", NSSWITCH_NSCD },
		{ "sudoers: files sss", NSSWITCH_SSS },
		{ "passwd: files # sss systemd\n#hosts: resolve", 0 },
		{ "passwd: files [ NOTFOUND=return ]", 0 },
		{ ":\n: :\npasswd", 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		ck_assert_msg(nsswitch_services(rows[i].text) ==
				      rows[i].services,
			      "%s: %x", rows[i].text,
			      nsswitch_services(rows[i].text));
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, services_are_found_in_their_databases);
	return suite_run("policy/nsswitch", tc);
}
