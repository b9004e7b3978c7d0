/* SPDX-License-Identifier: MIT */

/*
 * Takes patterns, and builds the automaton of rules_priv.h from them when it is
 * first asked for: who starts a command need not wait for it.
 */

#include "policy/rules.h"

#include <assert.h>
#include <string.h>

#include "base/limits.h"
#include "policy/rules_priv.h"

/* Makes room for one more; full arrays hold a power of two. */
static int
grow(void *array, uint32_t n, size_t size)
{
	void **items = array, *bigger;

	if (n & (n - 1))
		return 0;
	bigger = realloc(*items, (n ? 2 * (size_t)n : 1) * size);
	if (!bigger)
		return -ENOMEM;
	*items = bigger;
	return 0;
}

#define TEXT_BLOCK 8000

/* A copy that lives as long as the rules; NULL: no memory. */
static const char *
keep_text(struct rules *rules, const char *text)
{
	size_t len = strlen(text) + 1, size = TEXT_BLOCK;
	struct text_block *block = rules->texts;
	char *at;

	if (!block || block->size - block->used < len) {
		if (size < len)
			size = len;
		block = malloc(sizeof(*block) + size);
		if (!block)
			return NULL;
		block->next = rules->texts;
		block->used = 0;
		block->size = size;
		rules->texts = block;
	}
	at = block->text + block->used;
	memcpy(at, text, len);
	block->used += len;
	return at;
}

struct rule_state *
rule_state_new(uint32_t n)
{
	struct rule_state *s = calloc(1, sizeof(*s) + n * sizeof(*s->nodes));

	if (!s)
		return NULL;
	s->holds.protect = s->holds.hide = NONE;
	s->holds.n = n;
	return s;
}

static int
node_add(struct rules *rules, bool is_deep, uint32_t *ret_node)
{
	int r = grow(&rules->nodes, rules->n_nodes, sizeof(*rules->nodes));

	if (r < 0)
		return r;
	rules->nodes[rules->n_nodes] = (struct node){
		.scan = NONE,
		.deep = NONE,
		.is_deep = is_deep,
	};
	*ret_node = rules->n_nodes++;
	return 0;
}

static int
rules_init(struct rules *rules)
{
	uint32_t node;

	rules->n_state_buckets = 256;
	rules->states = calloc(rules->n_state_buckets, sizeof(*rules->states));
	rules->plain = rule_state_new(0);
	rules->top = rule_state_new(1);
	if (!rules->states || !rules->plain || !rules->top)
		return -ENOMEM;
	rules->top->nodes[0] = NODE_TOP;
	for (int i = 0; i < NODE_FIRST; i++)
		if (node_add(rules, false, &node) < 0)
			return -ENOMEM;
	return 0;
}

int
rules_new(struct rules **ret_rules)
{
	_cleanup_(rules_freep) struct rules *rules = calloc(1, sizeof(*rules));

	if (!rules)
		return -ENOMEM;
	rules->refs = 1;
	(void)pthread_mutex_init(&rules->lock, NULL);
	if (rules_init(rules) < 0)
		return -ENOMEM;
	*ret_rules = take_ptr(&rules);
	return 0;
}

struct rules *
rules_ref(struct rules *rules)
{
	__atomic_add_fetch(&rules->refs, 1, __ATOMIC_RELAXED);
	return rules;
}

static void
free_states(struct rules *rules)
{
	for (size_t i = 0; rules->states && i < rules->n_state_buckets; i++) {
		struct rule_state *s = rules->states[i];

		while (s) {
			struct rule_state *next = s->next;

			free(s);
			s = next;
		}
	}
	free(rules->states);
	free(rules->top);
	free(rules->plain);
}

struct rules *
rules_free(struct rules *rules)
{
	if (!rules || __atomic_sub_fetch(&rules->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return NULL;
	free_states(rules);
	while (rules->texts) {
		struct text_block *next = rules->texts->next;

		free(rules->texts);
		rules->texts = next;
	}
	for (uint32_t i = 0; i < rules->n_lists; i++)
		free(rules->lists[i].source);
	free(rules->rules);
	free(rules->lists);
	free(rules->nodes);
	free(rules->edges);
	free(rules->buckets);
	(void)pthread_mutex_destroy(&rules->lock);
	free(rules);
	return NULL;
}

/* Twice as many buckets, all edges with a key linked anew. */
static int
rehash_edges(struct rules *rules)
{
	uint32_t n = rules->n_buckets ? 2 * rules->n_buckets : 64;
	uint32_t *buckets = malloc(n * sizeof(*buckets));

	if (!buckets)
		return -ENOMEM;
	free(rules->buckets);
	rules->buckets = buckets;
	rules->n_buckets = n;
	for (uint32_t i = 0; i < n; i++)
		buckets[i] = NONE;
	for (uint32_t i = 0; i < rules->n_edges; i++) {
		struct edge *e = &rules->edges[i];
		uint32_t *bucket = &buckets[e->key & (n - 1)];

		if (e->how == KEY_SCAN)
			continue;
		e->next = *bucket;
		*bucket = i;
	}
	return 0;
}

/* The literal bytes of a glob: both ends, a pair of the middle. */
struct literal {
	uint64_t head, tail; /* hashes */
	uint32_t head_len, tail_len;
	uint32_t best; /* the length of the run that `pair` ends */
	unsigned char pair[2];
	bool whole;
	char text[LIMIT_PATTERN + 1]; /* the run under way */
};

/* The hash of the last bytes, from the end, as a step computes it. */
static void
hash_tail(struct literal *lit, uint32_t run)
{
	uint32_t len = run < LITERAL_MAX ? run : LITERAL_MAX;

	lit->tail = HASH_SEED;
	lit->tail_len = len;
	for (uint32_t i = 0; i < len; i++)
		lit->tail = hash_byte(lit->tail,
				      (unsigned char)lit->text[run - 1 - i]);
}

/* The end of the longest run is where patterns that look alike differ. */
static void
take_pair(struct edge *e, struct literal *lit, uint32_t run, unsigned char byte)
{
	unsigned char before = (unsigned char)lit->text[run - 1];

	e->pairs |= pair_bit(before, byte);
	if (run < lit->best)
		return;
	lit->best = run;
	lit->pair[0] = before;
	lit->pair[1] = byte;
}

/* Most globs are plain names, of which the hash is all that is needed. */
static void
take_name(const char *name, struct literal *lit)
{
	size_t len = strlen(name);

	lit->whole = true;
	lit->head = HASH_SEED;
	for (size_t i = 0; i < len; i++)
		lit->head = hash_byte(lit->head, (unsigned char)name[i]);
	memcpy(lit->text, name, len + 1);
}

/* Walks the glob once. */
static void
find_literals(struct edge *e, struct literal *lit)
{
	uint32_t run = 0; /* literal bytes since the last wildcard */
	const char *at = e->glob;

	lit->head_len = lit->tail_len = lit->best = 0;
	lit->whole = true;
	lit->head = HASH_SEED;
	while (*at) {
		int byte;

		at = glob_next(at, &byte);
		assert(at); /* glob_check() has passed it */
		if (byte < 0) {
			lit->whole = false;
			run = 0;
			continue;
		}
		if (run > 0)
			take_pair(e, lit, run, (unsigned char)byte);
		e->letters |= letter_bit((unsigned char)byte);
		if (lit->whole) {
			/* A whole name is keyed by all of it. */
			lit->head = hash_byte(lit->head, (unsigned char)byte);
			lit->head_len++;
		}
		lit->text[run++] = (char)byte;
	}
	lit->text[run] = '\0';
	hash_tail(lit, run);
}

/* The hash of the first LITERAL_MAX bytes where the head is longer. */
static uint64_t
hash_head(const char *glob, uint32_t len)
{
	uint64_t hash = HASH_SEED;

	for (uint32_t i = 0; i < len; i++) {
		int byte;

		glob = glob_next(glob, &byte);
		hash = hash_byte(hash, (unsigned char)byte);
	}
	return hash;
}

/* Chooses the key of a new edge and says so at its node. */
static void
edge_choose(struct rules *rules, struct edge *e, struct literal *lit)
{
	struct node *node = &rules->nodes[e->node];
	uint64_t hash = 0;

	if (lit->whole) {
		e->how = KEY_WHOLE;
		node->has_whole = true;
		hash = lit->head;
	} else if (lit->head_len > 0) {
		uint32_t len = lit->head_len < LITERAL_MAX ? lit->head_len
							   : LITERAL_MAX;

		e->how = KEY_HEAD;
		node->heads |= UINT64_C(1) << len;
		hash = hash_head(e->glob, len);
	} else if (lit->tail_len > 0) {
		e->how = KEY_TAIL;
		node->tails |= UINT64_C(1) << lit->tail_len;
		rules->has_tails = true;
		hash = lit->tail;
	} else if (lit->best > 0) {
		e->how = KEY_PAIR;
		node->middles |= pair_bit(lit->pair[0], lit->pair[1]);
		hash = hash_pair(lit->pair[0], lit->pair[1]);
	} else {
		e->how = KEY_SCAN;
	}
	rules->has_globs |= e->how != KEY_WHOLE;
	e->key = edge_key(e->node, e->how, hash);
}

/* The edge of `like` in the chain that begins at `at`, or NONE. */
static uint32_t
edge_find(const struct rules *rules, uint32_t at, const struct edge *like)
{
	for (; at != NONE; at = rules->edges[at].next) {
		const struct edge *e = &rules->edges[at];

		if (e->key == like->key && e->node == like->node &&
		    e->fold == like->fold && strcmp(e->glob, like->glob) == 0)
			break;
	}
	return at;
}

/* Gives a new edge texts of its own; most literals are their globs. */
static int
edge_keep(struct rules *rules, struct edge *e, const struct literal *lit)
{
	e->glob = keep_text(rules, e->glob);
	if (e->glob && e->how == KEY_WHOLE)
		e->literal = strcmp(e->glob, lit->text) == 0
				     ? e->glob
				     : keep_text(rules, lit->text);
	return e->glob && (e->how != KEY_WHOLE || e->literal) ? 0 : -ENOMEM;
}

/* The edge of `node` with this glob, made if missing. */
static int
edge_get(struct rules *rules, uint32_t node, const char *glob, bool folds,
	 uint32_t *ret_edge)
{
	struct edge e = {
		.node = node,
		.target = NONE,
		.rules = NONE,
		.fold = folds,
		.glob = glob,
	};
	struct literal lit;
	uint32_t *first;
	int r;

	if (rules->n_edges >= rules->n_buckets && rehash_edges(rules) < 0)
		return -ENOMEM;
	r = grow(&rules->edges, rules->n_edges, sizeof(*rules->edges));
	if (r < 0)
		return r;
	if (glob_is_plain(glob))
		take_name(glob, &lit);
	else
		find_literals(&e, &lit);
	edge_choose(rules, &e, &lit);
	first = e.how == KEY_SCAN
			? &rules->nodes[node].scan
			: &rules->buckets[e.key & (rules->n_buckets - 1)];
	*ret_edge = edge_find(rules, *first, &e);
	if (*ret_edge != NONE)
		return 0;
	r = edge_keep(rules, &e, &lit);
	if (r < 0)
		return r;
	e.next = *first;
	*first = rules->n_edges;
	rules->edges[rules->n_edges] = e;
	*ret_edge = rules->n_edges++;
	return 0;
}

/* Lays the path of a pattern; *ret_edge is its last edge. */
static int
lay_path(struct rules *rules, const struct pattern *p, enum rule_kind kind,
	 bool folds, uint32_t *ret_edge)
{
	bool guards = kind != RULE_ALLOW && !p->negated;
	uint32_t node = p->floating ? NODE_ANYWHERE : NODE_TOP, edge = NONE;

	for (size_t i = 0; i < p->parts.count; i++) {
		bool is_last = i + 1 == p->parts.count;
		uint32_t target;
		int r;

		if (strcmp(p->parts.items[i], "**") == 0) {
			target = rules->nodes[node].deep;
			if (target == NONE) {
				r = node_add(rules, true, &target);
				if (r < 0)
					return r;
				rules->nodes[node].deep = target;
			}
			rules->nodes[target].guards |= guards;
			node = target;
			continue;
		}
		r = edge_get(rules, node, p->parts.items[i], folds, &edge);
		if (r < 0)
			return r;
		target = rules->edges[edge].target;
		if (target == NONE && !is_last) {
			r = node_add(rules, false, &target);
			if (r < 0)
				return r;
			rules->edges[edge].target = target;
		}
		if (!is_last)
			rules->nodes[target].guards |= guards;
		node = target;
	}
	*ret_edge = edge;
	return 0;
}

static int
list_get(struct rules *rules, enum rule_kind kind, const char *source,
	 uint32_t *ret_list)
{
	struct list *list;
	int r;

	for (uint32_t i = 0; i < rules->n_lists; i++) {
		if (rules->lists[i].kind != kind ||
		    strcmp(rules->lists[i].source, source) != 0)
			continue;
		*ret_list = i;
		return 0;
	}
	if (rules->n_lists >= LISTS_MAX)
		return -E2BIG;
	r = grow(&rules->lists, rules->n_lists, sizeof(*rules->lists));
	if (r < 0)
		return r;
	list = &rules->lists[rules->n_lists];
	list->kind = kind;
	list->source = strdup(source);
	if (!list->source)
		return -ENOMEM;
	*ret_list = rules->n_lists++;
	return 0;
}

/* Lays one pattern into the automaton. */
static int
rule_lay(struct rules *rules, uint32_t i)
{
	struct rule *rule = &rules->rules[i];
	struct pattern p;
	uint32_t edge;
	int r = pattern_parse(rule->text, &p, NULL);

	if (r < 0)
		return r;
	r = lay_path(rules, &p, rule->kind, rule->builtin, &edge);
	if (r == 0) {
		rule->next = rules->edges[edge].rules;
		rule->negated = p.negated;
		/* A symlink named .vscode is as good as a directory. */
		rule->dir_only = p.dir_only && !rule->builtin;
		rules->edges[edge].rules = i;
	}
	pattern_fini(&p);
	return r;
}

int
rules_build(struct rules *rules)
{
	int r = 0;

	for (uint32_t i = 0; i < rules->n_rules && r == 0; i++)
		r = rule_lay(rules, i);
	return r;
}

static int
rule_insert(struct rules *rules, enum rule_kind kind, const char *text,
	    const char *source)
{
	bool builtin = strcmp(source, RULES_SOURCE_BUILTIN) == 0;
	const char *copy = keep_text(rules, text);
	uint32_t list;
	int r;

	if (!copy)
		return -ENOMEM;
	r = list_get(rules, kind, source, &list);
	if (r < 0)
		return r;
	r = grow(&rules->rules, rules->n_rules, sizeof(*rules->rules));
	if (r < 0)
		return r;
	rules->rules[rules->n_rules++] = (struct rule){
		.kind = kind,
		.text = copy,
		.list = list,
		.next = NONE,
		.builtin = builtin,
	};
	rules->has_builtin |= builtin;
	return 0;
}

int
rules_add(struct rules *rules, enum rule_kind kind, const char *pattern,
	  const char *source, struct errmsg *why)
{
	int r;

	assert(!__atomic_load_n(&rules->frozen, __ATOMIC_RELAXED));
	if (rules->n_rules >= LIMIT_RULES)
		return errmsg_set(why, -E2BIG, "more than %d rules",
				  LIMIT_RULES);
	r = pattern_check(pattern, why);
	if (r < 0)
		return r;
	r = rule_insert(rules, kind, pattern, source);
	if (r == -E2BIG)
		return errmsg_set(why, r, "rules from too many sources");
	return r < 0 ? errmsg_set(why, r, "out of memory") : 0;
}

int
rules_add_builtin(struct rules *rules)
{
	/*
	 * A later run outside the fence executes or trusts these.  Of .vscode
	 * it is the settings, tasks, launch and server files, all of them
	 * *.json; build tools keep other files there, by renames.
	 */
	static const char *const names[] = {
		".palerc",   ".envrc",
		".idea/",    "**/.vscode/**/*.json",
		".claude/",  ".codex/",
		".cursor/",  ".gemini/",
		".mcp.json", ".devcontainer/",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		int r = rules_add(rules, RULE_PROTECT, names[i],
				  RULES_SOURCE_BUILTIN, NULL);

		if (r < 0)
			return r;
	}
	return 0;
}

bool
rules_empty(const struct rules *rules)
{
	return rules->n_rules == 0;
}

bool
rules_get(const struct rules *rules, size_t i, enum rule_kind *ret_kind,
	  const char **ret_pattern, const char **ret_source)
{
	if (i >= rules->n_rules)
		return false;
	*ret_kind = rules->rules[i].kind;
	*ret_pattern = rules->rules[i].text;
	*ret_source = rules->lists[rules->rules[i].list].source;
	return true;
}
