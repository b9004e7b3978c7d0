/* SPDX-License-Identifier: MIT */

/*
 * From what was asked to a policy.  Layers are laid over each other, the
 * narrowest last: [default], [workspace], the command line; a preset lies just
 * below the layer that chose it, and only the last choice of one counts.  A
 * single value is the last layer's; lists add up.  Then every path is made
 * canonical, and what cannot work is refused here, with the reason.
 */

#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/fd.h"
#include "base/limits.h"
#include "policy/nsswitch.h"
#include "policy/policy_priv.h"

/* What has been laid so far; the texts are borrowed from the layers. */
struct merge {
	struct policy_request all; /* lists are owned here */
	const char *mode_source;
	bool home_explicit;
	bool no_protect;
	struct rules *rules;
	struct errmsg *why;
};

static int
oom(struct errmsg *why)
{
	(void)errmsg_set(why, -ENOMEM, "out of memory");
	return -ENOMEM;
}

static int
add_rules(struct merge *m, enum rule_kind kind, const struct strv *patterns,
	  const char *source)
{
	for (size_t i = 0; i < patterns->count; i++) {
		const char *text = patterns->items[i];
		int r;

		if (kind == RULE_PROTECT && strcmp(text, "none") == 0) {
			m->no_protect = true;
			continue;
		}
		r = rules_add(m->rules, kind, text, source, m->why);
		if (r < 0)
			return r;
	}
	return 0;
}

static void
lay_limits(struct policy_limits *to, const struct policy_limits *from)
{
	if (from->timeout_ms)
		to->timeout_ms = from->timeout_ms;
	if (from->linger_ms)
		to->linger_ms = from->linger_ms;
	if (from->memory)
		to->memory = from->memory;
	if (from->pids)
		to->pids = from->pids;
	if (from->cpu_percent)
		to->cpu_percent = from->cpu_percent;
	if (from->jobs)
		to->jobs = from->jobs;
	if (from->jobs_kept)
		to->jobs_kept = from->jobs_kept;
	if (from->jobs_bytes)
		to->jobs_bytes = from->jobs_bytes;
	if (from->terminals)
		to->terminals = from->terminals;
	if (from->terminals_kept)
		to->terminals_kept = from->terminals_kept;
}

static int
lay_lists(struct merge *m, const struct policy_request *layer,
	  const char *source)
{
	struct policy_request *all = &m->all;
	int r;

	if (strv_extend(&all->rw, &layer->rw) < 0 ||
	    strv_extend(&all->hide_paths, &layer->hide_paths) < 0 ||
	    strv_extend(&all->sockets, &layer->sockets) < 0 ||
	    strv_extend(&all->devices, &layer->devices) < 0 ||
	    strv_extend(&all->env_hide, &layer->env_hide) < 0)
		return oom(m->why);
	r = add_rules(m, RULE_PROTECT, &layer->protect, source);
	if (r == 0)
		r = add_rules(m, RULE_HIDE, &layer->hide, source);
	if (r == 0)
		r = add_rules(m, RULE_ALLOW, &layer->allow, source);
	return r;
}

static int
lay(struct merge *m, const struct policy_request *layer, const char *source)
{
	struct policy_request *all = &m->all;

	if (layer->mode) {
		all->mode = layer->mode;
		m->mode_source = source;
	}
	if (layer->net)
		all->net = layer->net;
	if (layer->home) {
		all->home = layer->home;
		m->home_explicit = strcmp(source, "preset") != 0;
	}
	if (layer->tmp >= 0)
		all->tmp = layer->tmp;
	if (layer->nest >= 0)
		all->nest = layer->nest;
	all->require_full |= layer->require_full;
	all->require_limits |= layer->require_limits;
	lay_limits(&all->limits, &layer->limits);
	return lay_lists(m, layer, source);
}

/* ---- the layers ---- */

/* Everything that a request is merged with. */
struct layers {
	struct config builtin, file, rc;
	const struct config_section *general, *workspace;
};

static void
layers_fini(struct layers *layers)
{
	config_fini(&layers->builtin);
	config_fini(&layers->file);
	config_fini(&layers->rc);
}

/* `missing_ok`: no such file is an empty one. */
static int
load_file(const char *path, int flags, enum config_syntax syntax,
	  bool missing_ok, struct config *ret_config, struct errmsg *why)
{
	_cleanup_(freep) char *text = NULL;
	_cleanup_(closep) int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
	struct stat st;
	size_t len;
	int r;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR) && missing_ok)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = -errno;
		return errmsg_set(why, r, "cannot read '%s': %s", path,
				  strerror(-r));
	}
	if (!S_ISREG(st.st_mode))
		return errmsg_set(why, -EINVAL, "'%s' is not a plain file",
				  path);
	r = fd_read_file(fd, LIMIT_CONFIG_BYTES, &text, &len);
	if (r < 0)
		return errmsg_set(why, r, "cannot read '%s': %s", path,
				  strerror(-r));
	return config_parse(text, len, path, syntax, ret_config, why);
}

static int
load_config(const struct policy_request *request, struct config *ret_config,
	    struct errmsg *why)
{
	_cleanup_(freep) char *dir = NULL, *path = NULL;

	if (request->config_path)
		return load_file(request->config_path, 0, CONFIG_SYNTAX_FILE,
				 false, ret_config, why);
	if (dirs_config(&dir) < 0)
		return oom(why);
	if (asprintf(&path, "%s/config.ini", dir) < 0) {
		path = NULL;
		return oom(why);
	}
	/* In a world it is covered: that world's policy holds all the same. */
	if (getenv("PALE_WORLD") && access(path, F_OK) < 0 && errno == EACCES)
		return 0;
	return load_file(path, 0, CONFIG_SYNTAX_FILE, true, ret_config, why);
}

static int
load_layers(const struct policy_request *request, const char *workspace,
	    struct layers *layers, struct errmsg *why)
{
	_cleanup_(freep) char *path = NULL;
	int r;

	r = config_parse(preset_builtin_text, strlen(preset_builtin_text),
			 "presets", CONFIG_SYNTAX_BUILTIN, &layers->builtin,
			 why);
	if (r < 0)
		return r;
	r = load_config(request, &layers->file, why);
	if (r < 0)
		return r;
	layers->general = config_find(&layers->file, CONFIG_DEFAULT, "");
	layers->workspace =
		config_find(&layers->file, CONFIG_WORKSPACE, workspace);
	if (asprintf(&path, "%s/.palerc", workspace) < 0) {
		path = NULL;
		return oom(why);
	}
	/* A link would let the workspace choose a file outside it. */
	return load_file(path, O_NOFOLLOW, CONFIG_SYNTAX_RC, true, &layers->rc,
			 why);
}

static int
unknown_preset(const struct layers *layers, const char *name,
	       struct errmsg *why)
{
	const char *names[64] = { NULL }, *nearest;
	size_t n = 0;

	if (strcmp(name, "custom") == 0)
		return errmsg_set(why, -EINVAL,
				  "'custom' is the word for no preset; it "
				  "cannot be chosen");
	for (size_t i = 0; i < layers->builtin.count && n < 63; i++)
		names[n++] = layers->builtin.sections[i].name;
	for (size_t i = 0; i < layers->file.count && n < 63; i++)
		if (layers->file.sections[i].kind == CONFIG_PRESET)
			names[n++] = layers->file.sections[i].name;
	nearest = config_nearest(name, names);
	if (nearest)
		return errmsg_set(why, -EINVAL,
				  "unknown preset '%s'; did you mean '%s'?",
				  name, nearest);
	return errmsg_set(why, -EINVAL, "unknown preset '%s'", name);
}

/* One or more names, with commas between. */
static int
lay_presets(struct merge *m, const struct layers *layers, const char *presets)
{
	_cleanup_(freep) char *copy = strdup(presets);

	if (!copy)
		return oom(m->why);
	for (char *save, *name = strtok_r(copy, ",", &save); name;
	     name = strtok_r(NULL, ",", &save)) {
		const struct config_section *preset =
			config_find(&layers->builtin, CONFIG_PRESET, name);
		int r;

		if (!preset)
			preset =
				config_find(&layers->file, CONFIG_PRESET, name);
		if (!preset)
			return unknown_preset(layers, name, m->why);
		r = lay(m, &preset->request, "preset");
		if (r < 0)
			return r;
	}
	return 0;
}

static int
lay_with_preset(struct merge *m, const struct layers *layers,
		const struct policy_request *layer, const char *source,
		const char *preset)
{
	int r;

	if (preset && layer->preset == preset) {
		r = lay_presets(m, layers, preset);
		if (r < 0)
			return r;
	}
	return lay(m, layer, source);
}

static int
lay_all(struct merge *m, const struct layers *layers,
	const struct policy_request *request)
{
	const char *preset = request->preset;
	int r = 0;

	if (!preset && layers->workspace)
		preset = layers->workspace->request.preset;
	if (!preset && layers->general)
		preset = layers->general->request.preset;

	if (layers->general)
		r = lay_with_preset(m, layers, &layers->general->request,
				    "config", preset);
	if (r == 0 && layers->workspace)
		r = lay_with_preset(m, layers, &layers->workspace->request,
				    "config", preset);
	if (r == 0 && layers->rc.count > 0)
		r = lay(m, &layers->rc.sections[0].request, ".palerc");
	if (r == 0)
		r = lay_with_preset(m, layers, request, "command line", preset);
	return r;
}

/* ---- paths ---- */

static int
find_home(char **ret_home)
{
	const char *home = getenv("HOME");

	if (!home || home[0] != '/') {
		const struct passwd *pw = getpwuid(getuid());

		home = pw ? pw->pw_dir : NULL;
	}
	*ret_home = home ? realpath(home, NULL) : NULL;
	return *ret_home || !home || errno != ENOMEM ? 0 : -ENOMEM;
}

/* "~/x" from the home directory; otherwise a copy. */
static char *
expand(const struct policy *policy, const char *path)
{
	char *full;

	if (strncmp(path, "~/", 2) != 0 || !policy->home_path)
		return strdup(path);
	return asprintf(&full, "%s/%s", policy->home_path, path + 2) < 0 ? NULL
									 : full;
}

/* The canonical form of an existing path. */
static int
canonical(const struct policy *policy, const char *what, const char *path,
	  char **ret_path, struct errmsg *why)
{
	_cleanup_(freep) char *full = expand(policy, path);
	int r;

	if (!full)
		return oom(why);
	*ret_path = realpath(full, NULL);
	if (*ret_path)
		return 0;
	/* Never 0, which would be success without a path. */
	r = errno;
	r = r > 0 ? -r : -EIO;
	(void)errmsg_set(why, r, "%s '%s': %s", what, path, strerror(-r));
	return r;
}

/* Places that the world makes anew and that cannot be a root of anything. */
static int
check_place(const char *what, const char *path, struct errmsg *why)
{
	if (strcmp(path, "/") == 0)
		return errmsg_set(why, -EINVAL,
				  "%s '/': the whole machine cannot be fenced "
				  "in; name a directory below it",
				  what);
	if (path_is_in(path, "/proc", NULL) || path_is_in(path, "/sys", NULL) ||
	    (path_is_in(path, "/dev", NULL) &&
	     strncmp(path, "/dev/shm/", 9) != 0))
		return errmsg_set(why, -EINVAL,
				  "%s '%s': /proc, /sys and /dev are the "
				  "world's own",
				  what, path);
	return 0;
}

static int
check_directory(const char *what, const char *path, struct errmsg *why)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errmsg_set(why, -errno, "%s '%s': %s", what, path,
				  strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return errmsg_set(why, -ENOTDIR, "%s '%s': not a directory",
				  what, path);
	return 0;
}

static int
add_root(struct policy *policy, enum policy_root_kind kind, const char *path,
	 struct errmsg *why)
{
	int r = policy_add_root(policy, kind, path);

	if (r == -E2BIG)
		return errmsg_set(why, r, "more than %d roots", LIMIT_ROOTS);
	return r < 0 ? oom(why) : 0;
}

static int
resolve_workspace(const struct policy_request *request, struct policy *policy,
		  struct errmsg *why)
{
	const char *asked = request->workspace ? request->workspace : ".";
	_cleanup_(freep) char *path = NULL;
	int r;

	r = canonical(policy, "workspace", asked, &path, why);
	if (r == 0)
		r = check_directory("workspace", path, why);
	return r < 0 ? r : add_root(policy, POLICY_ROOT_WORKSPACE, path, why);
}

/* A root that lies in one that is served by FUSE already adds nothing. */
static bool
is_served(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->n_roots; i++)
		if (policy->roots[i].kind == POLICY_ROOT_WORKSPACE &&
		    path_is_in(path, policy->roots[i].path, NULL))
			return true;
	for (size_t i = 0; i < policy->n_roots; i++)
		if (strcmp(policy->roots[i].path, path) == 0)
			return true;
	return false;
}

static int
resolve_rw(const struct merge *m, struct policy *policy)
{
	for (size_t i = 0; i < m->all.rw.count; i++) {
		_cleanup_(freep) char *path = NULL;
		int r;

		r = canonical(policy, "--rw", m->all.rw.items[i], &path,
			      m->why);
		if (r == 0)
			r = check_place("--rw", path, m->why);
		if (r == 0)
			r = check_directory("--rw", path, m->why);
		if (r == 0 && !is_served(policy, path))
			r = add_root(policy, POLICY_ROOT_RW, path, m->why);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
resolve_git(struct policy *policy, struct errmsg *why)
{
	_cleanup_(freep) char *path = NULL;
	int r = gitroot_find(policy->roots[0].path, &path);

	if (r < 0)
		return oom(why);
	if (!path)
		return 0;
	return add_root(policy, POLICY_ROOT_GIT, path, why);
}

/* Bytes that mean something in a pattern lose it. */
char *
pattern_quote(const char *rest)
{
	char *text = malloc(2 * strlen(rest) + 2), *to = text;

	if (!text)
		return NULL;
	*to++ = '/';
	for (; *rest; rest++) {
		if (strchr("*?[]\\!#", *rest))
			*to++ = '\\';
		*to++ = *rest;
	}
	*to = '\0';
	return text;
}

/* What is hidden in a served root is a rule; elsewhere it is covered. */
static int
hide_path(struct merge *m, struct policy *policy, const char *path)
{
	_cleanup_(freep) char *pattern = NULL;
	const char *rest;
	int root;

	for (size_t i = 0; i < policy->n_roots; i++)
		if (path_is_in(policy->roots[i].path, path, NULL))
			return errmsg_set(m->why, -EINVAL,
					  "--hide-path '%s' would hide '%s', "
					  "which this world works on",
					  path, policy->roots[i].path);
	root = policy_root_of(policy, path, &rest);
	if (root < 0 || policy->roots[root].kind == POLICY_ROOT_RW)
		return strv_add(&policy->hide_paths, path) < 0 ? oom(m->why)
							       : 0;
	pattern = pattern_quote(rest);
	if (!pattern)
		return oom(m->why);
	return rules_add(m->rules, RULE_HIDE, pattern, "hide-path", m->why);
}

static int
resolve_hide_paths(struct merge *m, struct policy *policy)
{
	for (size_t i = 0; i < m->all.hide_paths.count; i++) {
		const char *asked = m->all.hide_paths.items[i];
		_cleanup_(freep) char *full = expand(policy, asked);
		_cleanup_(freep) char *path = NULL;
		int r;

		if (!full)
			return oom(m->why);
		/* What is not there may come: then its name counts. */
		path = realpath(full, NULL);
		if (!path && errno == ENOMEM)
			return oom(m->why);
		if (!path)
			path = take_ptr(&full);
		if (!path_is_clean(path))
			return errmsg_set(m->why, -EINVAL,
					  "--hide-path '%s' must be an "
					  "absolute path without '.' and '..'",
					  asked);
		r = hide_path(m, policy, path);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A word for a well-known socket, or the path itself. */
static const char *
socket_by_name(const char *asked)
{
	if (strcmp(asked, "ssh-agent") == 0)
		return getenv("SSH_AUTH_SOCK");
	if (strcmp(asked, "docker") == 0)
		return "/run/docker.sock";
	return asked;
}

static int
resolve_sockets(const struct merge *m, struct policy *policy)
{
	for (size_t i = 0; i < m->all.sockets.count; i++) {
		const char *asked = m->all.sockets.items[i];
		const char *named = socket_by_name(asked);
		_cleanup_(freep) char *path = NULL;
		struct stat st;
		int r;

		if (!named)
			return errmsg_set(m->why, -ENOENT,
					  "--socket %s: SSH_AUTH_SOCK is not "
					  "set",
					  asked);
		r = canonical(policy, "--socket", named, &path, m->why);
		if (r < 0)
			return r;
		if (stat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
			return errmsg_set(m->why, -EINVAL,
					  "--socket '%s': not a socket", named);
		if (strv_add(&policy->sockets, path) < 0)
			return oom(m->why);
	}
	return 0;
}

static int
resolve_devices(const struct merge *m, struct policy *policy)
{
	for (size_t i = 0; i < m->all.devices.count; i++) {
		const char *asked = m->all.devices.items[i];
		_cleanup_(freep) char *path = NULL;
		struct stat st;
		int r;

		r = canonical(policy, "--dev", asked, &path, m->why);
		if (r < 0)
			return r;
		if (!path_is_in(path, "/dev", NULL) || stat(path, &st) < 0 ||
		    (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode)))
			return errmsg_set(m->why, -EINVAL,
					  "--dev '%s': not a device in /dev",
					  asked);
		if (strv_add(&policy->devices, path) < 0)
			return oom(m->why);
	}
	return 0;
}

/* ---- values ---- */

bool
policy_session_is_valid(const char *name)
{
	size_t len = strlen(name);

	return len >= 1 && len <= 64 &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "abcdefghijklmnopqrstuvwxyz"
			    "0123456789._-") == len;
}

static int
set_session(const struct policy_request *request, struct policy *policy,
	    struct errmsg *why)
{
	const char *name = request->session ? request->session : "default";

	if (!policy_session_is_valid(name))
		return errmsg_set(why, -EINVAL,
				  "session '%s': a name is 1 to 64 of "
				  "A-Z a-z 0-9 . _ -",
				  name);
	policy->session = strdup(name);
	return policy->session ? 0 : oom(why);
}

static int
set_mode(const struct merge *m, struct policy *policy)
{
	static const char *const names[] = { "read-only", "workspace-write",
					     "danger-full-access", NULL };
	const char *mode = m->all.mode ? m->all.mode : names[0], *nearest;

	if (policy_mode_parse(mode, &policy->mode) < 0) {
		nearest = config_nearest(mode, names);
		return errmsg_set(m->why, -EINVAL,
				  "unknown mode '%s'; did you mean '%s'?", mode,
				  nearest ? nearest : names[0]);
	}
	policy->mode_source =
		strdup(m->mode_source ? m->mode_source : "default");
	return policy->mode_source ? 0 : oom(m->why);
}

/* A layer over the home must not lie over what the world needs itself. */
static bool
may_be_private(const struct policy *policy)
{
	static const char *const needed[] = { "/tmp", "/var/tmp", "/run",
					      "/dev", "/proc",	  "/sys" };
	const char *home = policy->home_path;
	struct stat st;

	if (!home || stat(home, &st) < 0 || !S_ISDIR(st.st_mode) ||
	    path_is_in(home, policy->roots[0].path, NULL))
		return false;
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (path_is_in(needed[i], home, NULL))
			return false;
	return !path_is_in(home, "/proc", NULL) &&
	       !path_is_in(home, "/sys", NULL) &&
	       !path_is_in(home, "/dev", NULL);
}

static int
set_switches(const struct merge *m, struct policy *policy)
{
	const struct policy_request *all = &m->all;
	bool private_home;

	if (all->net && strcmp(all->net, "host") != 0 &&
	    strcmp(all->net, "none") != 0)
		return errmsg_set(m->why, -EINVAL,
				  "unknown net '%s': 'host' or 'none'",
				  all->net);
	if (all->home && strcmp(all->home, "ro") != 0 &&
	    strcmp(all->home, "private") != 0)
		return errmsg_set(m->why, -EINVAL,
				  "unknown home '%s': 'ro' or 'private'",
				  all->home);
	private_home = all->home && strcmp(all->home, "private") == 0;
	policy->net = all->net && strcmp(all->net, "none") == 0
			      ? POLICY_NET_NONE
			      : POLICY_NET_HOST;
	policy->nest = all->nest != 0;
	policy->require_full = all->require_full;
	policy->require_limits = all->require_limits;
	policy->limits = all->limits;
	policy->tmp_writable = all->tmp > 0 || policy->mode != POLICY_READ_ONLY;

	/* A preset's wish gives way; a person's is answered. */
	if (private_home && !may_be_private(policy)) {
		if (m->home_explicit)
			return errmsg_set(m->why, -EINVAL,
					  "a private home is not possible: "
					  "'%s' is no directory, in the "
					  "workspace, or needed by the world",
					  policy->home_path ? policy->home_path
							    : "$HOME");
		private_home = false;
	}
	policy->home = private_home ? POLICY_HOME_PRIVATE : POLICY_HOME_RO;
	return 0;
}

/* ---- the whole ---- */

static int
resolve_paths(struct merge *m, struct policy *policy)
{
	int r;

	if (policy->mode == POLICY_DANGER_FULL_ACCESS)
		return 0;
	r = check_place("workspace", policy->roots[0].path, m->why);
	if (r == 0)
		r = resolve_git(policy, m->why);
	if (r == 0)
		r = resolve_rw(m, policy);
	if (r == 0)
		r = resolve_hide_paths(m, policy);
	if (r == 0)
		r = resolve_sockets(m, policy);
	if (r == 0)
		r = resolve_devices(m, policy);
	if (r == 0 && nsswitch_resolve(policy) < 0)
		r = oom(m->why);
	return r;
}

static int
resolve(const struct policy_request *request, struct merge *m,
	struct layers *layers, struct policy *policy)
{
	int r;

	if (find_home(&policy->home_path) < 0)
		return oom(m->why);
	r = resolve_workspace(request, policy, m->why);
	if (r == 0)
		r = set_session(request, policy, m->why);
	if (r == 0)
		r = load_layers(request, policy->roots[0].path, layers, m->why);
	if (r == 0)
		r = lay_all(m, layers, request);
	if (r == 0)
		r = set_mode(m, policy);
	if (r == 0)
		r = set_switches(m, policy);
	if (r == 0)
		r = resolve_paths(m, policy);
	if (r < 0)
		return r;
	policy->git_guard = !m->no_protect;
	if (!m->no_protect && rules_add_builtin(m->rules) < 0)
		return oom(m->why);
	/* Also in read-only, which may become wider while it runs. */
	if (!m->no_protect && policy->mode != POLICY_DANGER_FULL_ACCESS)
		r = githost_protect(policy, m->rules, m->why);
	if (r < 0)
		return r;
	if (strv_extend(&policy->env_hide, &m->all.env_hide) < 0)
		return oom(m->why);
	return 0;
}

int
policy_resolve(const struct policy_request *request, struct policy **ret_policy,
	       struct errmsg *why)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		calloc(1, sizeof(*policy));
	struct merge m = { .all = policy_request_none(), .why = why };
	struct layers layers = { 0 };
	int r;

	if (!policy || rules_new(&policy->rules) < 0)
		return oom(why);
	policy->refs = 1;
	m.rules = policy->rules;
	r = resolve(request, &m, &layers, policy);
	layers_fini(&layers);
	strv_fini(&m.all.rw);
	strv_fini(&m.all.hide_paths);
	strv_fini(&m.all.sockets);
	strv_fini(&m.all.devices);
	strv_fini(&m.all.env_hide);
	if (r < 0)
		return r;
	*ret_policy = take_ptr(&policy);
	return 0;
}
