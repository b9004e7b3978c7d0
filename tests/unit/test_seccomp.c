/* SPDX-License-Identifier: MIT */

/*
 * The filter's program, run by a small interpreter over what the kernel would
 * hand it: which call gets which fate.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "mount-helper/lockdown.h"
#include "tests/unit/suite.h"

#ifdef __x86_64__
#define ARCH	    AUDIT_ARCH_X86_64
#define ARCH_OTHERS AUDIT_ARCH_I386
#else
#define ARCH	    AUDIT_ARCH_AARCH64
#define ARCH_OTHERS AUDIT_ARCH_ARM
#endif

static const bool observed = true, nested_ok = false;

static unsigned int
wishes_of(bool observe, bool no_nest)
{
	return (observe ? FILTER_OBSERVE : 0) | (no_nest ? FILTER_NO_NEST : 0);
}

/* Instructions that the program may use; anything else is a failure. */
static uint32_t
interpret(unsigned int wishes, const struct seccomp_data *data)
{
	const struct sock_filter *code;
	unsigned int len = lockdown_program(wishes, &code);
	uint32_t acc = 0;

	for (unsigned int pc = 0; pc < len; pc++) {
		const struct sock_filter *in = &code[pc];
		bool yes;

		switch (in->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			ck_assert_uint_le(in->k + 4, sizeof(*data));
			memcpy(&acc, (const char *)data + in->k, 4);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			acc &= in->k;
			continue;
		case BPF_RET | BPF_K:
			return in->k;
		case BPF_JMP | BPF_JEQ | BPF_K:
			yes = acc == in->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			yes = acc >= in->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			yes = (acc & in->k) != 0;
			break;
		default:
			ck_abort_msg("instruction %#x", in->code);
		}
		pc += yes ? in->jt : in->jf;
	}
	ck_abort_msg("the program ran off its end");
}

static uint32_t
run(bool observe, bool no_nest, const struct seccomp_data *data)
{
	return interpret(wishes_of(observe, no_nest), data);
}

static uint32_t
alone(unsigned int wishes, long nr, uint64_t a0, uint64_t a1)
{
	const struct seccomp_data data = { .nr = (int)nr,
					   .arch = ARCH,
					   .args = { a0, a1 } };

	return interpret(FILTER_ALONE | FILTER_OBSERVE | wishes, &data);
}

static uint32_t
fate(bool observe, bool no_nest, long nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	const struct seccomp_data data = { .nr = (int)nr,
					   .arch = ARCH,
					   .args = { a0, a1, a2 } };

	return run(observe, no_nest, &data);
}

#define REFUSED(error) (SECCOMP_RET_ERRNO | (error))

START_TEST(reading_is_nobodys_business)
{
	static const long calls[] = { SYS_read,	 SYS_write,	 SYS_close,
				      SYS_statx, SYS_getdents64, SYS_execve,
				      SYS_mmap,	 SYS_sendmsg,	 SYS_recvmsg,
				      SYS_dup3,	 SYS_exit_group };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		ck_assert_uint_eq(fate(observed, nested_ok, calls[i], 1, 2, 3),
				  SECCOMP_RET_ALLOW);
	ck_assert_uint_eq(fate(observed, nested_ok, SYS_openat, 0, 0,
			       O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW),
			  SECCOMP_RET_ALLOW);
}
END_TEST

START_TEST(opening_to_write_is_watched)
{
	static const uint64_t flags[] = {
		O_WRONLY,
		O_RDWR,
		O_CREAT | O_WRONLY,
		O_TRUNC,
		O_CREAT,
		O_TMPFILE,
		O_RDWR | O_APPEND | O_CLOEXEC,
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		ck_assert_uint_eq(
			fate(observed, nested_ok, SYS_openat, 0, 0, flags[i]),
			SECCOMP_RET_USER_NOTIF);
		ck_assert_uint_eq(
			fate(false, nested_ok, SYS_openat, 0, 0, flags[i]),
			SECCOMP_RET_ALLOW);
#ifdef SYS_open
		ck_assert_uint_eq(
			fate(observed, nested_ok, SYS_open, 0, flags[i], 0),
			SECCOMP_RET_USER_NOTIF);
#endif
	}
	/* Its flags are in memory: always. */
	ck_assert_uint_eq(fate(observed, nested_ok, SYS_openat2, 0, 0, 0),
			  SECCOMP_RET_USER_NOTIF);
}
END_TEST

START_TEST(mutations_and_connect_are_watched)
{
	static const long calls[] = {
		SYS_mkdirat,	   SYS_unlinkat,  SYS_renameat2,
		SYS_linkat,	   SYS_symlinkat, SYS_mknodat,
		SYS_truncate,	   SYS_fchmodat,  SYS_fchownat,
		SYS_utimensat,	   SYS_setxattr,  SYS_lsetxattr,
		SYS_removexattr,   SYS_connect,	  SYS_inotify_init1,
		SYS_fanotify_init,
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		ck_assert_uint_eq(fate(observed, nested_ok, calls[i], 1, 2, 3),
				  SECCOMP_RET_USER_NOTIF);
}
END_TEST

START_TEST(terminal_injection_is_refused_whatever_the_upper_half)
{
	static const uint64_t upper[] = { 0, 1ULL << 32, ~0ULL << 32 };

	for (size_t i = 0; i < 3; i++)
		ck_assert_uint_eq(fate(observed, nested_ok, SYS_ioctl, 0,
				       TIOCSTI | upper[i], 0),
				  REFUSED(EPERM));
	ck_assert_uint_eq(fate(observed, nested_ok, SYS_ioctl, 0, TCGETS, 0),
			  SECCOMP_RET_ALLOW);
}
END_TEST

START_TEST(unix_datagrams_are_refused_and_streams_are_not)
{
	static const int refused[] = { SOCK_DGRAM, SOCK_RAW,
				       SOCK_DGRAM | SOCK_CLOEXEC,
				       SOCK_RAW | SOCK_NONBLOCK };
	static const long calls[] = { SYS_socket, SYS_socketpair };

	for (size_t i = 0; i < 2; i++) {
		for (size_t j = 0; j < 4; j++)
			ck_assert_uint_eq(fate(observed, nested_ok, calls[i],
					       AF_UNIX, (uint64_t)refused[j],
					       0),
					  REFUSED(EPROTONOSUPPORT));
		ck_assert_uint_eq(fate(observed, nested_ok, calls[i], AF_UNIX,
				       SOCK_STREAM | SOCK_CLOEXEC, 0),
				  SECCOMP_RET_ALLOW);
		ck_assert_uint_eq(fate(observed, nested_ok, calls[i], AF_UNIX,
				       SOCK_SEQPACKET, 0),
				  SECCOMP_RET_ALLOW);
	}
	ck_assert_uint_eq(
		fate(observed, nested_ok, SYS_socket, AF_INET, SOCK_DGRAM, 0),
		SECCOMP_RET_ALLOW);
}
END_TEST

START_TEST(what_no_filter_sees_is_refused)
{
	ck_assert_uint_eq(
		fate(observed, nested_ok, SYS_io_uring_setup, 0, 0, 0),
		REFUSED(ENOSYS));
	ck_assert_uint_eq(fate(observed, nested_ok, SYS_bpf, 0, 0, 0),
			  REFUSED(EPERM));
	ck_assert_uint_eq(
		fate(observed, nested_ok, SYS_open_by_handle_at, 0, 0, 0),
		REFUSED(EPERM));
}
END_TEST

START_TEST(user_namespaces_are_refused_only_where_asked)
{
	ck_assert_uint_eq(
		fate(observed, false, SYS_unshare, CLONE_NEWUSER, 0, 0),
		SECCOMP_RET_ALLOW);
	ck_assert_uint_eq(fate(observed, true, SYS_unshare,
			       CLONE_NEWUSER | CLONE_NEWNS, 0, 0),
			  REFUSED(EPERM));
	ck_assert_uint_eq(
		fate(observed, true, SYS_clone, CLONE_NEWUSER | CLONE_VM, 0, 0),
		REFUSED(EPERM));
	ck_assert_uint_eq(fate(observed, true, SYS_clone, CLONE_VM, 0, 0),
			  SECCOMP_RET_ALLOW);
	ck_assert_uint_eq(fate(observed, true, SYS_clone3, 0, 0, 0),
			  REFUSED(ENOSYS));
	ck_assert_uint_eq(fate(observed, false, SYS_clone3, 0, 0, 0),
			  SECCOMP_RET_ALLOW);
}
END_TEST

START_TEST(without_namespaces_the_hosts_ipc_is_refused)
{
	ck_assert_uint_eq(alone(0, SYS_socket, AF_UNIX, SOCK_STREAM),
			  REFUSED(EACCES));
	ck_assert_uint_eq(alone(0, SYS_socketpair, AF_UNIX, SOCK_STREAM),
			  SECCOMP_RET_ALLOW);
	ck_assert_uint_eq(alone(0, SYS_socketpair, AF_UNIX, SOCK_DGRAM),
			  REFUSED(EPROTONOSUPPORT));
	ck_assert_uint_eq(alone(0, SYS_socket, AF_INET, SOCK_STREAM),
			  SECCOMP_RET_ALLOW);
	ck_assert_uint_eq(alone(0, SYS_connect, 3, 0), SECCOMP_RET_ALLOW);
	ck_assert_uint_eq(alone(0, SYS_inotify_init1, 0, 0), SECCOMP_RET_ALLOW);
	ck_assert_uint_eq(alone(0, SYS_shmat, 1, 0), REFUSED(ENOSYS));
	ck_assert_uint_eq(alone(0, SYS_unlinkat, 1, 0), SECCOMP_RET_USER_NOTIF);
	ck_assert_uint_eq(
		alone(FILTER_NO_NET, SYS_socket, AF_INET, SOCK_STREAM),
		REFUSED(EACCES));
	ck_assert_uint_eq(
		alone(FILTER_NO_NET, SYS_socketpair, AF_UNIX, SOCK_STREAM),
		SECCOMP_RET_ALLOW);
	/* In a world of its own they are its own. */
	ck_assert_uint_eq(fate(observed, nested_ok, SYS_shmat, 1, 0, 0),
			  SECCOMP_RET_ALLOW);
}
END_TEST

START_TEST(other_conventions_find_no_system_call)
{
	struct seccomp_data data = { .nr = SYS_read, .arch = ARCH_OTHERS };

	ck_assert_uint_eq(run(observed, nested_ok, &data), REFUSED(ENOSYS));
#ifdef __x86_64__
	data.arch = ARCH;
	data.nr = SYS_openat | 0x40000000;
	ck_assert_uint_eq(run(observed, nested_ok, &data), REFUSED(ENOSYS));
#endif
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("seccomp");

	tcase_add_test(tc, reading_is_nobodys_business);
	tcase_add_test(tc, opening_to_write_is_watched);
	tcase_add_test(tc, mutations_and_connect_are_watched);
	tcase_add_test(tc,
		       terminal_injection_is_refused_whatever_the_upper_half);
	tcase_add_test(tc, unix_datagrams_are_refused_and_streams_are_not);
	tcase_add_test(tc, what_no_filter_sees_is_refused);
	tcase_add_test(tc, user_namespaces_are_refused_only_where_asked);
	tcase_add_test(tc, without_namespaces_the_hosts_ipc_is_refused);
	tcase_add_test(tc, other_conventions_find_no_system_call);
	return suite_run("mount-helper/seccomp", tc);
}
