/* SPDX-License-Identifier: MIT */

/*
 * The system call filter of a world.
 *
 * Every call is allowed but those in the table, each with one of two fates:
 *
 *   WATCH   the observer is told before the call runs, and then lets it go on
 *           (or, for connect, does it on a copy of the arguments).  Without
 *           an observer it is allowed.
 *   REFUSE  fails with the row's errno.
 *
 * A row may apply only when an argument's bits or value say so.  The program
 * is assembled from the table:
 *
 *	arch, x32; load nr
 *	nr == row?  no: next row
 *	argument test?  no: load nr, next row
 *	return the row's fate
 *
 * The kernel remembers which calls are allowed whatever their arguments, so
 * the length of the table costs only the calls that are in it.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "mount-helper/lockdown.h"
#include "mount-helper/steps.h"

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#else
/* cppcheck-suppress preprocessorErrorDirective */
#error "the filter knows x86_64 and aarch64 only"
#endif

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#endif
#ifndef SYS_removexattrat
#define SYS_removexattrat 466
#endif
#ifndef SYS_file_setattr
#define SYS_file_setattr 469
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

#define X32_BIT 0x40000000u

/* O_TMPFILE without the O_DIRECTORY that is part of it. */
#define TMPFILE_BIT  (O_TMPFILE & ~O_DIRECTORY)
#define WRITING_BITS (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | TMPFILE_BIT)

enum fate {
	WATCH,
	REFUSE,
};

enum test {
	ALWAYS,
	BITS,	/* any of `value` in argument `arg` */
	EQUAL,	/* argument `arg` (low half) is `value` */
	EQUAL2, /* that, and the type in argument 1 is `value2` */
};

/* 0: ever. */
#define EVER	0
#define NO_NEST FILTER_NO_NEST /* where user namespaces are forbidden */
#define ALONE	FILTER_ALONE   /* where no namespace is around the world */
#define NO_NET	FILTER_NO_NET  /* where it shall have no network, besides */

struct row {
	uint32_t nr;
	enum fate fate;
	int error; /* REFUSE */
	enum test test;
	uint32_t arg, value, value2;
	unsigned int when; /* the wish that brings it */
};

#define WATCHED(name)                                       \
	{                                                   \
		SYS_##name, WATCH, 0, ALWAYS, 0, 0, 0, EVER \
	}
#define WATCHED_BITS(name, arg, bits)                          \
	{                                                      \
		SYS_##name, WATCH, 0, BITS, arg, bits, 0, EVER \
	}
#define REFUSED(name, error)                                     \
	{                                                        \
		SYS_##name, REFUSE, error, ALWAYS, 0, 0, 0, EVER \
	}

#define REFUSED_ALONE(name, error)                                \
	{                                                         \
		SYS_##name, REFUSE, error, ALWAYS, 0, 0, 0, ALONE \
	}

#define UNIX_REFUSED(name, type)                                               \
	{                                                                      \
		SYS_##name, REFUSE, EPROTONOSUPPORT, EQUAL2, 0, AF_UNIX, type, \
			EVER                                                   \
	}

/* The frequent ones first. */
static const struct row rows[] = {
	WATCHED_BITS(openat, 2, WRITING_BITS),
#ifdef SYS_open
	WATCHED_BITS(open, 1, WRITING_BITS),
	WATCHED(creat),
	WATCHED(mkdir),
	WATCHED(rmdir),
	WATCHED(unlink),
	WATCHED(rename),
	WATCHED(link),
	WATCHED(symlink),
	WATCHED(mknod),
	WATCHED(chmod),
	WATCHED(chown),
	WATCHED(lchown),
	WATCHED(utime),
	WATCHED(utimes),
	WATCHED(futimesat),
#endif
#ifdef SYS_renameat
	WATCHED(renameat),
#endif
	WATCHED(openat2),
	WATCHED(mkdirat),
	WATCHED(unlinkat),
	WATCHED(renameat2),
	WATCHED(linkat),
	WATCHED(symlinkat),
	WATCHED(mknodat),
	WATCHED(truncate),
	WATCHED(fchmodat),
	WATCHED(fchmodat2),
	WATCHED(fchownat),
	WATCHED(utimensat),
	WATCHED(setxattr),
	WATCHED(lsetxattr),
	WATCHED(setxattrat),
	WATCHED(removexattr),
	WATCHED(lremovexattr),
	WATCHED(removexattrat),
	WATCHED(file_setattr),
	WATCHED(connect),

/* That somebody wants to be told of changes, not of which. */
#ifdef SYS_inotify_init
	WATCHED(inotify_init),
#endif
	WATCHED(inotify_init1),
	WATCHED(fanotify_init),

	/*
	 * Typing into the caller's terminal; pasting into a console.  Only the
	 * low half of the request counts, for the kernel as for us.
	 */
	{ SYS_ioctl, REFUSE, EPERM, EQUAL, 1, TIOCSTI, 0, EVER },
	{ SYS_ioctl, REFUSE, EPERM, EQUAL, 1, TIOCLINUX, 0, EVER },

	/*
	 * A datagram reaches a host's socket without connect(2); for the
	 * kernel a raw unix socket is one too.  The type's low four bits are
	 * the type, the rest are flags.
	 */
	UNIX_REFUSED(socket, SOCK_DGRAM),
	UNIX_REFUSED(socketpair, SOCK_DGRAM),
	UNIX_REFUSED(socket, SOCK_RAW),
	UNIX_REFUSED(socketpair, SOCK_RAW),

	/*
	 * Landlock does not know sockets with a path, and nobody is there who
	 * would connect in the world's place: there are none.
	 */
	{ SYS_socket, REFUSE, EACCES, EQUAL, 0, AF_UNIX, 0, ALONE },
	{ SYS_socket, REFUSE, EACCES, ALWAYS, 0, 0, 0, NO_NET },

	/* Memory and queues that the host's processes share. */
	REFUSED_ALONE(shmget, ENOSYS),
	REFUSED_ALONE(shmat, ENOSYS),
	REFUSED_ALONE(shmctl, ENOSYS),
	REFUSED_ALONE(semget, ENOSYS),
	REFUSED_ALONE(semop, ENOSYS),
	REFUSED_ALONE(semtimedop, ENOSYS),
	REFUSED_ALONE(semctl, ENOSYS),
	REFUSED_ALONE(msgget, ENOSYS),
	REFUSED_ALONE(msgsnd, ENOSYS),
	REFUSED_ALONE(msgrcv, ENOSYS),
	REFUSED_ALONE(msgctl, ENOSYS),
	REFUSED_ALONE(mq_open, ENOSYS),
	REFUSED_ALONE(mq_unlink, ENOSYS),

	/* Operations that no filter sees. */
	REFUSED(io_uring_setup, ENOSYS),
	REFUSED(io_uring_enter, ENOSYS),
	REFUSED(io_uring_register, ENOSYS),

	/* The kernel's surface that no development needs. */
	REFUSED(userfaultfd, EPERM),
	REFUSED(bpf, EPERM),
	REFUSED(perf_event_open, EPERM),
	REFUSED(keyctl, ENOSYS),
	REFUSED(add_key, ENOSYS),
	REFUSED(request_key, ENOSYS),
	REFUSED(kexec_load, EPERM),
	REFUSED(kexec_file_load, EPERM),
	REFUSED(init_module, EPERM),
	REFUSED(finit_module, EPERM),
	REFUSED(delete_module, EPERM),
	REFUSED(open_by_handle_at, EPERM),
	REFUSED(quotactl, EPERM),
	REFUSED(quotactl_fd, EPERM),
	REFUSED(swapon, EPERM),
	REFUSED(swapoff, EPERM),
	REFUSED(reboot, EPERM),
	REFUSED(acct, EPERM),
#ifdef SYS_iopl
	REFUSED(iopl, EPERM),
	REFUSED(ioperm, EPERM),
#endif

	{ SYS_unshare, REFUSE, EPERM, BITS, 0, CLONE_NEWUSER, 0, NO_NEST },
	{ SYS_clone, REFUSE, EPERM, BITS, 0, CLONE_NEWUSER, 0, NO_NEST },
	/* Its flags are in memory; libraries fall back to clone. */
	{ SYS_clone3, REFUSE, ENOSYS, ALWAYS, 0, 0, 0, NO_NEST },
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

/* Instructions of the longest row, and those around the rows. */
#define ROW_MAX	  8
#define FRAME_MAX 12

struct program {
	struct sock_filter code[N_ROWS * ROW_MAX + FRAME_MAX];
	unsigned short len;
};

#define DATA(field) ((uint32_t)offsetof(struct seccomp_data, field))

static void
put(struct program *p, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	p->code[p->len++] = (struct sock_filter){ code, yes, no, k };
}

static void
put_load(struct program *p, uint32_t at)
{
	put(p, BPF_LD | BPF_W | BPF_ABS, at, 0, 0);
}

static void
put_return(struct program *p, uint32_t action)
{
	put(p, BPF_RET | BPF_K, action, 0, 0);
}

/* The accumulator holds the number at the start and at the end of each row. */
static void
put_row(struct program *p, const struct row *row, uint32_t action)
{
	/* Little-endian: the low half of an argument comes first. */
	uint32_t arg = DATA(args) + row->arg * (uint32_t)sizeof(uint64_t);

	switch (row->test) {
	case ALWAYS:
		put(p, BPF_JMP | BPF_JEQ | BPF_K, row->nr, 0, 1);
		put_return(p, action);
		break;
	case BITS:
	case EQUAL:
		put(p, BPF_JMP | BPF_JEQ | BPF_K, row->nr, 0, 4);
		put_load(p, arg);
		put(p,
		    row->test == BITS ? BPF_JMP | BPF_JSET | BPF_K
				      : BPF_JMP | BPF_JEQ | BPF_K,
		    row->value, 0, 1);
		put_return(p, action);
		put_load(p, DATA(nr));
		break;
	case EQUAL2:
		put(p, BPF_JMP | BPF_JEQ | BPF_K, row->nr, 0, 7);
		put_load(p, arg);
		put(p, BPF_JMP | BPF_JEQ | BPF_K, row->value, 0, 4);
		put_load(p, DATA(args[1]));
		put(p, BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0);
		put(p, BPF_JMP | BPF_JEQ | BPF_K, row->value2, 0, 1);
		put_return(p, action);
		put_load(p, DATA(nr));
		break;
	}
}

/*
 * With no unix socket there is no connect(2) to be judged; with no mount there
 * is nothing that the host's changes are to be told through.
 */
static bool
is_idle_alone(uint32_t nr)
{
#ifdef SYS_inotify_init
	if (nr == SYS_inotify_init)
		return true;
#endif
	return nr == SYS_connect || nr == SYS_inotify_init1 ||
	       nr == SYS_fanotify_init;
}

static bool
is_wanted(const struct row *row, unsigned int wishes)
{
	if (row->when != EVER && !(row->when & wishes))
		return false;
	if ((wishes & FILTER_ALONE) && is_idle_alone(row->nr))
		return false;
	return row->fate != WATCH || (wishes & FILTER_OBSERVE);
}

static void
assemble(struct program *p, unsigned int wishes)
{
	p->len = 0;
	put_load(p, DATA(arch));
	put(p, BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0);
	put_return(p, SECCOMP_RET_ERRNO | ENOSYS);
	put_load(p, DATA(nr));
#ifdef __x86_64__
	/* The other calling convention has numbers of its own. */
	put(p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
	put_return(p, SECCOMP_RET_ERRNO | ENOSYS);
#endif
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct row *row = &rows[i];

		if (!is_wanted(row, wishes))
			continue;
		put_row(p, row,
			row->fate == WATCH
				? SECCOMP_RET_USER_NOTIF
				: SECCOMP_RET_ERRNO | (uint32_t)row->error);
	}
	put_return(p, SECCOMP_RET_ALLOW);
}

unsigned short
lockdown_program(unsigned int wishes, const struct sock_filter **ret_code)
{
	static struct program program;

	assemble(&program, wishes);
	*ret_code = program.code;
	return program.len;
}

static int
install(unsigned int wishes, unsigned long flags)
{
	const struct sock_filter *code;
	struct sock_fprog fprog;
	long fd;

	fprog.len = lockdown_program(wishes, &code);
	fprog.filter = (struct sock_filter *)(uintptr_t)code;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &fprog);
	return fd < 0 ? -errno : (int)fd;
}

int
lockdown_filter(unsigned int wishes, int *ret_listener, struct errmsg *why)
{
	bool observe = wishes & FILTER_OBSERVE;
	int r;

	r = step_begin(STEP_SECCOMP, why);
	if (r < 0)
		return r;
	*ret_listener = -1;
	if (observe) {
		r = install(wishes,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER |
				    SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
		/* Linux before 5.19: a signal makes a call wait again. */
		if (r == -EINVAL)
			r = install(wishes, SECCOMP_FILTER_FLAG_NEW_LISTENER);
		if (r >= 0) {
			*ret_listener = r;
			return 0;
		}
	}
	/* EBUSY: a world in a world, which the outer listener watches too. */
	if (!observe || r == -EBUSY || r == -EINVAL)
		r = install(wishes & ~(unsigned int)FILTER_OBSERVE, 0);
	if (r < 0)
		return errmsg_set(why, r,
				  "cannot install the system call filter: %s",
				  strerror(-r));
	return 0;
}
