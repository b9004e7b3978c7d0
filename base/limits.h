/* SPDX-License-Identifier: MIT */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/*
 * Everything an outsider can make pale hold has its number here, and an error
 * of its own when it is reached.
 */

#define LIMIT_RULES	     4096	  /* rules of one policy */
#define LIMIT_PATTERN	     4096	  /* bytes of one pattern */
#define LIMIT_ROOTS	     64		  /* roots of one policy */
#define LIMIT_CONFIG_BYTES   (1u << 20)	  /* configuration file */
#define LIMIT_GITCONFIG	     (1u << 20)	  /* bytes of a guarded git file */
#define LIMIT_GITINDEX	     (128u << 20) /* bytes of a git index */
#define LIMIT_GITKEPT	     (256u << 20) /* bytes of open guarded files */
#define LIMIT_PLAN_BYTES     (16u << 20)  /* encoded mount plan */
#define LIMIT_PLAN_MOUNTS    1024	  /* entries of a mount plan */
#define LIMIT_RPC_LINE	     (8u << 20)	  /* bytes of one RPC line */
#define LIMIT_RPC_DEPTH	     64		  /* nesting of one RPC line */
#define LIMIT_CLIENT_BACKLOG (64u << 20)  /* unread bytes of one client */
#define LIMIT_CLIENTS	     256	  /* clients of one warden */
#define LIMIT_SPOOL_BYTES    (4u << 20)	  /* one world's denial spool */

#endif
