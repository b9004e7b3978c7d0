/* SPDX-License-Identifier: MIT */

/*
 * From a request to a terminal, as for jobs (jobs_start.c):
 *
 *	loop   a place among the limits, else TERM_LIMIT; the name
 *	pool   can it run at all?; the record; its directory
 *	loop   into the set, which starts it
 *
 * What is refused on the way leaves no id, no record and no place taken.
 */

#include "warden/terms_priv.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "policy/world_plan.h"
#include "warden/face.h"
#include "warden/preflight.h"

struct term_start {
	LIST_ENTRY(term_start) link;
	uv_work_t work;
	struct terms_host *host;
	struct wterm *term;
	char *spec;
	char *home; /* a private one; NULL: none */
	char *face; /* a mount of the world for the host; NULL: none */
	struct terms_started result;
	void (*done)(const struct terms_started *result, void *data);
	void *data;
};

static void
start_free(struct term_start *start)
{
	if (!start)
		return;
	wterm_free(start->term);
	free(start->spec);
	free(start->home);
	free(start->face);
	free(start);
}

/* ---- names ---- */

bool
terms_name_is_taken(const struct terms_host *host, const char *name,
		    const struct wterm *but)
{
	const struct term_start *start;
	const struct job *core;

	LIST_FOREACH(start, &host->starts, link)
	if (start->term->name && strcmp(start->term->name, name) == 0)
		return true;
	for (size_t i = 0; (core = jobs_at(host->core, i)); i++) {
		const struct wterm *term = core->data;

		if (term != but && term->name &&
		    strcmp(term->name, name) == 0 &&
		    !job_state_is_final(core->state))
			return true;
	}
	return false;
}

void
terms_free_name(struct terms_host *host, const char *name)
{
	const struct job *core;

	for (size_t i = 0; (core = jobs_at(host->core, i)); i++) {
		struct wterm *term = core->data;

		if (!term->name || strcmp(term->name, name) != 0 ||
		    !job_state_is_final(core->state))
			continue;
		free(term->name);
		term->name = NULL;
		terms_store_mark(term);
	}
}

/* ---- what is asked for ---- */

/* Of a terminal that is not ours, or of none. */
static bool
is_stale(const char *variable)
{
	static const char *const names[] = {
		"TERM=",     "COLORTERM=", "TERM_PROGRAM=",
		"TMUX=",     "STY=",	   "TERM_PROGRAM_VERSION=",
		"LINES=",    "COLUMNS=",   "PALE_TERMINAL=",
		"WINDOWID=", "TMUX_PANE=",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static int
take_env(const struct policy *policy, const struct terms_request *request,
	 const char *world, struct strv *ret_env)
{
	static const char *const ours[] = { "TERM=xterm-256color",
					    "COLORTERM=truecolor",
					    "TERM_PROGRAM=pale" };
	_cleanup_(strv_fini) struct strv env = { 0 };
	int r = 0;

	if (!request->env)
		r = preflight_default_env(policy, &env);
	for (size_t i = 0; request->env && i < request->env->count && r == 0;
	     i++)
		if (!is_stale(request->env->items[i]))
			r = strv_add(&env, request->env->items[i]);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]) && r == 0; i++)
		r = strv_add(&env, ours[i]);
	return r < 0 ? r : world_plan_env(policy, world, true, &env, ret_env);
}

/* The user's own shell, as asked for or as on record. */
static int
default_shell(const struct strv *env, struct strv *argv)
{
	const struct passwd *user = getpwuid(geteuid());
	const char *shell = NULL;
	int r;

	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->items[i], "SHELL=/", 7) == 0)
			shell = env->items[i] + 6;
	if (!shell)
		shell = user && user->pw_shell[0] == '/' ? user->pw_shell
							 : "/bin/sh";
	/* An account that shall not log in has one that says so. */
	if (strstr(shell, "nologin") || strcmp(shell, "/bin/false") == 0)
		shell = "/bin/sh";
	r = strv_add(argv, shell);
	return r < 0 ? r : strv_add(argv, "-i");
}

static struct term_asked *
make_asked(const struct policy *policy, const struct terms_request *request,
	   const char *world)
{
	struct term_asked *asked = calloc(1, sizeof(*asked));
	int r = -ENOMEM;

	if (!asked)
		return NULL;
	asked->umask = request->umask;
	asked->cwd =
		strdup(request->cwd ? request->cwd : policy->roots[0].path);
	if (asked->cwd)
		r = take_env(policy, request, world, &asked->env);
	if (r == 0 && request->argv && request->argv->count > 0)
		r = strv_extend(&asked->argv, request->argv);
	else if (r == 0)
		r = default_shell(&asked->env, &asked->argv);
	if (r < 0) {
		term_asked_free(asked);
		return NULL;
	}
	return asked;
}

static unsigned int
clamp(unsigned int cells, unsigned int otherwise, unsigned int most)
{
	if (cells == 0)
		return otherwise;
	return cells < most ? cells : most;
}

static struct wterm *
make_term(struct terms_host *host, const struct policy *policy,
	  const struct terms_request *request)
{
	struct wterm *term = calloc(1, sizeof(*term));

	if (!term)
		return NULL;
	term->host = host;
	term->dir = -1;
	term->core.data = term;
	term->cols = clamp(request->cols, TERMS_COLS, VT_COLS_MAX);
	term->rows = clamp(request->rows, TERMS_ROWS, VT_ROWS_MAX);
	term->created_ns = clock_real_ns();
	term->asked = make_asked(policy, request, host->warden->opt.world);
	if (term->asked)
		term->label = preflight_label(&term->asked->argv);
	if (request->name)
		term->name = strdup(request->name);
	if (term->asked && term->label && (term->name || !request->name))
		return term;
	wterm_free(term);
	return NULL;
}

/* As it was at the start: what is on record of the circumstances. */
static char *
make_spec(const struct policy *policy, const struct term_asked *asked)
{
	struct buf out = { 0 };
	char digest[POLICY_DIGEST_LEN + 1] = "";

	(void)policy_digest(policy, digest);
	jsonw_begin(&out, '{');
	jsonw_pair_strv(&out, "argv", &asked->argv);
	jsonw_pair(&out, "cwd", asked->cwd);
	jsonw_pair_strv(&out, "env", &asked->env);
	jsonw_pair(&out, "mode", policy_mode_name(policy->mode));
	jsonw_pair(&out, "policy", digest);
	jsonw_end(&out, '}');
	buf_put(&out, "", 1);
	if (buf_error(&out) < 0) {
		buf_fini(&out);
		return NULL;
	}
	return (char *)out.data;
}

/* ---- on the pool ---- */

static int
make_files(struct term_start *start)
{
	struct wterm *term = start->term;
	char name[TERMS_ID_MAX];
	int r;

	terms_id_text(term->core.id, name);
	if (mkdirat(start->host->root, name, 0700) < 0)
		return -errno;
	term->dir = openat(start->host->root, name,
			   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* The keeper gets this very open file, and the lock with it. */
	if (term->dir < 0 || flock(term->dir, LOCK_EX) < 0)
		return -errno;
	r = segments_open(term->dir, "raw", &terms_raw_limits, &term->raw);
	if (r == 0)
		r = strv_addf(&term->asked->env, "PALE_TERMINAL=%s", name);
	return r < 0 ? r : term_screen_open(term);
}

static int
put_on_record(struct term_start *start)
{
	struct terms_host *host = start->host;
	struct wterm *term = start->term;
	struct store_term row;
	int r;

	wterm_row(term, &row);
	row.spec = start->spec;
	r = store_term_add(host->store, &row, &term->core.id);
	if (r < 0)
		return r;
	terms_fault(host, "added");
	r = make_files(start);
	if (r < 0) {
		closep(&term->dir);
		term->dir = -1;
		(void)terms_remove_row(
			host->store, host->warden->places.state,
			&(struct store_term){ .id = term->core.id,
					      .world = row.world });
	}
	terms_fault(host, "files");
	return r;
}

static void
on_work(uv_work_t *work)
{
	struct term_start *start = work->data;
	struct terms_host *host = start->host;
	const struct term_asked *asked = start->term->asked;
	const struct preflight flight = { .cwd = asked->cwd,
					  .argv = &asked->argv,
					  .env = &asked->env,
					  .home = start->home,
					  .face = start->face };
	struct terms_started *result = &start->result;
	int r = preflight_check(&flight, &result->why);

	if (r < 0) {
		result->code = TERM_SPAWN_FAILED;
		result->error = r;
		return;
	}
	(void)pthread_mutex_lock(&host->store_lock);
	r = terms_store_open(host, &result->why);
	if (r == 0)
		r = put_on_record(start);
	(void)pthread_mutex_unlock(&host->store_lock);
	result->error = r;
	if (r < 0 && !result->why.text[0])
		(void)errmsg_set(&result->why, 0,
				 "cannot put the terminal on record: %s",
				 strerror(-r));
}

/* ---- into the set ---- */

static void
add(struct term_start *start)
{
	struct terms_host *host = start->host;
	struct wterm *term = start->term;
	int r;

	start->term = NULL;
	term->held = true;
	term->started = start->done;
	term->started_data = start->data;
	start->done = NULL;
	if (term->name)
		terms_free_name(host, term->name);
	warden_hold(host->warden);
	r = jobs_add(host->core, &term->core);
	if (r < 0) {
		/* No memory for a pointer: it will be settled as lost. */
		jobs_give_up(host->core);
		wterm_tell_start(term);
		warden_release(host->warden);
		wterm_free(term);
		return;
	}
	terms_host_rearm(host);
}

static void
on_worked(uv_work_t *work, int status)
{
	struct term_start *start = work->data;
	struct terms_host *host = start->host;

	(void)status;
	LIST_REMOVE(start, link);
	if (start->result.error == 0)
		add(start);
	else
		jobs_give_up(host->core);
	if (start->done)
		start->done(&start->result, start->data);
	warden_release(host->warden);
	start_free(start);
}

static int
admit(struct terms_host *host, const struct terms_request *request,
      struct terms_started *result)
{
	int r = 0;

	if (request->name && !terms_name_is_valid(request->name)) {
		result->error = errmsg_set(
			&result->why, -EINVAL,
			"a name has 1 to %d bytes, no slash, and does not look "
			"like an id",
			TERMS_NAME_MAX);
		return result->error;
	}
	if (request->name && terms_name_is_taken(host, request->name, NULL)) {
		result->code = TERM_NAME_TAKEN;
		result->error = errmsg_set(&result->why, -EEXIST,
					   "another terminal of this world is "
					   "called '%s'",
					   request->name);
		return result->error;
	}
	r = jobs_admit(host->core, false);
	if (r == -EAGAIN) {
		result->code = TERM_LIMIT;
		(void)errmsg_set(&result->why, 0,
				 "%zu terminals live, which is the limit of "
				 "this world (limits: terminals = N); end one",
				 jobs_limits(host->core)->running);
	}
	if (r == -ESHUTDOWN)
		(void)errmsg_set(&result->why, 0, "the world is ending");
	result->error = r;
	return r;
}

static struct term_start *
start_new(struct terms_host *host, const struct terms_request *request)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(host->warden);
	struct term_start *start = calloc(1, sizeof(*start));

	if (!start)
		return NULL;
	start->work.data = start;
	start->host = host;
	start->face = faces_mountpoint(host->warden);
	start->term = make_term(host, policy, request);
	if (start->term)
		start->spec = make_spec(policy, start->term->asked);
	if (policy->home == POLICY_HOME_PRIVATE && policy->home_path)
		start->home = strdup(policy->home_path);
	if (start->spec)
		return start;
	start_free(start);
	return NULL;
}

int
terms_new(struct warden *warden, const struct terms_request *request,
	  void (*done)(const struct terms_started *result, void *data),
	  void *data)
{
	struct terms_started refused = { 0 };
	struct terms_host *host = NULL;
	struct term_start *start;
	int r = terms_host_get(warden, &host);

	if (r < 0)
		return r;
	if (admit(host, request, &refused) < 0) {
		done(&refused, data);
		return 0;
	}
	start = start_new(host, request);
	if (!start) {
		jobs_give_up(host->core);
		return -ENOMEM;
	}
	start->done = done;
	start->data = data;
	warden_hold(warden);
	r = uv_queue_work(&warden->loop, &start->work, on_work, on_worked);
	if (r < 0) {
		warden_release(warden);
		jobs_give_up(host->core);
		start_free(start);
		return r;
	}
	LIST_INSERT_HEAD(&host->starts, start, link);
	return 0;
}
