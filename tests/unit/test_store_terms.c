/* SPDX-License-Identifier: MIT */

#include "policy/store_terms.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/small_store.h"
#include "tests/unit/suite.h"

static struct store_term
sample(const char *name)
{
	return (struct store_term){
		.world = "w",
		.workspace = "/w/\xff",
		.session = "default",
		.name = name,
		.label = "cat",
		.spec = "{\"argv\":[\"cat\"]}",
		.state = "queued",
		.cols = 80,
		.rows = 24,
		.created_ns = 5,
	};
}

static uint64_t
add(const char *name)
{
	struct store_term term = sample(name);
	uint64_t id = 0;

	ck_assert_int_eq(store_term_add(store, &term, &id), 0);
	return id;
}

struct found {
	unsigned int count;
	uint64_t ids[32];
	struct store_term last; /* texts are not to be looked at */
	char name[32], state[32], title[32], spec[64];
};

static int
note(const struct store_term *term, void *data)
{
	struct found *found = data;

	found->ids[found->count++] = term->id;
	found->last = *term;
	(void)snprintf(found->name, sizeof(found->name), "%s",
		       term->name ? term->name : "");
	(void)snprintf(found->state, sizeof(found->state), "%s", term->state);
	(void)snprintf(found->title, sizeof(found->title), "%s",
		       term->title ? term->title : "");
	(void)snprintf(found->spec, sizeof(found->spec), "%s", term->spec);
	ck_assert_str_eq(term->workspace, "/w/\xff");
	return 0;
}

static struct found
look(const struct store_terms_query *query)
{
	struct found found = { 0 };

	ck_assert_int_eq(store_each_term(store, query, note, &found), 0);
	return found;
}

START_TEST(an_id_is_never_given_twice)
{
	uint64_t one = add("a"), two = add(NULL);

	ck_assert_uint_lt(one, two);
	ck_assert_int_eq(store_term_remove(store, two), 0);
	ck_assert_uint_lt(two, add("b"));
	ck_assert_uint_eq(look(&(struct store_terms_query){ .id = two }).count,
			  0);
}
END_TEST

START_TEST(what_became_of_one_is_found_again)
{
	struct store_term term = sample("a");
	struct found found;

	term.id = add("a");
	term.state = "running";
	term.pid = 7;
	term.started_ns = 6;
	term.cols = 100;
	term.title = "t";
	term.flags = STORE_TERM_PINNED;
	ck_assert_int_eq(store_terms_update(store, &term, 1), 0);
	found = look(&(struct store_terms_query){ .name = "a", .world = "w" });
	ck_assert_uint_eq(found.count, 1);
	ck_assert_str_eq(found.state, "running");
	ck_assert_str_eq(found.title, "t");
	ck_assert_str_eq(found.spec, "{\"argv\":[\"cat\"]}");
	ck_assert_uint_eq(found.last.cols, 100);
	ck_assert_uint_eq(found.last.flags, STORE_TERM_PINNED);
	ck_assert_int_eq(found.last.pid, 7);
}
END_TEST

START_TEST(the_first_to_settle_it_is_the_last)
{
	struct store_term term = sample("a");
	struct found found;

	term.id = add("a");
	term.state = "exited";
	term.value = 3;
	term.ended_ns = 9;
	term.bytes = 10;
	term.flags = STORE_TERM_OUTPUT_OPEN;
	ck_assert_int_eq(store_terms_update(store, &term, 1), 0);
	ck_assert_uint_eq(
		look(&(struct store_terms_query){ .open = true }).count, 1);

	/* Its size, its name and whether it is open change all the same. */
	term.state = "lost";
	term.value = 0;
	term.ended_ns = 10;
	term.bytes = 20;
	term.flags = 0;
	term.name = NULL;
	ck_assert_int_eq(store_terms_update(store, &term, 1), 0);
	found = look(&(struct store_terms_query){ .id = term.id });
	ck_assert_str_eq(found.state, "exited");
	ck_assert_int_eq(found.last.value, 3);
	ck_assert_int_eq(found.last.ended_ns, 9);
	ck_assert_uint_eq(found.last.bytes, 20);
	ck_assert_uint_eq(found.last.flags, 0);
	ck_assert_str_eq(found.name, "");
	ck_assert_uint_eq(
		look(&(struct store_terms_query){ .open = true }).count, 0);
}
END_TEST

START_TEST(old_ones_and_those_that_are_too_many_go)
{
	struct found found = { 0 };

	for (int i = 1; i <= 10; i++) {
		struct store_term term = sample(NULL);

		term.id = add(NULL);
		term.state = "exited";
		term.ended_ns = i < 10 ? i : 0; /* the last one lives */
		ck_assert_int_eq(store_terms_update(store, &term, 1), 0);
	}
	ck_assert_int_eq(store_terms_excess(store, 3, 100, note, &found), 0);
	ck_assert_uint_eq(found.count, 2);
	found = (struct found){ 0 };
	ck_assert_int_eq(store_terms_excess(store, 0, 4, note, &found), 0);
	ck_assert_uint_eq(found.count, 5);
	ck_assert_uint_eq(found.ids[4], 5);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("store_terms");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_id_is_never_given_twice);
	tcase_add_test(tc, what_became_of_one_is_found_again);
	tcase_add_test(tc, the_first_to_settle_it_is_the_last);
	tcase_add_test(tc, old_ones_and_those_that_are_too_many_go);
	return suite_run("store_terms", tc);
}
