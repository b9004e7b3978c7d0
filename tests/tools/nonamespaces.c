/* SPDX-License-Identifier: MIT */

/*
 * nonamespaces [-u] COMMAND...: runs it where no namespace can be made, as on a
 * machine that refuses them: clone(2) and unshare(2) say EPERM to each of their
 * flags, clone3(2) ENOSYS, since its flags are in memory.
 *
 *   -u  by clone(2) they can be made, but nothing be done in them, as where
 *       AppArmor restricts them: unshare(2) alone says EPERM
 */

#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMESPACES                                                   \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | \
	 CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP)

int
main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 2),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {
		.len = sizeof(code) / sizeof(code[0]),
		.filter = code,
	};

	if (argc > 1 && strcmp(argv[1], "-u") == 0) {
		/* clone3 falls through, and clone is asked about no more. */
		code[1].jt = code[1].jf;
		code[2].k = SYS_unshare;
		argv++;
		argc--;
	}
	if (argc < 2) {
		fputs("nonamespaces: COMMAND is missing\n", stderr);
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) {
		perror("nonamespaces: filter");
		return 2;
	}
	(void)execvp(argv[1], argv + 1);
	fprintf(stderr, "nonamespaces: %s: %s\n", argv[1], strerror(errno));
	return 127;
}
