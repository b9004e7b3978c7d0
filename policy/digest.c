/* SPDX-License-Identifier: MIT */

/*
 * By what a world is found again: two calls whose options mean the same join
 * the same world.  Where a value came from, how long one command may take
 * and which services the host runs make no other world of it.
 */

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/policy.h"

/* FNV-1a, 64 bits (Fowler, Noll, Vo): nobody gains by a collision but himself. */
#define FNV_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

#define HEAD offsetof(struct policy, mode)

int
policy_digest(const struct policy *policy,
	      char ret_digest[POLICY_DIGEST_LEN + 1])
{
	static char anywhere[] = "";
	_cleanup_(freep) char *json = NULL;
	struct policy same = { 0 };
	uint64_t hash = FNV_BASIS;
	int r;

	/* All but the count of references, which changes meanwhile. */
	memcpy((char *)&same + HEAD, (const char *)policy + HEAD,
	       sizeof(same) - HEAD);
	same.mode_source = anywhere;
	same.name_sockets = (struct strv){ 0 };
	same.limits.timeout_ms = same.limits.linger_ms = 0;
	same.limits.jobs = same.limits.jobs_kept = same.limits.jobs_bytes = 0;
	same.limits.terminals = same.limits.terminals_kept = 0;
	r = policy_encode(&same, &json);
	if (r < 0)
		return r;
	for (const char *at = json; *at; at++)
		hash = (hash ^ (unsigned char)*at) * FNV_PRIME;
	(void)snprintf(ret_digest, POLICY_DIGEST_LEN + 1, "%016llx",
		       (unsigned long long)hash);
	return 0;
}
