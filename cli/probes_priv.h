/* SPDX-License-Identifier: MIT */
#ifndef CLI_PROBES_PRIV_H
#define CLI_PROBES_PRIV_H

/*
 * The probes themselves: those that read something (probe_files.c), and those
 * that try something in a child (probe_kernel.c).
 */

#include "cli/probes.h"

void probe_helper(struct probe_result *ret_result);
void probe_runtime(struct probe_result *ret_result);
void probe_state(struct probe_result *ret_result);
void probe_yama(struct probe_result *ret_result);
void probe_cgroup(struct probe_result *ret_result);
void probe_coherence(struct probe_result *ret_result);
void probe_passthrough(struct probe_result *ret_result);
void probe_fusermount(struct probe_result *ret_result);
void probe_apparmor(struct probe_result *ret_result);
void probe_userns_limit(struct probe_result *ret_result);
void probe_userns_clone(struct probe_result *ret_result);
void probe_nested(struct probe_result *ret_result);

void probe_fuse_device(struct probe_result *ret_result);
void probe_fuse_mount(struct probe_result *ret_result);
void probe_userns(struct probe_result *ret_result);
void probe_proc_mount(struct probe_result *ret_result);
void probe_net(struct probe_result *ret_result);
void probe_overlay(struct probe_result *ret_result);
void probe_mount_setattr(struct probe_result *ret_result);
void probe_seccomp(struct probe_result *ret_result);
void probe_seccomp_notify(struct probe_result *ret_result);
void probe_landlock(struct probe_result *ret_result);
void probe_landlock_scope(struct probe_result *ret_result);

/* Sets the answer. */
void probe_say(struct probe_result *result, bool ok, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
