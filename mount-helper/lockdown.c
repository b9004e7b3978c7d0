/* SPDX-License-Identifier: MIT */

#include "mount-helper/lockdown.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/plan.h"
#include "mount-helper/steps.h"

/*
 * linux/landlock.h of this distribution may end before ABI 6; the layout is
 * the kernel's.
 */
struct scope_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};
#define SCOPE_ABSTRACT_UNIX_SOCKET (1u << 0)
#define SCOPE_SIGNAL		   (1u << 1)

/* Older kernels refuse the size or the flag: said in the report. */
static int
scope_ruleset(void)
{
	const struct scope_attr attr = {
		.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL,
	};

	return (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr),
			    0);
}

bool
lockdown_can_scope(void)
{
	_cleanup_(closep) int ruleset = scope_ruleset();

	return ruleset >= 0;
}

int
lockdown_scope(bool *ret_scoped, struct errmsg *why)
{
	_cleanup_(closep) int ruleset = -1;
	int r;

	r = step_begin(STEP_SCOPE, why);
	if (r < 0)
		return r;
	*ret_scoped = false;
	ruleset = scope_ruleset();
	if (ruleset < 0)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return errmsg_set(why, -errno,
				  "cannot scope signals and sockets: %s",
				  strerror(errno));
	*ret_scoped = true;
	return 0;
}

static int
no_new_privs(struct errmsg *why)
{
	int r = step_begin(STEP_NO_NEW_PRIVS, why);

	if (r < 0)
		return r;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errmsg_set(why, -errno, "cannot set no_new_privs: %s",
				  strerror(errno));
	return 0;
}

int
lockdown_inherited(struct errmsg *why)
{
	const unsigned long bits =
		SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
		SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
		SECBIT_NO_CAP_AMBIENT_RAISE |
		SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	int r;

	r = step_begin(STEP_BOUNDING, why);
	if (r < 0)
		return r;
	for (int cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL && cap > 0)
			break;
		return errmsg_set(why, -errno,
				  "cannot empty the bounding set: %s",
				  strerror(errno));
	}

	r = step_begin(STEP_SECUREBITS, why);
	if (r < 0)
		return r;
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0 ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return errmsg_set(why, -errno, "cannot lock securebits: %s",
				  strerror(errno));

	return no_new_privs(why);
}

int
lockdown_alone(struct errmsg *why)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = { 0 };

	if (syscall(SYS_capget, &head, data) < 0)
		return errmsg_set(why, -errno,
				  "cannot ask for capabilities: %s",
				  strerror(errno));
	if (data[0].effective & (1u << CAP_SETPCAP))
		return lockdown_inherited(why);
	/* With no_new_privs nothing executed gains what its caller lacks. */
	return no_new_privs(why);
}

int
lockdown_capabilities(unsigned long long keep)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	memset(data, 0, sizeof(data));
	data[0].permitted = data[0].effective = (uint32_t)keep;
	data[1].permitted = data[1].effective = (uint32_t)(keep >> 32);
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

unsigned int
lockdown_wishes(const struct plan *plan)
{
	const uint32_t flags = plan->flags;
	unsigned int wishes = (flags & PLAN_OBSERVE ? FILTER_OBSERVE : 0) |
			      (flags & PLAN_NO_NEST ? FILTER_NO_NEST : 0);

	if (!(flags & PLAN_LANDLOCK))
		return wishes;
	return wishes | FILTER_ALONE |
	       (flags & PLAN_NET_NONE ? FILTER_NO_NET : 0);
}
