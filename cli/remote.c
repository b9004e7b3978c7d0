/* SPDX-License-Identifier: MIT */

#include "cli/remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/strv.h"
#include "cli/cli.h"

#define SCHEME "ssh://"

/* The other side's shell takes the line apart again. */
static void
put_quoted(struct buf *line, const char *word)
{
	buf_puts(line, " '");
	for (; *word; word++) {
		if (*word == '\'')
			buf_puts(line, "'\\''");
		else
			buf_put(line, word, 1);
	}
	buf_puts(line, "'");
}

/* A host that begins with a dash would be an option of ssh. */
static int
take_address(const char *url, struct strv *argv, char **ret_host)
{
	char *host, *port;

	if (strncmp(url, SCHEME, strlen(SCHEME)) != 0)
		return -EINVAL;
	host = strdup(url + strlen(SCHEME));
	if (!host)
		return -ENOMEM;
	*ret_host = host;
	host[strcspn(host, "/")] = '\0';
	port = strrchr(host, ':');
	if (port && strspn(port + 1, "0123456789") == strlen(port + 1) &&
	    port[1]) {
		*port = '\0';
		if (strv_add(argv, "-p") < 0 || strv_add(argv, port + 1) < 0)
			return -ENOMEM;
	}
	return host[0] == '\0' || host[0] == '-' ? -EINVAL : 0;
}

int
remote_run(const char *url, char **words)
{
	_cleanup_(strv_fini) struct strv argv = { 0 };
	_cleanup_(buf_fini) struct buf line = { 0 };
	_cleanup_(freep) char *host = NULL;
	int r = strv_add(&argv, "ssh");

	if (r == 0 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		r = strv_add(&argv, "-t");
	if (r == 0)
		r = take_address(url, &argv, &host);
	if (r == -EINVAL) {
		cli_error("'%s' is no ssh://[user@]host[:port]", url);
		return 2;
	}
	buf_puts(&line, "exec pale");
	for (; *words; words++)
		put_quoted(&line, *words);
	buf_put(&line, "", 1);
	if (r == 0)
		r = buf_error(&line);
	if (r == 0)
		r = strv_add(&argv, "--");
	if (r == 0)
		r = strv_add(&argv, host);
	if (r == 0)
		r = strv_add(&argv, (const char *)line.data);
	if (r == 0) {
		(void)execvp(argv.items[0], argv.items);
		r = -errno;
	}
	cli_error("cannot run ssh: %s", strerror(-r));
	return 1;
}
