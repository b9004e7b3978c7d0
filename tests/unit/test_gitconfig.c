/* SPDX-License-Identifier: MIT */

/*
 * The content guard: what is safe, what is not, and that its parser reads a
 * text as the real git does (the oracle is `git config --list -z`, where there
 * is a git).
 */

#include "policy/gitconfig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/fd.h"
#include "tests/unit/suite.h"

static struct gitconfig_text
text(const char *bytes)
{
	return (struct gitconfig_text){ bytes, bytes ? strlen(bytes) : 0 };
}

static char key[256];

static int
judge(const char *before, const char *after)
{
	struct gitconfig_text b = text(before ? before : ""), a = text(after);

	key[0] = '\0';
	return gitconfig_judge(before ? &b : NULL, &a, NULL, key, sizeof(key));
}

static void
refused(const char *before, const char *after, const char *want)
{
	ck_assert_int_eq(judge(before, after), -EACCES);
	ck_assert_str_eq(key, want);
}

#define BASE "[core]\n\tbare = false\n"

START_TEST(what_git_writes_by_itself_is_safe)
{
	ck_assert_int_eq(judge(NULL, BASE), 0);
	ck_assert_int_eq(judge(BASE, BASE "[user]\n\tname = A U Thor\n"), 0);
	ck_assert_int_eq(judge(NULL, "[remote \"origin\"]\n"
				     "url = git@host:a/b.git\n"
				     "fetch = +refs/heads/*:refs/remotes/o/*\n"
				     "[branch \"x.y\"] remote = .\n"
				     "merge = refs/heads/x\n"
				     "[color \"diff\"] old = red\n"),
			 0);
	ck_assert_int_eq(judge(BASE, ""), 0);
}
END_TEST

static const struct {
	const char *text, *key;
} unsafe[] = {
	{ "[core] fsmonitor = x", "core.fsmonitor" },
	{ "[CORE]\nFsMonitor", "core.fsmonitor" },
	{ "[core]hooksPath=x", "core.hookspath" },
	{ "[core]\nworktree = ..", "core.worktree" },
	{ "[core]\nsshCommand = x", "core.sshcommand" },
	{ "[core]\neditor = x", "core.editor" },
	{ "[core]\npager = x", "core.pager" },
	{ "[core]\naskpass = x", "core.askpass" },
	{ "[core]\ngitproxy = x", "core.gitproxy" },
	{ "[core]\nattributesfile = x", "core.attributesfile" },
	{ "[alias]\nst = !x", "alias.st" },
	{ "[filter \"x\"]\nclean = x", "filter.x.clean" },
	{ "[diff]\nexternal = x", "diff.external" },
	{ "[diff \"x\"]\ntextconv = x", "diff.x.textconv" },
	{ "[merge \"x\"]\ndriver = x", "merge.x.driver" },
	{ "[include]\npath = x", "include.path" },
	{ "[includeIf \"gitdir:x\"]\npath = x", "includeif.gitdir:x.path" },
	{ "[credential]\nhelper = x", "credential.helper" },
	{ "[gpg]\nprogram = x", "gpg.program" },
	{ "[url \"ext::x\"]\ninsteadOf = y", "url.ext::x.insteadof" },
	{ "[remote \"o\"]\nuploadpack = x", "remote.o.uploadpack" },
	{ "[remote \"o\"]\nvcs = x", "remote.o.vcs" },
	{ "[protocol]\nallow = always", "protocol.allow" },
	{ "[submodule \"s\"]\nupdate = !x", "submodule.s.update" },
	{ "[branch \"b\"]\nmergeoptions = -s x", "branch.b.mergeoptions" },
	{ "[remote \"o\"]\nurl = ext::sh", "remote.o.url" },
	{ "[remote \"o\"]\nurl = foo::sh", "remote.o.url" },
	{ "[remote \"o\"]\nurl = ext://sh", "remote.o.url" },
	{ "[remote \"o\"]\nurl = --upload-pack=x", "remote.o.url" },
	{ "[remote \"o\"]\nurl = ssh://-oProxyCommand=x/", "remote.o.url" },
	{ "[remote \"o\"]\nurl", "remote.o.url" },
	{ "[remote \"o\"]\nurl = \"ext:\":x", "remote.o.url" },
	{ "[remote \"o\"]\nurl = ext\\\n::x", "remote.o.url" },
	{ "[branch \"b\"]\nremote = ext::sh", "branch.b.remote" },
	{ "[branch \"b\"]\npushRemote = ext::sh", "branch.b.pushremote" },
	{ "[branch \"b\"]\nmerge = -x", "branch.b.merge" },
	{ "[remote \"o\"]\nfetch = -x", "remote.o.fetch" },
	{ "[submodule \"s\"]\nurl = ext::sh", "submodule.s.url" },
	{ "[user]\nname = \"a\\nb\" # \"\n[core] fsmonitor = x",
	  "core.fsmonitor" },
	{ "\xef\xbb\xbf[core]\r\nfsmonitor = x\r\n", "core.fsmonitor" },
	{ "[user] name = x ; [core]\\\n[core] pager = x", "core.pager" },
	{ "[user]\nname = a \\\n; b\n[core] pager = x", "core.pager" },
	{ "[core", "syntax" },
	{ "[core]\nbare = \"false", "syntax" },
	{ "[core]\nbare = \\x", "syntax" },
	{ "[core]\n= x", "syntax" },
	{ "bare = x", "syntax" },
	{ "\xef\xbb", "syntax" },
};

START_TEST(each_unsafe_entry_is_named)
{
	refused(NULL, unsafe[_i].text, unsafe[_i].key);
	if (strcmp(unsafe[_i].key, "syntax") == 0)
		return;

	/* What the host has may stay, but not go and not be turned about. */
	ck_assert_int_eq(judge(unsafe[_i].text, unsafe[_i].text), 0);
	refused(unsafe[_i].text, "", unsafe[_i].key);
}
END_TEST

START_TEST(unsafe_entries_keep_their_order_and_values)
{
	const char *ab = "[core]\neditor = a\neditor = b\n";

	refused(ab, "[core]\neditor = b\neditor = a\n", "core.editor");
	refused(ab, "[core]\neditor = b\n", "core.editor");
	refused(ab, "[core]\neditor = a\neditor = c\n", "core.editor");
	refused("[core]\neditor\n", "[core]\neditor =\n", "core.editor");
	ck_assert_int_eq(judge(ab, "[core]\neditor = a\n[user]\nname = x\n"
				   "[core] editor = \"b\"\n"),
			 0);
}
END_TEST

START_TEST(a_nul_byte_is_refused)
{
	static const char bytes[] = "[user \"a\0b\"]\nname = x\n";
	struct gitconfig_text t = { bytes, sizeof(bytes) - 1 };

	ck_assert_int_eq(gitconfig_judge(NULL, &t, NULL, key, sizeof(key)),
			 -EACCES);
	ck_assert_str_eq(key, "syntax");
}
END_TEST

static bool
is_sub(void *data, const char *value)
{
	(void)data;
	return strcmp(value, "../sub") == 0;
}

START_TEST(the_worktree_is_for_its_place_to_judge)
{
	struct gitconfig_place place = { .worktree_ok = is_sub };
	struct gitconfig_text good = text("[core]\nworktree = ../sub\n");
	struct gitconfig_text bad = text("[core]\nworktree = ../other\n");

	ck_assert_int_eq(gitconfig_judge(NULL, &good, &place, key, sizeof(key)),
			 0);
	ck_assert_int_eq(gitconfig_judge(NULL, &bad, &place, key, sizeof(key)),
			 -EACCES);
}
END_TEST

START_TEST(the_format_is_for_its_place_to_judge)
{
	struct gitconfig_place place = { .worktree_ok = is_sub };
	struct gitconfig_text sha1 = text("[core]\nbare = true\n");
	struct gitconfig_text sha256 =
		text("[extensions]\nobjectFormat = sha256\n");

	ck_assert_int_eq(
		gitconfig_judge(&sha1, &sha256, &place, key, sizeof(key)),
		-EACCES);
	ck_assert_str_eq(key, "extensions.objectformat");
	ck_assert_int_eq(
		gitconfig_judge(&sha256, &sha1, NULL, key, sizeof(key)),
		-EACCES);
	place.format_ok = true;
	ck_assert_int_eq(
		gitconfig_judge(&sha1, &sha256, &place, key, sizeof(key)), 0);
}
END_TEST

/* ---- against the real git ---- */

static int
list_entry(void *data, const char *name, const char *value)
{
	struct buf *out = data;

	buf_puts(out, name);
	if (value) {
		buf_puts(out, "\n");
		buf_puts(out, value);
	}
	buf_put(out, "", 1);
	return 0;
}

static const char *const pieces[] = {
	"[core]",
	"[a.B]",
	"[a \"B c\"]",
	"[x \"q\\\"\\\\y\"]",
	"[",
	"]",
	"\"",
	"\\",
	"\\\n",
	"\n",
	"\r\n",
	"\r",
	"\t",
	" ",
	"=",
	" = ",
	"key",
	"K-2",
	"v",
	";",
	"#",
	"\\t",
	"\\n",
	"\\\"",
	"\\\\",
	".",
	"\b",
	"1",
	"\xc3\xa4",
	"\xef\xbb\xbf",
	"[s]\nn = v\n",
	"[S]k\n",
	"k=\"a b\"\n",
};

static void
random_text(unsigned int *seed, struct buf *out)
{
	int n = rand_r(seed) % 14;

	if (rand_r(seed) % 3)
		buf_puts(out, "[s]");
	for (int i = 0; i < n; i++)
		buf_puts(out, pieces[(size_t)rand_r(seed) %
				     (sizeof(pieces) / sizeof(*pieces))]);
}

START_TEST(the_parser_agrees_with_git)
{
	char path[] = "/tmp/test-gitconfig-XXXXXX", command[128];
	unsigned int seed = (unsigned int)_i + 1;
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	snprintf(command, sizeof(command), "git config --list -z -f %s 2>&-",
		 path);
	for (int round = 0; round < 60; round++) {
		struct buf in = { 0 }, mine = { 0 };
		char theirs[4096] = { 0 };
		struct gitconfig_text t;
		size_t len;
		FILE *git;
		int r;

		random_text(&seed, &in);
		ck_assert_int_eq(ftruncate(fd, 0), 0);
		ck_assert_int_eq(pwrite(fd, in.data, in.len, 0), (int)in.len);
		git = popen(command, "re");
		ck_assert_ptr_nonnull(git);
		len = fread(theirs, 1, sizeof(theirs), git);

		t = (struct gitconfig_text){ (char *)in.data, in.len };
		r = gitconfig_walk(&t, list_entry, &mine);
		/* Stricter than git it may be, never laxer or different. */
		if (pclose(git) != 0) {
			ck_assert_msg(r < 0, "git refuses <%.*s>", (int)in.len,
				      (char *)in.data);
		} else if (r == 0) {
			ck_assert_msg(
				len == mine.len &&
					(len == 0 ||
					 memcmp(theirs, mine.data, len) == 0),
				"differs on <%.*s>", (int)in.len,
				(char *)in.data);
		} else {
			/* Only a key before the first section. */
			ck_assert_msg(
				strcspn(theirs, "\n") <= strcspn(theirs, "."),
				"refuses <%.*s>", (int)in.len, (char *)in.data);
		}
		buf_fini(&in);
		buf_fini(&mine);
	}
	close(fd);
	unlink(path);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("gitconfig");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, what_git_writes_by_itself_is_safe);
	tcase_add_loop_test(tc, each_unsafe_entry_is_named, 0,
			    sizeof(unsafe) / sizeof(*unsafe));
	tcase_add_test(tc, unsafe_entries_keep_their_order_and_values);
	tcase_add_test(tc, a_nul_byte_is_refused);
	tcase_add_test(tc, the_worktree_is_for_its_place_to_judge);
	tcase_add_test(tc, the_format_is_for_its_place_to_judge);
	if (system("git --version >/dev/null 2>&1") == 0)
		tcase_add_loop_test(tc, the_parser_agrees_with_git, 0, 8);
	return suite_run("policy/gitconfig", tc);
}
