/* SPDX-License-Identifier: MIT */

/*
 * From a request to a job.
 *
 *	loop   a place among the limits, else JOB_LIMIT
 *	pool   the token's job, if there is one; can it run at all?; the record;
 *	       its directory
 *	loop   into the set, which starts it when its turn has come
 *
 * What is refused on the way leaves no id, no record and no place taken.
 */

#include "warden/jobs_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "policy/world_plan.h"
#include "warden/face.h"
#include "warden/preflight.h"

#define JOBS_NO_PLACE                                                       \
	"%zu jobs run, which is the limit of this session (limits: jobs = " \
	"N); "                                                              \
	"end one, wait for one, or queue"

/* Of a text beside its bytes: a pointer, and what malloc(3) adds. */
#define TEXT_BYTES 32

struct start {
	uv_work_t work;
	struct jobs_host *host;
	struct wjob *job;
	char *spec;
	bool admitted;	 /* has its place among the limits */
	uint64_t others; /* jobs of other worlds: how many may; have begun */
	char *home;	 /* a private one; NULL: none */
	char *face;	 /* a mount of the world for the host; NULL: none */
	struct jobs_started result;
	void (*done)(const struct jobs_started *result, void *data);
	void *data;
};

static const char *const agent_env[] = {
	"TERM=dumb",
	"NO_COLOR=1",
	"PAGER=cat",
	"GIT_PAGER=cat",
	"GIT_TERMINAL_PROMPT=0",
};

static void
start_free(struct start *start)
{
	if (!start)
		return;
	wjob_free(start->job);
	free(start->spec);
	free(start->home);
	free(start->face);
	free(start);
}

/* ---- what is asked for ---- */

static int
take_env(const struct policy *policy, const struct jobs_request *request,
	 const char *world, struct strv *ret_env)
{
	_cleanup_(strv_fini) struct strv env = { 0 };
	bool agent = request->profile && strcmp(request->profile, "agent") == 0;
	int r = 0;

	if (request->env)
		r = strv_extend(&env, request->env);
	else
		r = preflight_default_env(policy, &env);
	for (size_t i = 0;
	     agent && r == 0 && i < sizeof(agent_env) / sizeof(agent_env[0]);
	     i++) {
		size_t name = strcspn(agent_env[i], "=") + 1;
		bool given = false;

		for (size_t k = 0; k < env.count; k++)
			given |= strncmp(env.items[k], agent_env[i], name) == 0;
		if (!given)
			r = strv_add(&env, agent_env[i]);
	}
	return r < 0 ? r : world_plan_env(policy, world, true, &env, ret_env);
}

/* About what a copy takes: small texts are not for nothing. */
static size_t
weight(const struct strv *texts)
{
	size_t bytes = 0;

	for (size_t i = 0; texts && i < texts->count; i++)
		bytes += strlen(texts->items[i]) + TEXT_BYTES;
	return bytes;
}

static struct asked *
make_asked(const struct policy *policy, const struct jobs_request *request,
	   const char *world)
{
	struct asked *asked = calloc(1, sizeof(*asked));
	int r = -ENOMEM;

	if (!asked)
		return NULL;
	asked->stdin_fd = -1;
	asked->stdin_kind = request->stdin_kind;
	asked->umask = request->umask;
	asked->merge = request->merge;
	asked->bytes = weight(request->argv) + weight(request->env);
	asked->cwd =
		strdup(request->cwd ? request->cwd : policy->roots[0].path);
	if (asked->cwd)
		r = strv_extend(&asked->argv, request->argv);
	if (r == 0)
		r = take_env(policy, request, world, &asked->env);
	if (r < 0) {
		asked_free(asked);
		return NULL;
	}
	return asked;
}

static struct wjob *
make_job(struct jobs_host *host, const struct policy *policy,
	 const struct jobs_request *request)
{
	struct wjob *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->host = host;
	job->dir = job->stdin_pipe = -1;
	job->core.data = job;
	job->core.after = request->after;
	job->core.timeout_ms = request->timeout_ms;
	job->core.retry = request->retry;
	job->created_ns = clock_real_ns();
	job->asked = make_asked(policy, request, host->warden->opt.world);
	host->asked_bytes += job->asked ? job->asked->bytes : 0;
	job->label = preflight_label(request->argv);
	if (request->name)
		job->name = strdup(request->name);
	if (request->token)
		job->token = strdup(request->token);
	if (job->asked && job->label && (job->name || !request->name) &&
	    (job->token || !request->token))
		return job;
	wjob_free(job);
	return NULL;
}

/* As it was at the start: what is on record of the circumstances. */
static char *
make_spec(const struct policy *policy, const struct jobs_request *request,
	  const struct asked *asked)
{
	static const char *const stdins[] = { "null", "pipe", "file" };
	struct buf out = { 0 };
	char digest[POLICY_DIGEST_LEN + 1] = "", after[JOBS_ID_MAX];

	(void)policy_digest(policy, digest);
	jsonw_begin(&out, '{');
	jsonw_pair_strv(&out, "argv", &asked->argv);
	jsonw_pair(&out, "cwd", asked->cwd);
	jsonw_pair_strv(&out, "env", &asked->env);
	jsonw_pair(&out, "env_profile",
		   request->profile ? request->profile : "plain");
	jsonw_pair(&out, "mode", policy_mode_name(policy->mode));
	jsonw_pair(&out, "policy", digest);
	jsonw_pair(&out, "stdin", stdins[request->stdin_kind]);
	jsonw_pair_bool(&out, "merge", request->merge);
	jsonw_pair_uint(&out, "timeout_ms", request->timeout_ms);
	jobs_id_text(request->after, after);
	jsonw_pair(&out, "after", request->after ? after : NULL);
	jsonw_pair_uint(&out, "retry", request->retry);
	jsonw_end(&out, '}');
	buf_put(&out, "", 1);
	if (buf_error(&out) < 0) {
		buf_fini(&out);
		return NULL;
	}
	return (char *)out.data;
}

/* ---- can it run at all? on the pool ---- */

static int
refuse(struct start *start, int error, const char *code)
{
	start->result.code = code;
	start->result.error = error;
	return error;
}

static int
check_files(struct start *start)
{
	const struct asked *asked = start->job->asked;
	const struct preflight flight = { .cwd = asked->cwd,
					  .argv = &asked->argv,
					  .env = &asked->env,
					  .home = start->home,
					  .face = start->face };
	int r = preflight_check(&flight, &start->result.why);

	return r < 0 ? refuse(start, r, JOB_SPAWN_FAILED) : 0;
}

/* ---- the record; on the pool ---- */

static int
check_after(const struct store_job *row, void *data)
{
	struct start *start = data;
	const struct warden *warden = start->host->warden;

	if (row->ended_ns == 0 && strcmp(row->world, warden->opt.world) != 0) {
		(void)errmsg_set(&start->result.why, 0,
				 "j%llu, which is to end first, is of another "
				 "world",
				 (unsigned long long)row->id);
		return refuse(start, -EXDEV, JOB_NOT_FOUND);
	}
	if (row->ended_ns != 0 && jobs_row_exit(row) != 0) {
		(void)errmsg_set(&start->result.why, 0,
				 "j%llu, which is to end first, did not end "
				 "well",
				 (unsigned long long)row->id);
		return refuse(start, -ECANCELED, JOB_NOT_RUNNING);
	}
	/* Nothing to wait for, wherever it was. */
	if (row->ended_ns != 0)
		start->job->core.after = 0;
	return 1;
}

static int
take_known(const struct store_job *row, void *data)
{
	struct start *start = data;

	start->result.id = row->id;
	start->result.known = true;
	return 1;
}

static int
look_up(struct start *start)
{
	const struct jobs_host *host = start->host;
	const struct store_jobs_query after = { .id = start->job->core.after,
						.light = true };
	const struct store_jobs_query same = { .workspace = host->workspace,
					       .session = host->session,
					       .token = start->job->token,
					       .light = true };
	int r = 0;

	if (start->job->token)
		r = store_each_job(host->store, &same, take_known, start);
	if (r != 0 || after.id == 0)
		return r < 0 ? r : 0;
	r = store_each_job(host->store, &after, check_after, start);
	if (r == 0) {
		(void)errmsg_set(&start->result.why, 0,
				 "j%llu, which is to end first, is not there",
				 (unsigned long long)after.id);
		return refuse(start, -ENOENT, JOB_NOT_FOUND);
	}
	return r < 0 ? r : 0;
}

static int
make_files(struct start *start)
{
	struct wjob *job = start->job;
	int root = start->host->root;
	char name[JOBS_ID_MAX];

	jobs_id_text(job->core.id, name);
	if (mkdirat(root, name, 0700) < 0)
		return -errno;
	job->dir = openat(root, name,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* The keeper gets this very open file, and the lock with it. */
	if (job->dir < 0 || flock(job->dir, LOCK_EX) < 0)
		return -errno;
	return output_open(job->dir, &jobs_output_limits, &job->output);
}

static int
refuse_place(struct start *start)
{
	(void)errmsg_set(&start->result.why, 0, JOBS_NO_PLACE,
			 jobs_limits(start->host->core)->running);
	return refuse(start, -EAGAIN, JOB_LIMIT);
}

static int
put_on_record(struct start *start)
{
	struct wjob *job = start->job;
	struct jobs_host *host = start->host;
	struct store_job_added added = { 0 };
	struct store_job row;
	int r;

	wjob_row(job, &row);
	row.spec = start->spec;
	r = store_job_add(host->store, &row, start->others, &added);
	/* Those of a dead world have no place. */
	if (r == -EAGAIN &&
	    jobs_settle_dead(host->store, host->warden->places.state, 0,
			     NULL) == 0)
		r = store_job_add(host->store, &row, start->others, &added);
	if (r == -EAGAIN)
		return refuse_place(start);
	if (r < 0)
		return r;
	job->core.id = start->result.id = added.id;
	start->result.known = added.known;
	if (added.known)
		return 0;
	start->others = added.others.started;
	jobs_fault(host, "added");
	r = make_files(start);
	jobs_fault(host, "files");
	if (r < 0) {
		start->result.id = 0;
		(void)store_job_remove(host->store, job->core.id);
	}
	return r;
}

static void
on_work(uv_work_t *work)
{
	struct start *start = work->data;
	struct jobs_host *host = start->host;
	int r;

	(void)pthread_mutex_lock(&host->store_lock);
	r = start->admitted ? 0 : start->result.error;
	if (r == 0 || start->job->token)
		r = jobs_store_open(host, &start->result.why);
	if (r == 0)
		r = look_up(start);
	if (r == 0 && !start->result.known && !start->admitted)
		r = start->result.error;
	if (r == 0 && !start->result.known)
		r = check_files(start);
	if (r == 0 && !start->result.known)
		r = put_on_record(start);
	(void)pthread_mutex_unlock(&host->store_lock);
	start->result.error = r;
	if (r < 0 && !start->result.why.text[0])
		(void)errmsg_set(&start->result.why, 0,
				 "cannot put the job on record: %s",
				 strerror(-r));
}

/* ---- into the set ---- */

static void
add(struct start *start)
{
	struct jobs_host *host = start->host;
	struct wjob *job = start->job;
	int r;

	start->job = NULL;
	jobs_set_others(host->core, start->others);
	job->held = true;
	job->started = start->done;
	job->started_data = start->data;
	start->done = NULL;
	warden_hold(host->warden);
	r = jobs_add(host->core, &job->core);
	if (r < 0) {
		/* No memory for a pointer: it will be settled as lost. */
		jobs_give_up(host->core);
		wjob_tell_start(job);
		warden_release(host->warden);
		wjob_free(job);
		return;
	}
	/*
	 * One that waits for a place has nothing more to say.  One that has a
	 * place is told of when it runs: its caller may remove the directory
	 * that it starts in.
	 */
	if (job->core.state != JOB_STARTING)
		wjob_tell_start(job);
	if (job->core.state == JOB_QUEUED)
		jobs_fault(host, job->core.after ? "after" : "queued");
	jobs_host_rearm(host);
}

static void
on_worked(uv_work_t *work, int status)
{
	struct start *start = work->data;
	struct jobs_host *host = start->host;

	(void)status;
	if (start->result.error == 0 && !start->result.known)
		add(start);
	else if (start->admitted)
		jobs_give_up(host->core);
	if (start->done)
		start->done(&start->result, start->data);
	warden_release(host->warden);
	start_free(start);
}

static int
admit(struct jobs_host *host, const struct jobs_request *request,
      struct jobs_started *result)
{
	const struct jobs_limits *limits = jobs_limits(host->core);
	int r;

	if (weight(request->argv) + weight(request->env) + host->asked_bytes >
	    LIMIT_JOBS_ASKED) {
		(void)errmsg_set(&result->why, 0,
				 "the commands and environments of the jobs "
				 "that wait and run take %u MiB, which is the "
				 "limit; wait until some have ended, or give "
				 "smaller environments",
				 LIMIT_JOBS_ASKED >> 20);
		result->code = JOB_LIMIT;
		return result->error = -ENOBUFS;
	}
	r = jobs_admit(host->core, request->queue || request->after != 0);
	if (r == -EAGAIN)
		(void)errmsg_set(&result->why, 0, JOBS_NO_PLACE,
				 limits->running);
	if (r == -ENOBUFS)
		(void)errmsg_set(&result->why, 0,
				 "%zu jobs wait already, which is the limit; "
				 "wait until some have begun",
				 limits->queued);
	if (r == -ESHUTDOWN)
		(void)errmsg_set(&result->why, 0, "the world is ending");
	result->error = r;
	result->code = r == -EAGAIN || r == -ENOBUFS ? JOB_LIMIT : NULL;
	return r;
}

static struct start *
start_new(struct jobs_host *host, const struct jobs_request *request)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(host->warden);
	struct start *start = calloc(1, sizeof(*start));

	if (!start)
		return NULL;
	start->work.data = start;
	start->host = host;
	start->face = faces_mountpoint(host->warden);
	start->job = make_job(host, policy, request);
	if (start->job)
		start->spec = make_spec(policy, request, start->job->asked);
	if (policy->home == POLICY_HOME_PRIVATE && policy->home_path)
		start->home = strdup(policy->home_path);
	if (start->spec)
		return start;
	start_free(start);
	return NULL;
}

/* For other worlds of the session, beside all that are ours. */
static uint64_t
places_left(const struct jobs_host *host)
{
	size_t taken = jobs_taken(host->core);
	size_t places = jobs_limits(host->core)->running;

	return places > taken ? places - taken : 0;
}

int
jobs_start(struct warden *warden, const struct jobs_request *request,
	   void (*done)(const struct jobs_started *result, void *data),
	   void *data)
{
	struct jobs_started refused = { 0 };
	struct jobs_host *host = NULL;
	struct start *start = NULL;
	bool may_wait = request->queue || request->after != 0;
	int fd = request->stdin_fd;
	int r = jobs_host_get(warden, &host);

	bool admitted = r == 0 && admit(host, request, &refused) == 0;

	/* One whose token is known needs no place. */
	if (r == 0 && (admitted || request->token))
		start = start_new(host, request);
	if (!start) {
		closep(&fd);
		if (admitted)
			jobs_give_up(host->core);
		if (r == 0 && !admitted && !request->token)
			done(&refused, data);
		else
			return r < 0 ? r : -ENOMEM;
		return 0;
	}
	start->job->asked->stdin_fd = fd;
	start->admitted = admitted;
	start->others = may_wait ? UINT64_MAX : places_left(host);
	start->result = refused;
	start->done = done;
	start->data = data;
	warden_hold(warden);
	r = uv_queue_work(&warden->loop, &start->work, on_work, on_worked);
	if (r < 0) {
		warden_release(warden);
		if (admitted)
			jobs_give_up(host->core);
		start_free(start);
	}
	return r;
}
