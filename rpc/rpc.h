/* SPDX-License-Identifier: MIT */
#ifndef RPC_RPC_H
#define RPC_RPC_H

/*
 * JSON-RPC 2.0, one object per line.  This folder turns bytes into messages
 * and messages into bytes; it does no I/O and knows no handler.
 *
 *   socket bytes → rpc_lines_put → rpc_lines_next → rpc_parse → rpc_admit
 *   handler → rpc_write_result / rpc_write_fault → bytes with a newline
 *
 * What comes in is hostile.  A bad line costs that line: framing is by newline
 * alone, so the connection goes on.
 *
 * Thread: the owner's (the loop).
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define RPC_PROTOCOL 1

/* Who speaks: a set of bits, so that a method's row can name both. */
enum rpc_role {
	RPC_OPERATOR = 1u << 0, /* the human side, outside */
	RPC_AGENT = 1u << 1,	/* the fenced side */
	RPC_ANYONE = RPC_OPERATOR | RPC_AGENT,
};

/* "operator", "agent"; -EINVAL for another name. */
const char *rpc_role_name(enum rpc_role role);
int rpc_role_parse(const char *name, enum rpc_role *ret_role);

/*
 * Every method, its name and who may call it.  The warden expands the same
 * list into its table of handlers.  (world.mode: either may tighten; that only
 * the operator widens is the handler's to check.)
 */
#define RPC_METHODS(X)                                      \
	X(HELLO, "hello", RPC_ANYONE)                       \
	X(CANCEL, "cancel", RPC_ANYONE)                     \
	X(WORLD_SHOW, "world.show", RPC_ANYONE)             \
	X(WORLD_MODE, "world.mode", RPC_ANYONE)             \
	X(WORLD_STOP, "world.stop", RPC_OPERATOR)           \
	X(WORLD_SUBSCRIBE, "world.subscribe", RPC_ANYONE)   \
	X(DENIAL_LIST, "denial.list", RPC_ANYONE)           \
	X(DENIAL_SUBSCRIBE, "denial.subscribe", RPC_ANYONE) \
	X(WORLD_MOUNT, "world.mount", RPC_OPERATOR)         \
	X(WORLD_SERVE, "world.serve", RPC_OPERATOR)         \
	X(WORLD_UNMOUNT, "world.unmount", RPC_OPERATOR)     \
	X(RUN_EXEC, "run.exec", RPC_ANYONE)                 \
	X(RUN_SIGNAL, "run.signal", RPC_ANYONE)             \
	X(JOB_START, "job.start", RPC_ANYONE)               \
	X(JOB_LIST, "job.list", RPC_ANYONE)                 \
	X(JOB_SHOW, "job.show", RPC_ANYONE)                 \
	X(JOB_OUT, "job.out", RPC_ANYONE)                   \
	X(JOB_WAIT, "job.wait", RPC_ANYONE)                 \
	X(JOB_KILL, "job.kill", RPC_ANYONE)                 \
	X(JOB_RM, "job.rm", RPC_ANYONE)                     \
	X(JOB_PRUNE, "job.prune", RPC_OPERATOR)             \
	X(JOB_WRITE, "job.write", RPC_ANYONE)               \
	X(JOB_SUBSCRIBE, "job.subscribe", RPC_ANYONE)       \
	X(TERM_NEW, "term.new", RPC_ANYONE)                 \
	X(TERM_LIST, "term.list", RPC_ANYONE)               \
	X(TERM_SHOW, "term.show", RPC_ANYONE)               \
	X(TERM_SEND, "term.send", RPC_ANYONE)               \
	X(TERM_READ, "term.read", RPC_ANYONE)               \
	X(TERM_SCREEN, "term.screen", RPC_ANYONE)           \
	X(TERM_LINES, "term.lines", RPC_ANYONE)             \
	X(TERM_WAIT, "term.wait", RPC_ANYONE)               \
	X(TERM_RUN, "term.run", RPC_ANYONE)                 \
	X(TERM_RESIZE, "term.resize", RPC_ANYONE)           \
	X(TERM_SIGNAL, "term.signal", RPC_ANYONE)           \
	X(TERM_KILL, "term.kill", RPC_ANYONE)               \
	X(TERM_RENAME, "term.rename", RPC_ANYONE)           \
	X(TERM_RM, "term.rm", RPC_ANYONE)                   \
	X(TERM_SUBSCRIBE, "term.subscribe", RPC_ANYONE)     \
	X(TERM_ATTACH, "term.attach", RPC_OPERATOR)         \
	X(LOG_LEVEL, "log.level", RPC_OPERATOR)

enum rpc_method {
#define X(id, name, roles) RPC_##id,
	RPC_METHODS(X)
#undef X
	RPC_METHOD_COUNT /* also: a method we do not have */
};

const char *rpc_method_name(enum rpc_method method);
/* RPC_METHOD_COUNT when there is none of this name. */
enum rpc_method rpc_method_find(const char *name);
bool rpc_method_allowed(enum rpc_method method, enum rpc_role role);

/* JSON-RPC's own error numbers, and ours for "look at data.code". */
enum rpc_error {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL_ERROR = -32603,
	RPC_FAILED = -32000,
};

/* One failure as it goes on the wire.  A zeroed struct is no fault. */
struct rpc_fault {
	int error;	  /* enum rpc_error */
	const char *code; /* data.code, a static string; NULL: no data */
	int number;	  /* data.errno of the system; 0: none */
	char field[64];	  /* data.field, the parameter at fault; "" */
	char text[256];	  /* message, one sentence */
};

/*
 * Sets a fault and returns -EBADMSG, so that a failing path is one line.
 * `fault` may be NULL.
 */
int rpc_fault_set(struct rpc_fault *fault, int error, const char *code,
		  const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The same for a parameter that is wrong: "FIELD: WHAT". */
int rpc_fault_param(struct rpc_fault *fault, const char *field,
		    const char *what);

/*
 * The id of a request as JSON text ("7", "\"a\""), copied by value and compared
 * by strcmp(); "" when there is none.
 */
#define RPC_ID_MAX 160
struct rpc_id {
	char json[RPC_ID_MAX];
};

enum rpc_kind {
	RPC_REQUEST,
	RPC_NOTIFICATION, /* a request without id: never answered */
	RPC_RESPONSE,	  /* result is set */
	RPC_ERROR,	  /* error is set */
};

/* One message.  Everything borrowed lives as long as `root`. */
struct rpc_message {
	enum rpc_kind kind;
	struct rpc_id id;
	const char *name;	/* of the method; NULL in an answer */
	enum rpc_method method; /* RPC_METHOD_COUNT: none of ours */
	const json_t *params;	/* an object; NULL: absent */
	const json_t *result;
	const json_t *error; /* object with code, message, data */
	json_t *root;	     /* owned; rpc_message_fini() */
};

void rpc_message_fini(struct rpc_message *message);

/*
 * Reads one line (without its newline).  On -EBADMSG *ret_fault says what to
 * answer, and ret_message->id is set where the id could be read, so the answer
 * goes to the right call; nothing else of *ret_message is.  (An id too long to
 * be kept is a fault.)  -ENOMEM.
 */
int rpc_parse(const char *line, size_t len, struct rpc_message *ret_message,
	      struct rpc_fault *ret_fault);

/* Checks that the method exists and that `role` may call it; -EBADMSG. */
int rpc_admit(const struct rpc_message *message, enum rpc_role role,
	      struct rpc_fault *ret_fault);

/*
 * Typed parameters by table.  `value` points to: const char * (RPC_STRING,
 * borrowed from the message), int64_t, bool, const json_t * (OBJECT, ARRAY).
 * An optional one that is absent or null leaves *value as it was.  A wrong
 * type, a missing or an unknown name is -EBADMSG with RPC_INVALID_PARAMS naming
 * the field.  Strings with a NUL inside are refused.
 */
enum rpc_type {
	RPC_STRING,
	RPC_INTEGER,
	RPC_BOOLEAN,
	RPC_OBJECT,
	RPC_ARRAY
};

struct rpc_field {
	const char *name;
	enum rpc_type type;
	bool required;
	void *value;
};

int rpc_params(const struct rpc_message *message,
	       const struct rpc_field *fields, size_t n_fields,
	       struct rpc_fault *ret_fault);

/*
 * Writers: append one whole line, newline included.  `json`: a complete value
 * made with base/json.h, NULL for null (result) or for no params.  Check
 * buf_error() afterwards.
 */
void rpc_write_result(struct buf *out, const struct rpc_id *id,
		      const struct buf *json);
void rpc_write_fault(struct buf *out, const struct rpc_id *id,
		     const struct rpc_fault *fault);
void rpc_write_notification(struct buf *out, const char *name,
			    const struct buf *json);
void rpc_write_request(struct buf *out, uint64_t id, enum rpc_method method,
		       const struct buf *json);

/*
 * Framing: bytes in, lines out.  A line longer than LIMIT_RPC_LINE is skipped
 * to its newline while it comes in, so it is never held.  A zeroed struct is
 * ready for use.
 */
struct rpc_lines {
	struct buf held;
	size_t taken;	/* bytes of `held` already given out */
	size_t scanned; /* no newline before this */
	bool skipping;	/* inside a line that is too long */
	bool skipped;	/* its end was seen, rpc_lines_next() will tell */
};

/* Appends what was read.  -ENOMEM. */
int rpc_lines_put(struct rpc_lines *lines, const void *bytes, size_t len);

/*
 * The next line, without newline (a '\r' before it goes too), borrowed until
 * the next call.  1: *ret_line is set (empty lines are never given); 0: nothing
 * complete yet; -EMSGSIZE: a line was too long and has been skipped: answer
 * RPC_INVALID_REQUEST and go on.
 */
int rpc_lines_next(struct rpc_lines *lines, const char **ret_line,
		   size_t *ret_len);

/* What comes behind the lines given out, borrowed likewise: no more of them. */
void rpc_lines_rest(const struct rpc_lines *lines,
		    const unsigned char **ret_bytes, size_t *ret_len);

void rpc_lines_fini(struct rpc_lines *lines);

#endif
