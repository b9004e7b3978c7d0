/* SPDX-License-Identifier: MIT */
#ifndef POLICY_NSSWITCH_H
#define POLICY_NSSWITCH_H

/*
 * The host sockets that the C library asks for users, groups and host names.
 * Thread: any.
 */

#include "policy/policy.h"

#define NSSWITCH_SSS	 (1u << 0) /* sssd */
#define NSSWITCH_SYSTEMD (1u << 1) /* systemd's user database */
#define NSSWITCH_RESOLVE (1u << 2) /* systemd-resolved */
#define NSSWITCH_NSCD	 (1u << 3) /* users are not in files alone */

/* What the text of an nsswitch.conf names. */
unsigned int nsswitch_services(const char *text);

/*
 * Fills policy->name_sockets with what this host has of the services that its
 * /etc/nsswitch.conf names, but for what the policy hides.  -ENOMEM.
 */
int nsswitch_resolve(struct policy *policy);

#endif
