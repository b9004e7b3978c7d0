/* SPDX-License-Identifier: MIT */

#include "rpc/rpc.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static struct rpc_message message;
static struct rpc_fault fault;
static struct rpc_lines lines;
static struct buf out;

static void
setup(void)
{
	message = (struct rpc_message){ 0 };
	lines = (struct rpc_lines){ 0 };
	out = (struct buf){ 0 };
}

static void
teardown(void)
{
	rpc_message_fini(&message);
	rpc_lines_fini(&lines);
	buf_fini(&out);
}

static int
parse(const char *line)
{
	rpc_message_fini(&message);
	return rpc_parse(line, strlen(line), &message, &fault);
}

START_TEST(a_request_is_read)
{
	ck_assert_int_eq(parse("{\"jsonrpc\":\"2.0\",\"id\":7,"
			       "\"method\":\"hello\",\"params\":{}}"),
			 0);
	ck_assert_int_eq(message.kind, RPC_REQUEST);
	ck_assert_int_eq(message.method, RPC_HELLO);
	ck_assert_str_eq(message.id.json, "7");
	ck_assert(json_is_object(message.params));
}
END_TEST

START_TEST(a_request_without_id_is_a_notification)
{
	ck_assert_int_eq(parse("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}"), 0);
	ck_assert_int_eq(message.kind, RPC_NOTIFICATION);
	ck_assert_int_eq(message.method, RPC_METHOD_COUNT);
	ck_assert_str_eq(message.name, "x");
}
END_TEST

START_TEST(answers_are_read)
{
	ck_assert_int_eq(parse("{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"\","
			       "\"result\":null}"),
			 0);
	ck_assert_int_eq(message.kind, RPC_RESPONSE);
	ck_assert_str_eq(message.id.json, "\"a\\\"\"");
	ck_assert_int_eq(parse("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":"
			       "{\"code\":-32700,\"message\":\"m\"}}"),
			 0);
	ck_assert_int_eq(message.kind, RPC_ERROR);
}
END_TEST

static const struct {
	const char *line;
	int error;
	const char *field, *id;
} bad_lines[] = {
	{ "{", RPC_PARSE_ERROR, "", "" },
	{ "\xff", RPC_PARSE_ERROR, "", "" },
	{ "{\"id\":\"\xff\"}", RPC_PARSE_ERROR, "", "" },
	{ "[]", RPC_INVALID_REQUEST, "", "" },
	{ "{\"id\":1,\"id\":1}", RPC_INVALID_REQUEST, "", "" },
	{ "{\"id\":1}", RPC_INVALID_REQUEST, "jsonrpc", "1" },
	{ "{\"jsonrpc\":\"1.0\",\"id\":1}", RPC_INVALID_REQUEST, "jsonrpc",
	  "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"hello\"}",
	  RPC_INVALID_REQUEST, "id", "" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"hello\"}",
	  RPC_INVALID_REQUEST, "id", "" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":2}", RPC_INVALID_REQUEST,
	  "method", "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\\u0000x\"}",
	  RPC_INVALID_REQUEST, "method", "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":[]}",
	  RPC_INVALID_REQUEST, "params", "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1}", RPC_INVALID_REQUEST, "method",
	  "1" },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":3}", RPC_INVALID_REQUEST,
	  "error", "1" },
};

START_TEST(a_bad_line_says_what_is_wrong_and_whose_it_was)
{
	for (size_t i = 0; i < sizeof(bad_lines) / sizeof(bad_lines[0]); i++) {
		ck_assert_int_eq(parse(bad_lines[i].line), -EBADMSG);
		ck_assert_int_eq(fault.error, bad_lines[i].error);
		ck_assert_str_eq(fault.field, bad_lines[i].field);
		ck_assert_str_eq(message.id.json, bad_lines[i].id);
		ck_assert_ptr_null(message.root);
		ck_assert_uint_gt(strlen(fault.text), 0);
	}
}
END_TEST

START_TEST(depth_is_limited_and_brackets_in_strings_are_none)
{
	static const char many[] = "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
				   "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";
	char line[512], close[sizeof(many)];
	const int depth = LIMIT_RPC_DEPTH - 2; /* beside the two objects */

	memset(close, ']', sizeof(close));
	(void)snprintf(line, sizeof(line),
		       "{\"jsonrpc\":\"2.0\",\"method\":\"hello\","
		       "\"params\":{\"a\":%.*s\"[[[[\\\"[[\"%.*s}}",
		       depth, many, depth, close);
	ck_assert_int_eq(parse(line), 0);
	ck_assert_int_eq(parse(many), -EBADMSG);
	ck_assert_int_eq(fault.error, RPC_INVALID_REQUEST);
	ck_assert_ptr_nonnull(strstr(fault.text, "deeper"));
}
END_TEST

START_TEST(an_agent_may_not_what_only_the_operator_may)
{
	ck_assert_int_eq(parse("{\"jsonrpc\":\"2.0\",\"id\":1,"
			       "\"method\":\"world.stop\"}"),
			 0);
	ck_assert_int_eq(rpc_admit(&message, RPC_OPERATOR, &fault), 0);
	ck_assert_int_eq(rpc_admit(&message, RPC_AGENT, &fault), -EBADMSG);
	ck_assert_str_eq(fault.code, "ROLE_DENIED");
	ck_assert_int_eq(parse("{\"jsonrpc\":\"2.0\",\"id\":1,"
			       "\"method\":\"no.such\"}"),
			 0);
	ck_assert_int_eq(rpc_admit(&message, RPC_OPERATOR, &fault), -EBADMSG);
	ck_assert_int_eq(fault.error, RPC_METHOD_NOT_FOUND);
}
END_TEST

START_TEST(every_method_is_found_by_its_name)
{
	for (int i = 0; i < RPC_METHOD_COUNT; i++)
		ck_assert_int_eq(
			rpc_method_find(rpc_method_name((enum rpc_method)i)),
			i);
}
END_TEST

static int
params(const char *json, const char **text, int64_t *number, bool *flag)
{
	const struct rpc_field fields[] = {
		{ "text", RPC_STRING, true, text },
		{ "number", RPC_INTEGER, false, number },
		{ "flag", RPC_BOOLEAN, false, flag },
	};
	char line[256];

	(void)snprintf(line, sizeof(line),
		       "{\"jsonrpc\":\"2.0\",\"method\":\"x\"%s%s}",
		       json[0] ? ",\"params\":" : "", json);
	ck_assert_int_eq(parse(line), 0);
	return rpc_params(&message, fields, 3, &fault);
}

START_TEST(parameters_are_typed_and_faults_name_the_field)
{
	const char *text = NULL;
	int64_t number = 5;
	bool flag = false;

	ck_assert_int_eq(params("{\"text\":\"t\",\"number\":null,"
				"\"flag\":true}",
				&text, &number, &flag),
			 0);
	ck_assert_str_eq(text, "t");
	ck_assert_int_eq(number, 5);
	ck_assert(flag);

	ck_assert_int_eq(params("", &text, &number, &flag), -EBADMSG);
	ck_assert_str_eq(fault.field, "text");
	ck_assert_int_eq(params("{\"text\":\"t\",\"number\":\"1\"}", &text,
				&number, &flag),
			 -EBADMSG);
	ck_assert_str_eq(fault.field, "number");
	ck_assert_int_eq(
		params("{\"text\":\"a\\u0000b\"}", &text, &number, &flag),
		-EBADMSG);
	ck_assert_int_eq(
		params("{\"text\":\"t\",\"Flag\":true}", &text, &number, &flag),
		-EBADMSG);
	ck_assert_str_eq(fault.field, "Flag");
	ck_assert_int_eq(fault.error, RPC_INVALID_PARAMS);
}
END_TEST

START_TEST(what_is_written_is_read_back)
{
	struct rpc_id id = { "\"x\"" };
	struct buf json = { 0 };

	rpc_fault_set(&fault, RPC_FAILED, "STALE", "no \"%s\"", "way");
	rpc_write_fault(&out, &id, &fault);
	buf_puts(&json, "{\"a\":1}");
	rpc_write_result(&out, &id, &json);
	rpc_write_notification(&out, "denial", &json);
	rpc_write_request(&out, 9, RPC_WORLD_SHOW, NULL);
	buf_fini(&json);
	ck_assert_int_eq(buf_error(&out), 0);
	ck_assert_int_eq(rpc_lines_put(&lines, out.data, out.len), 0);

	for (int i = 0; i < 4; i++) {
		static const enum rpc_kind kinds[] = { RPC_ERROR, RPC_RESPONSE,
						       RPC_NOTIFICATION,
						       RPC_REQUEST };
		const char *line;
		size_t len;

		ck_assert_int_eq(rpc_lines_next(&lines, &line, &len), 1);
		rpc_message_fini(&message);
		ck_assert_int_eq(rpc_parse(line, len, &message, &fault), 0);
		ck_assert_int_eq(message.kind, kinds[i]);
	}
	ck_assert_int_eq(message.method, RPC_WORLD_SHOW);
}
END_TEST

/* The same bytes in pieces of any size give the same lines. */
START_TEST(lines_do_not_depend_on_how_the_bytes_come)
{
	static const char text[] = "one\n\n\r\ntwo\r\nthree\nrest";
	static const char *const want[] = { "one", "two", "three" };
	unsigned int seed = (unsigned int)_i + 1;
	size_t at = 0, got = 0;

	while (at < strlen(text)) {
		size_t n = 1 + (size_t)rand_r(&seed) % 5, len;
		const char *line;

		if (n > strlen(text) - at)
			n = strlen(text) - at;
		ck_assert_int_eq(rpc_lines_put(&lines, text + at, n), 0);
		at += n;
		while (rpc_lines_next(&lines, &line, &len) == 1) {
			ck_assert_uint_lt(got, 3);
			ck_assert_uint_eq(len, strlen(want[got]));
			ck_assert_int_eq(memcmp(line, want[got], len), 0);
			got++;
		}
	}
	ck_assert_uint_eq(got, 3);
}
END_TEST

START_TEST(a_line_that_is_too_long_is_skipped_and_not_held)
{
	static char chunk[65536];
	const char *line;
	size_t len;
	int told = 0;

	memset(chunk, 'x', sizeof(chunk));
	for (int i = 0; i < 400; i++) {
		ck_assert_int_eq(rpc_lines_put(&lines, chunk, sizeof(chunk)),
				 0);
		ck_assert_int_eq(rpc_lines_next(&lines, &line, &len), 0);
		ck_assert_uint_le(lines.held.room, 2UL * LIMIT_RPC_LINE);
	}
	ck_assert_int_eq(rpc_lines_put(&lines, "x\nnext\n", 7), 0);
	while (rpc_lines_next(&lines, &line, &len) == -EMSGSIZE)
		told++;
	ck_assert_int_eq(told, 1);
	ck_assert_uint_eq(len, 4);
}
END_TEST

START_TEST(memory_that_is_out_is_told)
{
	oom_arm(1);
	ck_assert_int_eq(rpc_lines_put(&lines, "x", 1), -ENOMEM);
	oom_disarm();
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("rpc");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_request_is_read);
	tcase_add_test(tc, a_request_without_id_is_a_notification);
	tcase_add_test(tc, answers_are_read);
	tcase_add_test(tc, a_bad_line_says_what_is_wrong_and_whose_it_was);
	tcase_add_test(tc, depth_is_limited_and_brackets_in_strings_are_none);
	tcase_add_test(tc, an_agent_may_not_what_only_the_operator_may);
	tcase_add_test(tc, every_method_is_found_by_its_name);
	tcase_add_test(tc, parameters_are_typed_and_faults_name_the_field);
	tcase_add_test(tc, what_is_written_is_read_back);
	tcase_add_loop_test(tc, lines_do_not_depend_on_how_the_bytes_come, 0,
			    20);
	tcase_add_test(tc, a_line_that_is_too_long_is_skipped_and_not_held);
	tcase_add_test(tc, memory_that_is_out_is_told);
	return suite_run("rpc", tc);
}
