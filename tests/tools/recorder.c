/* SPDX-License-Identifier: MIT */

/*
 * recorder DIR DB: a record of denials by hand, for tests.  Commands come on
 * stdin, one a line, each is answered by one line:
 *
 *	record N   N denials of new paths   "recorded N" (the acknowledged)
 *	flush      denials_flush()          "degraded" or "stored"
 *	close      denials_close(), exit    "closed"
 */

#include <stdio.h>
#include <string.h>

#include "policy/denial.h"

static long
record(struct denials *denials, long n)
{
	static long made;
	long acknowledged = 0;
	char path[64];

	for (long i = 0; i < n; i++) {
		const struct denial denial = {
			.origin = "run",
			.code = POLICY_CODE_SANDBOX_DENIED,
			.rule = "mode",
			.op = POLICY_OP_CREATE,
			.path = path,
			.error = EROFS,
			.pid = getpid(),
		};

		(void)snprintf(path, sizeof(path), "/w/%ld", made++);
		acknowledged += denial_record(denials, &denial) == 0;
	}
	return acknowledged;
}

int
main(int argc, char **argv)
{
	struct denials_config config = { .session = "default", .world = "w" };
	struct denials_summary summary;
	struct denials *denials;
	struct errmsg why = { "" };
	char line[64];

	if (argc != 3)
		return 2;
	config.dir = argv[1];
	config.db_path = argv[2];
	if (denials_open(&config, &denials, &why) < 0) {
		(void)fprintf(stderr, "recorder: %s\n", why.text);
		return 1;
	}
	(void)puts("open");
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (strncmp(line, "record ", 7) == 0) {
			printf("recorded %ld\n",
			       record(denials, strtol(line + 7, NULL, 10)));
		} else if (strcmp(line, "flush\n") == 0) {
			denials_flush(denials);
			denials_summarize(denials, &summary);
			(void)puts(summary.degraded ? "degraded" : "stored");
		} else {
			break;
		}
		(void)fflush(stdout);
	}
	denials_close(denials);
	(void)puts("closed");
	return 0;
}
