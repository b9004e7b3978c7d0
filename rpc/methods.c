/* SPDX-License-Identifier: MIT */

/* The table of methods and roles, and the faults. */

#include "rpc/rpc.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	unsigned int roles;
} methods[] = {
#define X(id, name, roles) [RPC_##id] = { name, roles },
	RPC_METHODS(X)
#undef X
};

static_assert(sizeof(methods) / sizeof(methods[0]) == RPC_METHOD_COUNT,
	      "every method has its row");

const char *
rpc_method_name(enum rpc_method method)
{
	return method < RPC_METHOD_COUNT ? methods[method].name : "";
}

enum rpc_method
rpc_method_find(const char *name)
{
	enum rpc_method method = 0;

	while (method < RPC_METHOD_COUNT &&
	       strcmp(methods[method].name, name) != 0)
		method++;
	return method;
}

bool
rpc_method_allowed(enum rpc_method method, enum rpc_role role)
{
	return method < RPC_METHOD_COUNT &&
	       (methods[method].roles & (unsigned int)role) != 0;
}

const char *
rpc_role_name(enum rpc_role role)
{
	return role == RPC_OPERATOR ? "operator" : "agent";
}

int
rpc_role_parse(const char *name, enum rpc_role *ret_role)
{
	if (strcmp(name, "operator") == 0)
		*ret_role = RPC_OPERATOR;
	else if (strcmp(name, "agent") == 0)
		*ret_role = RPC_AGENT;
	else
		return -EINVAL;
	return 0;
}

int
rpc_fault_set(struct rpc_fault *fault, int error, const char *code,
	      const char *format, ...)
{
	va_list args;

	if (!fault)
		return -EBADMSG;
	fault->error = error;
	fault->code = code;
	fault->field[0] = '\0';
	va_start(args, format);
	(void)vsnprintf(fault->text, sizeof(fault->text), format, args);
	va_end(args);
	return -EBADMSG;
}

int
rpc_fault_param(struct rpc_fault *fault, const char *field, const char *what)
{
	int r = rpc_fault_set(fault, RPC_INVALID_PARAMS, NULL, "%s: %s", field,
			      what);

	if (fault)
		(void)snprintf(fault->field, sizeof(fault->field), "%s", field);
	return r;
}
