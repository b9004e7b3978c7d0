/* SPDX-License-Identifier: MIT */

/* pale fs stat, and pale fs list */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/limits.h"
#include "cli/fs_walk.h"
#include "fusefs/target.h"

static const char *
type_name(mode_t mode)
{
	return S_ISREG(mode)   ? "file"
	       : S_ISDIR(mode) ? "directory"
	       : S_ISLNK(mode) ? "symlink"
			       : "other";
}

int
fs_verb_find(struct fs_verb *verb, const char *operand, char **ret_path,
	     struct target *ret_target, struct stat *ret_st)
{
	bool missing = false;
	int r = fs_verb_locate(verb, operand, ret_path);

	if (r == 0)
		r = target_open(verb->policy, *ret_path, ret_target, &missing,
				&verb->fail);
	if (r != 0)
		return r;
	if (!missing && fstatat(ret_target->dirfd, ret_target->name, ret_st,
				AT_SYMLINK_NOFOLLOW) < 0) {
		missing = errno == ENOENT;
		if (!missing)
			return fsfail_errno(&verb->fail, -errno, "find",
					    operand);
	}
	r = fsfail_judge_look(&verb->fail, verb->policy, *ret_path,
			      !missing && S_ISDIR(ret_st->st_mode));
	if (r == 0 && missing)
		r = fsfail_set(&verb->fail, FSFAIL_NOT_FOUND,
			       "'%s' is not there", operand);
	return r;
}

/* ---- stat ---- */

static void
print_stat(const char *path, const struct stat *st,
	   const struct version *version)
{
	struct buf name = { 0 };

	escape_controls(&name, path, strlen(path));
	printf("path     %.*s\n", (int)name.len,
	       name.data ? (const char *)name.data : "");
	printf("type     %s\n", type_name(st->st_mode));
	printf("size     %lld\n", (long long)st->st_size);
	printf("mode     %04o\n", (unsigned int)st->st_mode & 07777);
	if (version->text[0])
		printf("version  %s\n", version->text);
	buf_fini(&name);
}

static int
print_stat_json(const char *path, const struct stat *st,
		const struct version *version)
{
	struct buf out = { 0 };
	char mode[8];

	(void)snprintf(mode, sizeof(mode), "%04o",
		       (unsigned int)st->st_mode & 07777);
	jsonw_begin(&out, '{');
	jsonw_pair(&out, "path", path);
	jsonw_pair(&out, "type", type_name(st->st_mode));
	jsonw_pair_uint(&out, "size", (uint64_t)st->st_size);
	jsonw_pair(&out, "mode", mode);
	jsonw_pair_uint(&out, "uid", st->st_uid);
	jsonw_pair_uint(&out, "gid", st->st_gid);
	jsonw_pair_uint(&out, "links", st->st_nlink);
	jsonw_pair_int(&out, "mtime",
		       (int64_t)st->st_mtim.tv_sec * 1000000000 +
			       st->st_mtim.tv_nsec);
	jsonw_pair(&out, "version", version->text[0] ? version->text : NULL);
	jsonw_end(&out, '}');
	return cli_print_json(&out) < 0 ? fsfail_status(FSFAIL_IO_ERROR) : 0;
}

int
fs_run_stat(struct fs_verb *verb, char **operands)
{
	_cleanup_(target_fini) struct target target = TARGET_NONE;
	_cleanup_(freep) char *path = NULL;
	_cleanup_(closep) int fd = -1;
	struct version version = { "" };
	struct fsfail none = { .code = FSFAIL_NONE };
	struct stat st = { .st_mode = 0 };

	if (fs_verb_find(verb, operands[0], &path, &target, &st) != 0)
		return fs_verb_failed(verb, operands[0]);
	/* Who may not read it gets no version, and the rest all the same. */
	if (S_ISREG(st.st_mode) &&
	    target_open_file(&target, &fd, &st, &none) == 0 &&
	    version_of_fd(fd, &version) < 0)
		version.text[0] = '\0';
	if (verb->options->common.json)
		return print_stat_json(path, &st, &version);
	print_stat(path, &st, &version);
	return 0;
}

/* ---- list ---- */

static void
print_entry(const char *path, const char *name, const struct stat *st,
	    bool json)
{
	struct buf out = { 0 };

	if (!json) {
		escape_controls(&out, name, strlen(name));
		printf("%.*s%s\n", (int)out.len,
		       out.data ? (const char *)out.data : "",
		       S_ISDIR(st->st_mode) ? "/" : "");
		buf_fini(&out);
		return;
	}
	jsonw_begin(&out, '{');
	jsonw_pair(&out, "name", name);
	jsonw_pair(&out, "path", path);
	jsonw_pair(&out, "type", type_name(st->st_mode));
	if (S_ISREG(st->st_mode))
		jsonw_pair_uint(&out, "size", (uint64_t)st->st_size);
	jsonw_end(&out, '}');
	(void)cli_print_json(&out);
}

/* Whether there was something to show. */
static bool
show_entry(struct fs_verb *verb, const char *dir, int dirfd, const char *name)
{
	struct fsfail look = { .code = FSFAIL_NONE };
	_cleanup_(freep) char *path = NULL;
	struct stat st;

	if (asprintf(&path, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, name) <
	    0) {
		path = NULL;
		return false;
	}
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fsfail_judge_look(&look, verb->policy, path, S_ISDIR(st.st_mode)) <
		    0)
		return false;
	print_entry(path, name, &st, verb->options->common.json);
	return true;
}

static int
list(struct fs_verb *verb, const char *path, int dirfd)
{
	uint64_t max =
		verb->options->max ? verb->options->max : LIMIT_LIST_ROWS;
	_cleanup_(strv_fini) struct strv names = { 0 };
	uint64_t shown = 0;
	size_t i;
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : fs_names(fd, &names);

	if (r < 0)
		return fsfail_errno(&verb->fail, r, "list", path);
	for (i = 0; i < names.count && shown < max; i++)
		if (show_entry(verb, path, dirfd, names.items[i]))
			shown++;
	if (i < names.count)
		cli_error("note: the first %llu entries; --max shows more",
			  (unsigned long long)shown);
	return 0;
}

int
fs_run_list(struct fs_verb *verb, char **operands)
{
	_cleanup_(target_fini) struct target target = TARGET_NONE;
	const char *operand = operands[0] ? operands[0] : ".";
	_cleanup_(freep) char *path = NULL;
	_cleanup_(closep) int fd = -1;
	struct stat st;
	int r = fs_verb_find(verb, operand, &path, &target, &st);

	if (r == 0) {
		fd = openat(target.dirfd, target.name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? fsfail_errno(&verb->fail, -errno, "list", operand)
			   : list(verb, path, fd);
	}
	return r != 0 ? fs_verb_failed(verb, operand) : 0;
}
