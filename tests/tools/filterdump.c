/* SPDX-License-Identifier: MIT */

/*
 * filterdump WISHES: the system call filter for these FILTER_* bits, one
 * instruction a line: code jt jf k.
 */

#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>

#include "mount-helper/lockdown.h"

int
main(int argc, char **argv)
{
	const struct sock_filter *code;
	unsigned long wishes = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	unsigned short len = lockdown_program((unsigned int)wishes, &code);

	for (unsigned short i = 0; i < len; i++)
		printf("%u %u %u %u\n", code[i].code, code[i].jt, code[i].jf,
		       code[i].k);
	return 0;
}
