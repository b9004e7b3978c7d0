/* SPDX-License-Identifier: MIT */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

/*
 * pale -H ssh://[user@]host[:port] COMMAND…: the command runs there, by the
 * pale that is installed there, with our stdio.  Returns only on failure: an
 * exit status, told.
 *
 * Thread: main.
 */
int remote_run(const char *host, char **argv);

#endif
