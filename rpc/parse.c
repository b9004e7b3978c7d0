/* SPDX-License-Identifier: MIT */

/*
 * One line into one message.
 *
 * The depth is counted on the text before jansson sees it: jansson's own limit
 * is 2,048 and its recursion is on our stack.
 */

#include "rpc/rpc.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"

void
rpc_message_fini(struct rpc_message *message)
{
	json_decref(message->root);
	*message = (struct rpc_message){ .method = RPC_METHOD_COUNT };
}

static void
decref_jsonp(json_t **value)
{
	json_decref(*value);
}

/* Nesting of brackets outside strings; wrong JSON gives some number. */
static bool
is_too_deep(const char *line, size_t len)
{
	bool in_string = false;
	size_t depth = 0;

	for (size_t i = 0; i < len; i++) {
		if (in_string) {
			if (line[i] == '\\')
				i++;
			else if (line[i] == '"')
				in_string = false;
		} else if (line[i] == '"') {
			in_string = true;
		} else if (line[i] == '{' || line[i] == '[') {
			if (++depth > LIMIT_RPC_DEPTH)
				return true;
		} else if ((line[i] == '}' || line[i] == ']') && depth > 0) {
			depth--;
		}
	}
	return false;
}

static int
load(const char *line, size_t len, json_t **ret_root, struct rpc_fault *fault)
{
	json_error_t error;
	json_t *root;

	if (is_too_deep(line, len))
		return rpc_fault_set(fault, RPC_INVALID_REQUEST, NULL,
				     "nested deeper than %d", LIMIT_RPC_DEPTH);
	root = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
			  &error);
	if (!root && json_error_code(&error) == json_error_out_of_memory)
		return -ENOMEM;
	if (!root)
		return rpc_fault_set(
			fault,
			json_error_code(&error) == json_error_duplicate_key
				? RPC_INVALID_REQUEST
				: RPC_PARSE_ERROR,
			NULL, "not a JSON object at byte %d: %.160s",
			error.position, error.text);
	if (!json_is_object(root)) {
		json_decref(root);
		return rpc_fault_set(fault, RPC_INVALID_REQUEST, NULL,
				     "a message is one JSON object a line");
	}
	*ret_root = root;
	return 0;
}

static int
wrong(struct rpc_fault *fault, const char *field, const char *should)
{
	(void)rpc_fault_set(fault, RPC_INVALID_REQUEST, NULL, "'%s' %s", field,
			    should);
	(void)snprintf(fault->field, sizeof(fault->field), "%s", field);
	return -EBADMSG;
}

static int
read_id(const json_t *root, struct rpc_id *ret_id, struct rpc_fault *fault)
{
	const json_t *id = json_object_get(root, "id");
	struct buf text = { 0 };
	int r = 0;

	if (!id)
		return 0;
	if (json_is_integer(id))
		jsonw_int(&text, json_integer_value(id));
	else if (json_is_string(id))
		jsonw_bytes(&text, json_string_value(id),
			    json_string_length(id));
	else if (json_is_null(id) && json_object_get(root, "error"))
		return 0; /* the answer to what could not be read */
	else
		return wrong(fault, "id", "must be a string or an integer");

	if (buf_error(&text) < 0) {
		r = -ENOMEM;
	} else if (text.len >= RPC_ID_MAX) {
		r = wrong(fault, "id", "is too long");
	} else {
		memcpy(ret_id->json, text.data, text.len);
		ret_id->json[text.len] = '\0';
	}
	buf_fini(&text);
	return r;
}

static int
read_call(struct rpc_message *message, struct rpc_fault *fault)
{
	const json_t *method = json_object_get(message->root, "method");
	const json_t *params = json_object_get(message->root, "params");

	if (!json_is_string(method) ||
	    strlen(json_string_value(method)) != json_string_length(method))
		return wrong(fault, "method", "must be a string");
	if (params && !json_is_object(params))
		return wrong(fault, "params", "must be an object");
	message->kind = message->id.json[0] ? RPC_REQUEST : RPC_NOTIFICATION;
	message->name = json_string_value(method);
	message->method = rpc_method_find(message->name);
	message->params = params;
	return 0;
}

static int
read_answer(struct rpc_message *message, struct rpc_fault *fault)
{
	message->result = json_object_get(message->root, "result");
	message->error = json_object_get(message->root, "error");
	if (message->error && message->result)
		return wrong(fault, "error", "excludes 'result'");
	if (message->result) {
		message->kind = RPC_RESPONSE;
		if (!message->id.json[0])
			return wrong(fault, "id", "is missing");
		return 0;
	}
	message->kind = RPC_ERROR;
	if (!message->error)
		return wrong(fault, "method", "is missing");
	if (!json_is_object(message->error) ||
	    !json_is_integer(json_object_get(message->error, "code")) ||
	    !json_is_string(json_object_get(message->error, "message")))
		return wrong(fault, "error",
			     "must be an object with code and message");
	return 0;
}

static int
read_message(struct rpc_message *message, struct rpc_fault *fault)
{
	const json_t *version = json_object_get(message->root, "jsonrpc");
	int r;

	r = read_id(message->root, &message->id, fault);
	if (r < 0)
		return r;
	if (!json_is_string(version) ||
	    strcmp(json_string_value(version), "2.0") != 0)
		return wrong(fault, "jsonrpc", "must be \"2.0\"");
	if (json_object_get(message->root, "method"))
		return read_call(message, fault);
	return read_answer(message, fault);
}

int
rpc_parse(const char *line, size_t len, struct rpc_message *ret_message,
	  struct rpc_fault *ret_fault)
{
	_cleanup_(decref_jsonp) json_t *root = NULL;
	struct rpc_message message = { .method = RPC_METHOD_COUNT };
	int r;

	*ret_message = message;
	*ret_fault = (struct rpc_fault){ 0 };
	r = load(line, len, &root, ret_fault);
	if (r < 0)
		return r;
	message.root = root;
	r = read_message(&message, ret_fault);
	if (r < 0) {
		ret_message->id = message.id;
		return r;
	}
	*ret_message = message;
	root = NULL;
	return 0;
}

int
rpc_admit(const struct rpc_message *message, enum rpc_role role,
	  struct rpc_fault *ret_fault)
{
	*ret_fault = (struct rpc_fault){ 0 };
	if (message->method == RPC_METHOD_COUNT)
		return rpc_fault_set(ret_fault, RPC_METHOD_NOT_FOUND, NULL,
				     "no method '%.100s'",
				     message->name ? message->name : "");
	if (!rpc_method_allowed(message->method, role))
		return rpc_fault_set(ret_fault, RPC_FAILED, "ROLE_DENIED",
				     "'%s' is not for the role '%s'",
				     message->name, rpc_role_name(role));
	return 0;
}

static const char *const type_names[] = {
	[RPC_STRING] = "a string",   [RPC_INTEGER] = "an integer",
	[RPC_BOOLEAN] = "a boolean", [RPC_OBJECT] = "an object",
	[RPC_ARRAY] = "an array",
};

static bool
take_value(const struct rpc_field *field, const json_t *value)
{
	switch (field->type) {
	case RPC_STRING:
		if (!json_is_string(value) ||
		    strlen(json_string_value(value)) !=
			    json_string_length(value))
			return false;
		*(const char **)field->value = json_string_value(value);
		return true;
	case RPC_INTEGER:
		if (!json_is_integer(value))
			return false;
		*(int64_t *)field->value = json_integer_value(value);
		return true;
	case RPC_BOOLEAN:
		if (!json_is_boolean(value))
			return false;
		*(bool *)field->value = json_is_true(value);
		return true;
	case RPC_OBJECT:
	case RPC_ARRAY:
		if (field->type == RPC_OBJECT ? !json_is_object(value)
					      : !json_is_array(value))
			return false;
		*(const json_t **)field->value = value;
		return true;
	}
	return false;
}

static int
wrong_param(struct rpc_fault *fault, const char *field, const char *should,
	    const char *what)
{
	(void)rpc_fault_set(fault, RPC_INVALID_PARAMS, NULL,
			    "parameter '%.60s' %s%s", field, should, what);
	(void)snprintf(fault->field, sizeof(fault->field), "%s", field);
	return -EBADMSG;
}

int
rpc_params(const struct rpc_message *message, const struct rpc_field *fields,
	   size_t n_fields, struct rpc_fault *ret_fault)
{
	const char *key;
	json_t *ignored;

	*ret_fault = (struct rpc_fault){ 0 };
	for (size_t i = 0; i < n_fields; i++) {
		const json_t *value =
			json_object_get(message->params, fields[i].name);

		if (!value || json_is_null(value)) {
			if (fields[i].required)
				return wrong_param(ret_fault, fields[i].name,
						   "is missing", "");
		} else if (!take_value(&fields[i], value)) {
			return wrong_param(ret_fault, fields[i].name,
					   "must be ",
					   type_names[fields[i].type]);
		}
	}
	/* jansson's iterator takes no const object and changes nothing. */
	json_object_foreach((json_t *)message->params, key, ignored)
	{
		size_t i = 0;

		(void)ignored;
		while (i < n_fields && strcmp(fields[i].name, key) != 0)
			i++;
		if (i == n_fields)
			return wrong_param(ret_fault, key, "is unknown", "");
	}
	return 0;
}
