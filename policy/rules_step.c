/* SPDX-License-Identifier: MIT */

/*
 * One step of the automaton of rules_priv.h, and the interning of states.  A
 * step works on the stack; only a state that is new takes the lock.
 */

#include "policy/rules.h"

#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "policy/rules_priv.h"

/* A name that only a pattern for any name matches. */
#define ANY_NAME "\001\002\001"

/* One step under way: the name, taken apart once, and what was found. */
struct step {
	struct rules *rules;
	const struct rule_state *dir;
	const char *name;
	bool is_dir;
	uint32_t len;
	uint32_t ends; /* how many bytes heads[] and tails[] cover */
	uint64_t whole, letters, pairs;
	uint64_t heads[LITERAL_MAX + 1], tails[LITERAL_MAX + 1];

	/* The last rule that matched, by list. */
	uint32_t last[LISTS_MAX];

	/* The nodes active below, ascending. */
	uint32_t *nodes;
	uint32_t n, room;
	uint32_t few[32];
	int error;
};

/* The name, and what of it the keys of these rules need. */
static void
take_apart(struct step *s)
{
	const unsigned char *at = (const unsigned char *)s->name;
	bool globs = s->rules->has_globs;
	uint64_t hash = HASH_SEED;
	uint32_t len;

	for (len = 0; at[len]; len++) {
		if (len <= LITERAL_MAX)
			s->heads[len] = hash;
		hash = hash_byte(hash, at[len]);
		if (!globs)
			continue;
		s->letters |= letter_bit(at[len]);
		if (len > 0)
			s->pairs |= pair_bit(at[len - 1], at[len]);
	}
	s->len = len;
	s->whole = hash;
	s->ends = len < LITERAL_MAX ? len : LITERAL_MAX;
	if (len <= LITERAL_MAX)
		s->heads[len] = hash;
	s->tails[0] = HASH_SEED;
	for (uint32_t i = 1; s->rules->has_tails && i <= s->ends; i++)
		s->tails[i] = hash_byte(s->tails[i - 1], at[len - i]);
}

static void
step_init(struct step *s, struct rules *rules, const struct rule_state *dir,
	  const char *name, bool is_dir)
{
	s->rules = rules;
	s->dir = dir;
	s->name = name;
	s->is_dir = is_dir;
	s->letters = s->pairs = 0;
	s->nodes = s->few;
	s->n = 0;
	s->room = sizeof(s->few) / sizeof(*s->few);
	s->error = 0;
	for (uint32_t i = 0; i < rules->n_lists; i++)
		s->last[i] = NONE;
	take_apart(s);
}

/* Adds a node to the set below, once. */
static void
activate(struct step *s, uint32_t node)
{
	uint32_t at = s->n;

	while (at > 0 && s->nodes[at - 1] > node)
		at--;
	if (at > 0 && s->nodes[at - 1] == node)
		return;
	if (s->n == s->room) {
		size_t room = 2 * (size_t)s->room + 2;
		uint32_t *nodes = malloc(room * sizeof(*nodes));

		if (!nodes) {
			s->error = -ENOMEM;
			return;
		}
		memcpy(nodes, s->nodes, s->n * sizeof(*nodes));
		if (s->nodes != s->few)
			free(s->nodes);
		s->nodes = nodes;
		s->room = (uint32_t)room;
	}
	memmove(s->nodes + at + 1, s->nodes + at,
		(s->n - at) * sizeof(*s->nodes));
	s->nodes[at] = node;
	s->n++;
}

static void
follow(struct step *s, const struct edge *e)
{
	const struct rules *rules = s->rules;

	for (uint32_t i = e->rules; i != NONE; i = rules->rules[i].next) {
		const struct rule *rule = &rules->rules[i];
		uint32_t *last = &s->last[rule->list];

		if (rule->dir_only && !s->is_dir)
			continue;
		if (rule->builtin && s->dir->holds.packages)
			continue;
		if (*last == NONE || *last < i)
			*last = i;
	}
	if (s->is_dir && e->target != NONE) {
		activate(s, e->target);
		if (rules->nodes[e->target].deep != NONE)
			activate(s, rules->nodes[e->target].deep);
	}
}

static void
try_edge(struct step *s, const struct edge *e)
{
	bool matches;

	if (e->how == KEY_WHOLE)
		matches = (e->fold ? strcasecmp(e->literal, s->name)
				   : strcmp(e->literal, s->name)) == 0;
	else
		matches = (e->letters & ~s->letters) == 0 &&
			  (e->pairs & ~s->pairs) == 0 &&
			  glob_match(e->glob, s->name, e->fold);
	if (matches)
		follow(s, e);
}

static void
try_key(struct step *s, uint32_t node, enum edge_key how, uint64_t hash)
{
	const struct rules *rules = s->rules;
	uint64_t key = edge_key(node, how, hash);
	uint32_t at = rules->buckets[key & (rules->n_buckets - 1)];

	for (; at != NONE; at = rules->edges[at].next)
		if (rules->edges[at].key == key)
			try_edge(s, &rules->edges[at]);
}

/* A pair that stands twice is tried twice, which changes nothing. */
static void
try_pairs(struct step *s, uint32_t node)
{
	const unsigned char *at = (const unsigned char *)s->name;
	uint64_t middles = s->rules->nodes[node].middles;

	if ((middles & s->pairs) == 0)
		return;
	for (uint32_t i = 1; i < s->len; i++)
		if (pair_bit(at[i - 1], at[i]) & middles)
			try_key(s, node, KEY_PAIR, hash_pair(at[i - 1], at[i]));
}

static void
try_node(struct step *s, uint32_t id)
{
	const struct rules *rules = s->rules;
	const struct node *node = &rules->nodes[id];
	uint64_t covered = (UINT64_C(2) << s->ends) - 1;

	if (node->has_whole)
		try_key(s, id, KEY_WHOLE, s->whole);
	for (uint64_t lens = node->heads & covered; lens; lens &= lens - 1)
		try_key(s, id, KEY_HEAD, s->heads[__builtin_ctzll(lens)]);
	for (uint64_t lens = node->tails & covered; lens; lens &= lens - 1)
		try_key(s, id, KEY_TAIL, s->tails[__builtin_ctzll(lens)]);
	try_pairs(s, id);
	for (uint32_t at = node->scan; at != NONE; at = rules->edges[at].next)
		try_edge(s, &rules->edges[at]);
	if (s->is_dir && node->is_deep)
		activate(s, id);
}

/* What the lists say together, before --allow: NONE or the first rule. */
static uint32_t
verdict(const struct step *s, enum rule_kind kind, uint32_t from_above)
{
	const struct rules *rules = s->rules;

	if (from_above != NONE)
		return from_above;
	for (uint32_t i = 0; i < rules->n_lists; i++)
		if (rules->lists[i].kind == kind && s->last[i] != NONE &&
		    !rules->rules[s->last[i]].negated)
			return s->last[i];
	return NONE;
}

static struct rule_hit
hit(const struct rules *rules, uint32_t rule)
{
	if (rule == NONE)
		return (struct rule_hit){ NULL, NULL };
	return (struct rule_hit){
		.text = rules->rules[rule].text,
		.source = rules->lists[rules->rules[rule].list].source,
	};
}

static uint64_t
state_hash(const struct holds *head, const uint32_t *nodes)
{
	uint64_t hash = HASH_SEED;

	hash = (hash ^ head->protect) * HASH_PRIME;
	hash = (hash ^ head->hide) * HASH_PRIME;
	hash = (hash ^ (head->allowed | head->packages << 1)) * HASH_PRIME;
	for (uint32_t i = 0; i < head->n; i++)
		hash = (hash ^ nodes[i]) * HASH_PRIME;
	return hash ^ hash >> 32;
}

static bool
state_equal(const struct rule_state *s, const struct holds *head,
	    const uint32_t *nodes)
{
	const struct holds *h = &s->holds;

	return h->protect == head->protect && h->hide == head->hide &&
	       h->allowed == head->allowed && h->packages == head->packages &&
	       h->n == head->n &&
	       memcmp(s->nodes, nodes, head->n * sizeof(*nodes)) == 0;
}

static void
rehash_states(struct rules *rules)
{
	size_t n = 2 * rules->n_state_buckets;
	struct rule_state **states = calloc(n, sizeof(*states));

	/* Longer chains are no error. */
	if (!states)
		return;
	for (size_t i = 0; i < rules->n_state_buckets; i++) {
		while (rules->states[i]) {
			struct rule_state *s = rules->states[i];

			rules->states[i] = s->next;
			s->next = states[s->hash & (n - 1)];
			states[s->hash & (n - 1)] = s;
		}
	}
	free(rules->states);
	rules->states = states;
	rules->n_state_buckets = n;
}

/* Find or insert; the lock is held. */
static const struct rule_state *
intern_locked(struct rules *rules, const struct holds *head,
	      const uint32_t *nodes)
{
	uint64_t hash = state_hash(head, nodes);
	struct rule_state **bucket, *s;

	for (s = rules->states[hash & (rules->n_state_buckets - 1)]; s;
	     s = s->next)
		if (s->hash == hash && state_equal(s, head, nodes))
			return s;
	if (rules->n_states >= LIMIT_RULE_STATES ||
	    rules->n_state_nodes + head->n > LIMIT_RULE_NODES)
		return NULL;
	s = rule_state_new(head->n);
	if (!s)
		return NULL;
	s->hash = hash;
	s->holds = *head;
	memcpy(s->nodes, nodes, head->n * sizeof(*nodes));
	if (rules->n_states >= rules->n_state_buckets)
		rehash_states(rules);
	bucket = &rules->states[hash & (rules->n_state_buckets - 1)];
	s->next = *bucket;
	*bucket = s;
	rules->n_states++;
	rules->n_state_nodes += head->n;
	return s;
}

/* Nearly every directory is in the state of its parent or in `plain`. */
static const struct rule_state *
state_get(struct step *s, const struct holds *head)
{
	struct rules *rules = s->rules;
	const struct rule_state *state;

	if (state_equal(rules->plain, head, s->nodes))
		return rules->plain;
	if (s->dir != rules->top && state_equal(s->dir, head, s->nodes))
		return s->dir;
	(void)pthread_mutex_lock(&rules->lock);
	state = intern_locked(rules, head, s->nodes);
	(void)pthread_mutex_unlock(&rules->lock);
	return state;
}

const struct rule_state *
rules_root(struct rules *rules)
{
	if (!__atomic_load_n(&rules->frozen, __ATOMIC_ACQUIRE)) {
		(void)pthread_mutex_lock(&rules->lock);
		if (!__atomic_load_n(&rules->frozen, __ATOMIC_RELAXED)) {
			rules->broken = rules_build(rules) < 0;
			__atomic_store_n(&rules->frozen, true,
					 __ATOMIC_RELEASE);
		}
		(void)pthread_mutex_unlock(&rules->lock);
	}
	return rules->top;
}

/* The head of the state below: what holds from here on. */
static struct holds
below(const struct step *s, uint32_t protect, uint32_t hide, bool allowed)
{
	if (allowed)
		return (struct holds){
			.protect = NONE,
			.hide = NONE,
			.allowed = true,
		};
	return (struct holds){
		.protect = protect,
		.hide = hide,
		.packages = s->dir->holds.packages ||
			    (s->rules->has_builtin &&
			     strcmp(s->name, "node_modules") == 0),
		.n = s->n,
	};
}

static int
refuse(struct rule_match *ret_match)
{
	static const struct rule_hit oom = { "(out of memory)",
					     RULES_SOURCE_OOM };

	*ret_match = (struct rule_match){ .protect = oom, .hide = oom };
	return -ENOMEM;
}

int
rules_step(struct rules *rules, const struct rule_state *dir, const char *name,
	   bool is_dir, struct rule_match *ret_match,
	   const struct rule_state **ret_below)
{
	uint32_t protect, hide;
	struct holds head;
	struct step s;
	bool allowed;

	if (rules->broken)
		return refuse(ret_match);
	if (rules->n_rules == 0 || dir->holds.allowed) {
		*ret_match = (struct rule_match){ 0 };
		if (ret_below)
			*ret_below = rules->n_rules ? dir : rules->plain;
		return 0;
	}
	step_init(&s, rules, dir, name, is_dir);
	try_node(&s, NODE_ANYWHERE);
	for (uint32_t i = 0; i < dir->holds.n; i++)
		try_node(&s, dir->nodes[i]);

	protect = verdict(&s, RULE_PROTECT, dir->holds.protect);
	hide = verdict(&s, RULE_HIDE, dir->holds.hide);
	allowed = verdict(&s, RULE_ALLOW, NONE) != NONE;
	*ret_match = (struct rule_match){
		.protect = hit(rules, allowed ? NONE : protect),
		.hide = hit(rules, allowed ? NONE : hide),
	};
	head = below(&s, protect, hide, allowed);
	if (s.error == 0 && ret_below) {
		*ret_below = state_get(&s, &head);
		if (!*ret_below)
			s.error = -ENOMEM;
	}
	if (s.nodes != s.few)
		free(s.nodes);
	return s.error != 0 ? refuse(ret_match) : 0;
}

int
rules_go_through(struct rules *rules, const struct rule_state *dir,
		 const char *name, bool *ret_through)
{
	const struct rule_state *here, *other;
	struct rule_match match;
	uint32_t at = 0;
	int r;

	*ret_through = false;
	r = rules_step(rules, dir, name, true, &match, &here);
	if (r < 0 || here->holds.n == 0)
		return r;
	r = rules_step(rules, dir, ANY_NAME, true, &match, &other);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < here->holds.n; i++) {
		while (at < other->holds.n && other->nodes[at] < here->nodes[i])
			at++;
		if (at < other->holds.n && other->nodes[at] == here->nodes[i])
			continue;
		*ret_through |= rules->nodes[here->nodes[i]].guards;
	}
	return 0;
}

int
rules_match_path(struct rules *rules, const char *path, bool is_dir,
		 struct rule_match *ret_match)
{
	const struct rule_state *dir = rules_root(rules);
	_cleanup_(freep) char *copy = strdup(path);
	char *at = copy;

	if (!copy)
		return refuse(ret_match);
	*ret_match = (struct rule_match){ 0 };
	while (at && *at) {
		char *slash = strchr(at, '/');
		int r;

		if (slash)
			*slash = '\0';
		r = rules_step(rules, dir, at, slash || is_dir, ret_match,
			       slash ? &dir : NULL);
		if (r < 0)
			return r;
		at = slash ? slash + 1 : NULL;
	}
	return 0;
}
