/* SPDX-License-Identifier: MIT */
#ifndef CLI_JOB_H
#define CLI_JOB_H

/*
 * What the verbs of `pale job` share.  Records and output are read where they
 * lie, whether or not a warden lives; whatever acts on a job asks its warden.
 *
 * Thread: main.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/records.h"
#include "policy/store_jobs.h"
#include "warden/jobs_row.h"

struct job_options {
	struct cli_common common;
	struct cli_policy_options policy; /* start; -w and -s elsewhere */
	const char *world;
	/* start */
	const char *name, *input, *after, *token, *profile;
	struct command_options command;
	bool merge, queue;
	uint64_t retry;
	/* out */
	const char *stream, *offset;
	uint64_t max, wait_ms;
	bool follow;
	/* the others */
	bool all, any, close;
	uint64_t timeout_ms, grace_ms, keep;
	const char *signal;
};

/* One verb: its operands; the exit status. */
#define JOB_VERB(verb) \
	int job_##verb(const struct job_options *options, int argc, char **argv)
JOB_VERB(start);
JOB_VERB(list);
JOB_VERB(show);
JOB_VERB(status);
JOB_VERB(out);
JOB_VERB(wait);
JOB_VERB(kill);
JOB_VERB(rm);
JOB_VERB(prune);
JOB_VERB(write);
JOB_VERB(notify);
JOB_VERB(path);
#undef JOB_VERB

#define JOB_TEXTS 9

/* A record with texts of its own. */
struct job_record {
	struct store_job row;
	char *texts[JOB_TEXTS];
};
void job_record_fini(struct job_record *record);

/*
 * The record of a job by its id as typed, settled first if nobody owns it any
 * more.  -EINVAL, -ENOENT.
 */
int job_find(struct record_places *places, const char *id,
	     struct job_record *ret_record, struct errmsg *why);

/* Brings the record up to date. */
int job_reload(struct record_places *places, struct job_record *record,
	       struct errmsg *why);

/*
 * A request, waited for as long as it takes, or `timeout_ms`; *ret_result (NULL
 * allowed) is a new reference.  As rpc_client_call(), and -ENODATA: the warden
 * knows no such job.
 */
int job_ask(struct rpc_client *client, enum rpc_method method,
	    const struct buf *params, int timeout_ms, json_t **ret_result,
	    struct errmsg *why);

/* {"id": …} begun, for members to be added. */
void job_begin_params(struct buf *params, const struct store_job *row);

/* The line of its state, or as JSON. */
int job_print(const struct job_options *options, const struct store_job *row,
	      bool with_id);

/* job_list.c: of -w, -s and --world, as far as they are given. */
int job_query_init(const struct job_options *options,
		   struct store_jobs_query *query, struct errmsg *why);
void job_query_fini(struct store_jobs_query *query);

#endif
