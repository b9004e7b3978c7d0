/* SPDX-License-Identifier: MIT */

/*
 * Recording: the half that inmates wait for.
 *
 * A repeat costs a hash, a short lock, a comparison and two stores.  A first
 * hit costs what /proc costs on top; that is read without the lock, so the key
 * is looked for twice: two threads of one process may meet here.
 */

#include "policy/denial_priv.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"

/*
 * An inmate chooses the keys: each step mixes the secret of this world in, so
 * that no two paths can be known to meet in a bucket.
 */
static uint64_t
mix(uint64_t hash, uint64_t word, uint64_t key)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return (hash ^ hash >> 29) + (key | 1) * (hash >> 32 | 1);
}

static uint64_t
hash_text(uint64_t hash, const char *text, uint64_t key)
{
	size_t len = text ? strlen(text) : 0;
	uint64_t word;

	hash = mix(hash, len, key);
	for (; len >= sizeof(word); text += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		hash = mix(hash, word, key);
	}
	word = 0;
	if (len > 0)
		memcpy(&word, text, len);
	return mix(hash, word, key);
}

static unsigned int
bucket_of(const struct denials *denials, const struct denial *denial)
{
	uint64_t key = denials->hash_key, hash = key;

	hash = mix(hash, (uint64_t)denial->pid, key);
	hash = mix(hash, (uint64_t)denial->op << 32 | (uint32_t)denial->error,
		   key);
	hash = hash_text(hash, denial->path, key);
	hash = hash_text(hash, denial->path2, key);
	hash = hash_text(hash, denial->rule, key);
	hash ^= hash >> 32;
	return (unsigned int)(hash & (DENIAL_BUCKETS - 1));
}

/* The seq of the run that goes on with this hit, or 0.  Lock held. */
static uint64_t
find_run(struct denials *denials, unsigned int bucket,
	 const struct denial *denial, int64_t now_mono_ns)
{
	uint64_t seq = denials->buckets[bucket];

	while (seq >= denials->first) {
		const struct denial_run *run = denial_run_of(denials, seq);

		if (now_mono_ns - run->last_mono_ns <= DENIAL_RUN_NS &&
		    spool_same(denials->spool, run->offset, denial))
			return seq;
		seq = run->older;
	}
	return 0;
}

/* Lock held. */
static void
add_hit(struct denials *denials, uint64_t seq, int64_t now_mono_ns)
{
	struct denial_run *run = denial_run_of(denials, seq);
	int64_t now_ns = clock_real_ns();

	run->count = spool_hit(denials->spool, run->offset, now_ns);
	run->last_mono_ns = now_mono_ns;
	denials->count++;
	if (seq <= denials->n_firsts) {
		denials->firsts[seq - 1].count = run->count;
		denials->firsts[seq - 1].last_ns = now_ns;
	}
	if (!run->dirty)
		audit_mark_dirty(denials, seq);
}

static char *
copy_text(const char *text)
{
	return text ? strdup(text) : NULL;
}

/*
 * Keeps a copy for the report.  An allocation that fails leaves a field empty
 * there, and only there.  Lock held.
 */
static void
keep_first(struct denials *denials, const struct denial *denial)
{
	struct denial *first = &denials->firsts[denials->n_firsts++];

	*first = *denial;
	first->session = denials->config.session;
	first->world = denials->config.world;
	first->origin = copy_text(denial->origin);
	first->call = copy_text(denial->call);
	first->rule = copy_text(denial->rule);
	first->path = copy_text(denial->path);
	first->path2 = copy_text(denial->path2);
	first->comm = copy_text(denial->comm);
	first->exe = copy_text(denial->exe);
	first->remedy_text = copy_text(denial->remedy_text);
}

/* Lock held. */
static int
add_run(struct denials *denials, unsigned int bucket, struct denial *denial,
	int64_t now_mono_ns)
{
	uint64_t seq = denials->next, offset;
	struct denial_run *run = denial_run_of(denials, seq);
	int r;

	denials->count++;
	denial->seq = seq;
	denial->time_ns = denial->last_ns = clock_real_ns();
	denial->count = 1;
	r = spool_append(denials->spool, denial, &offset);
	if (r < 0)
		return r;
	*run = (struct denial_run){
		.offset = offset,
		.count = 1,
		.last_mono_ns = now_mono_ns,
		.older = denials->buckets[bucket],
	};
	denials->buckets[bucket] = seq;
	denials->next = seq + 1;
	denials->rows++;
	if (denials->n_firsts < DENIAL_FIRST && seq == denials->n_firsts + 1)
		keep_first(denials, denial);
	audit_mark_dirty(denials, seq);
	return 0;
}

bool
denial_call_is_valid(const char *call)
{
	size_t len = strlen(call);
	json_t *text;

	if (len == 0 || len > LIMIT_CALL)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)call[i] < ' ' || call[i] == 0x7f)
			return false;
	/* NULL unless it is UTF-8. */
	text = json_string(call);
	json_decref(text);
	return text != NULL;
}

int
denial_record(struct denials *denials, const struct denial *denial)
{
	const struct denials_config *config = &denials->config;
	_cleanup_(freep) char *origin = NULL;
	_cleanup_(freep) char *call = NULL;
	unsigned int bucket = bucket_of(denials, denial);
	int64_t now_mono_ns = clock_mono_ns();
	struct denial_origin room;
	struct denial full;
	uint64_t seq;
	int r = 0;

	pthread_mutex_lock(&denials->lock);
	seq = find_run(denials, bucket, denial, now_mono_ns);
	if (seq)
		add_hit(denials, seq, now_mono_ns);
	pthread_mutex_unlock(&denials->lock);
	if (seq)
		return 0;

	full = *denial;
	full.id = 0;
	if (!full.call)
		full.call = config->call;
	denial_look_up(&denials->cache, &full, &room);
	if (config->attribute &&
	    config->attribute(config->data, full.pid, &origin, &call)) {
		full.origin = origin;
		full.call = call;
	}

	pthread_mutex_lock(&denials->lock);
	seq = find_run(denials, bucket, denial, now_mono_ns);
	if (seq)
		add_hit(denials, seq, now_mono_ns);
	else
		r = add_run(denials, bucket, &full, now_mono_ns);
	pthread_mutex_unlock(&denials->lock);
	return r;
}

void
denials_flush(struct denials *denials)
{
	uint64_t wanted;

	pthread_mutex_lock(&denials->lock);
	wanted = ++denials->flush_wanted;
	pthread_cond_signal(&denials->wake);
	while (denials->flush_done < wanted)
		pthread_cond_wait(&denials->flushed, &denials->lock);
	pthread_mutex_unlock(&denials->lock);
}

void
denials_summarize(struct denials *denials, struct denials_summary *ret_summary)
{
	pthread_mutex_lock(&denials->lock);
	*ret_summary = (struct denials_summary){
		.count = denials->count,
		.rows = denials->rows,
		.degraded = denials->degraded || spool_lost(denials->spool) > 0,
		.n_first = denials->n_firsts,
	};
	memcpy(ret_summary->first, denials->firsts, sizeof(denials->firsts));
	pthread_mutex_unlock(&denials->lock);
}

/* ---- life ---- */

/* The smallest power of two that holds every record a spool can. */
static uint64_t
runs_of(const struct spool *spool)
{
	uint64_t n = 1;

	while (n < spool_capacity(spool) / SPOOL_RECORD_MIN + 1)
		n *= 2;
	return n;
}

static void
free_text(const char *text)
{
	free((void *)(uintptr_t)text);
}

static struct denials *
denials_free(struct denials *denials)
{
	if (!denials)
		return NULL;
	for (unsigned int i = 0; i < denials->n_firsts; i++) {
		free_text(denials->firsts[i].origin);
		free_text(denials->firsts[i].call);
		free_text(denials->firsts[i].rule);
		free_text(denials->firsts[i].path);
		free_text(denials->firsts[i].path2);
		free_text(denials->firsts[i].comm);
		free_text(denials->firsts[i].exe);
		free_text(denials->firsts[i].remedy_text);
	}
	free_text(denials->config.dir);
	free_text(denials->config.db_path);
	free_text(denials->config.session);
	free_text(denials->config.world);
	free_text(denials->config.call);
	denial_cache_fini(&denials->cache);
	spool_free(denials->spool);
	free(denials->runs);
	pthread_cond_destroy(&denials->flushed);
	pthread_cond_destroy(&denials->wake);
	pthread_mutex_destroy(&denials->lock);
	free(denials);
	return NULL;
}
DEFINE_CLEANUP(denials)

static int
init_locks(struct denials *denials)
{
	pthread_condattr_t monotonic;
	int r;

	r = pthread_condattr_init(&monotonic);
	if (r)
		return -r;
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&denials->lock, NULL);
	(void)pthread_cond_init(&denials->wake, &monotonic);
	(void)pthread_cond_init(&denials->flushed, NULL);
	(void)pthread_condattr_destroy(&monotonic);
	denial_cache_init(&denials->cache);
	return 0;
}

static int
denials_new(const struct denials_config *config, struct denials **ret_denials)
{
	_cleanup_(denials_freep) struct denials *denials = NULL;
	int r;

	denials = calloc(1, sizeof(*denials));
	if (!denials)
		return -ENOMEM;
	r = init_locks(denials);
	if (r < 0) {
		free(take_ptr(&denials));
		return r;
	}
	denials->first = denials->next = 1;
	if (getrandom(&denials->hash_key, sizeof(denials->hash_key), 0) !=
	    sizeof(denials->hash_key))
		return -EIO;
	denials->config = *config;
	denials->config.dir = strdup(config->dir);
	denials->config.db_path = strdup(config->db_path);
	denials->config.session = strdup(config->session);
	denials->config.world = strdup(config->world);
	denials->config.call = copy_text(config->call);
	if (!denials->config.dir || !denials->config.db_path ||
	    !denials->config.session || !denials->config.world ||
	    (config->call && !denials->config.call))
		return -ENOMEM;
	*ret_denials = take_ptr(&denials);
	return 0;
}

int
denials_open(const struct denials_config *config, struct denials **ret_denials,
	     struct errmsg *why)
{
	_cleanup_(denials_freep) struct denials *denials = NULL;
	int r;

	r = denials_new(config, &denials);
	if (r < 0)
		return errmsg_set(why, r, "out of memory");
	r = spool_create(config->dir, config->session, config->world,
			 &denials->spool, why);
	if (r < 0)
		return r;
	denials->mask = runs_of(denials->spool) - 1;
	/* Untouched pages of a large calloc() cost nothing. */
	denials->runs = calloc(denials->mask + 1, sizeof(*denials->runs));
	r = denials->runs ? audit_start(denials) : -ENOMEM;
	if (r < 0) {
		spool_unlink(denials->spool);
		return errmsg_set(why, r,
				  "cannot start the record of denials: %s",
				  strerror(-r));
	}
	*ret_denials = take_ptr(&denials);
	return 0;
}

struct denials *
denials_close(struct denials *denials)
{
	if (!denials)
		return NULL;
	audit_stop(denials);
	if (denials->n_dirty == 0 && spool_lost_untold(denials->spool) == 0)
		spool_unlink(denials->spool);
	return denials_free(denials);
}
