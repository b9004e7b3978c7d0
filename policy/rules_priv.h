/* SPDX-License-Identifier: MIT */
#ifndef POLICY_RULES_PRIV_H
#define POLICY_RULES_PRIV_H

/*
 * All patterns of a policy are one automaton over path components.
 *
 * A node is a place between two components.  Two nodes are always there: TOP,
 * where anchored patterns begin, and ANYWHERE, where patterns begin that may
 * match at any depth.  An edge carries one component glob, leads to the node
 * of the next component, and names the rules that are complete with it.  A
 * "**" in the middle of a pattern is a node that stays active below (`deep`).
 * Patterns that begin alike share nodes and edges.
 *
 * The state at a directory is the set of active nodes, ANYWHERE left out
 * because it always is one.  So a plain basename never enlarges a state, and
 * nearly every directory of a tree is in one and the same state, `plain`.
 *
 * One step must not try every glob.  An edge lies in a hash table under its
 * node and what is literal in it: the whole name, else its first bytes, else
 * its last ones, else two bytes of its middle.  A node knows which lengths and
 * pairs exist.  Only globs with no two literal bytes side by side are tried
 * one by one.  Before a glob is run, the letters and pairs of letters that it
 * needs are looked for.  Keys ignore ASCII case, since some rules do; the
 * comparison that follows does what the rule says.
 *
 * The first rules_root() lays nodes and edges, under `lock`, and freezes them;
 * from then on `lock` guards the table of states and nothing else.
 */

#include <pthread.h>
#include <stdint.h>

#include "policy/policy_priv.h"

enum {
	NODE_TOP,
	NODE_ANYWHERE,
	NODE_FIRST
};

#define LISTS_MAX   48 /* (source, kind) pairs */
#define LITERAL_MAX 63 /* bytes of a literal end that make its key */
#define NONE	    UINT32_MAX
#define HASH_SEED   UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME  UINT64_C(0x100000001b3)

/* How an edge is found. */
enum edge_key {
	KEY_WHOLE,
	KEY_HEAD,
	KEY_TAIL,
	KEY_PAIR,
	KEY_SCAN
};

struct rule {
	enum rule_kind kind;
	const char *text; /* as the globs: one of `texts` */
	uint32_t list;
	uint32_t next; /* further rule completed by the same edge */
	bool negated;
	bool dir_only;
	bool builtin; /* folds case, not below node_modules */
};

struct list {
	enum rule_kind kind;
	char *source;
};

struct node {
	uint64_t heads, tails; /* bit n: a literal end of n bytes is there */
	uint64_t middles;      /* pair_bit() of each KEY_PAIR */
	uint32_t scan;	       /* first of the edges with no such key */
	uint32_t deep;	       /* the node of a "**" that begins here */
	bool is_deep;
	bool has_whole;
	bool guards; /* a protect or hide rule goes through it */
};

struct edge {
	uint64_t key;
	uint64_t letters, pairs; /* what a name must have */
	uint32_t node;
	uint32_t next; /* in the chain of its bucket, or of its node's scan */
	uint32_t target;
	uint32_t rules;
	enum edge_key how;
	bool fold;
	const char *glob;
	const char *literal; /* KEY_WHOLE: escapes resolved */
};

/* What holds from above, and how many nodes are active. */
struct holds {
	uint32_t protect, hide; /* a rule, or NONE */
	uint32_t n;
	bool allowed;  /* lifted: nothing matters below */
	bool packages; /* below a node_modules */
};

struct rule_state {
	struct rule_state *next;
	uint64_t hash;
	struct holds holds;
	uint32_t nodes[]; /* ascending */
};

/* Room for the texts of many rules, which live and go together. */
struct text_block {
	struct text_block *next;
	size_t used, size;
	char text[];
};

struct rules {
	int refs; /* atomic */
	struct text_block *texts;
	struct rule *rules;
	struct list *lists;
	struct node *nodes;
	struct edge *edges;
	uint32_t *buckets; /* edge indices, NONE: empty */
	uint32_t n_rules, n_lists, n_nodes, n_edges, n_buckets;
	bool has_builtin;
	bool has_globs; /* some edge is no KEY_WHOLE */
	bool has_tails;

	struct rule_state *top, *plain;
	bool frozen; /* atomic */
	bool broken; /* no memory to build it: every step fails */
	pthread_mutex_t lock;
	struct rule_state **states; /* guarded by lock, as all below */
	size_t n_states, n_state_buckets, n_state_nodes;
};

static inline unsigned char
fold(unsigned char byte)
{
	return byte >= 'A' && byte <= 'Z' ? byte + ('a' - 'A') : byte;
}

static inline uint64_t
hash_byte(uint64_t hash, unsigned char byte)
{
	return (hash ^ fold(byte)) * HASH_PRIME;
}

static inline uint64_t
edge_key(uint32_t node, enum edge_key how, uint64_t literal)
{
	uint64_t key = literal ^ ((uint64_t)node << 3 | how) *
					 UINT64_C(0x9e3779b97f4a7c15);

	key ^= key >> 29;
	key *= UINT64_C(0xbf58476d1ce4e5b9);
	return key ^ key >> 32;
}

/* Which bit of the letter and the pair mask stands for these bytes. */
static inline uint64_t
letter_bit(unsigned char byte)
{
	return UINT64_C(1) << (fold(byte) & 63);
}

static inline uint64_t
pair_bit(unsigned char a, unsigned char b)
{
	return UINT64_C(1) << ((fold(a) * 31u + fold(b) * 7u) & 63);
}

/* What a KEY_PAIR is hashed from. */
static inline uint64_t
hash_pair(unsigned char a, unsigned char b)
{
	return hash_byte(hash_byte(HASH_SEED, a), b);
}

/* Lays all rules; once, under the lock.  -ENOMEM. */
int rules_build(struct rules *rules);

/* A state with room for `n` nodes, in which nothing holds; NULL: no memory. */
struct rule_state *rule_state_new(uint32_t n);

#endif
