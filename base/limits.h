/* SPDX-License-Identifier: MIT */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/*
 * Everything an outsider can make pale hold has its number here, and an error
 * of its own when it is reached.
 */

#define LIMIT_RULES	     4096	  /* rules of one policy */
#define LIMIT_PATTERN	     4096	  /* bytes of one pattern */
#define LIMIT_RULE_STATES    (1u << 16)	  /* a hostile tree may make many */
#define LIMIT_RULE_NODES     (1u << 22)	  /* and large ones */
#define LIMIT_POLICY_JSON    (64u << 20)  /* bytes of an encoded policy */
#define LIMIT_ROOTS	     64		  /* roots of one policy */
#define LIMIT_CONFIG_BYTES   (1u << 20)	  /* configuration file */
#define LIMIT_CONFIG_PARTS   1024	  /* sections of it */
#define LIMIT_GITCONFIG	     (1u << 20)	  /* bytes of a guarded git file */
#define LIMIT_GITINDEX	     (128u << 20) /* bytes of a git index */
#define LIMIT_GITKEPT	     (256u << 20) /* bytes of open guarded files */
#define LIMIT_GITSMALL	     (64u << 10)  /* one judged at each write */
#define LIMIT_GITINDEX_OPEN  (32u << 20)  /* an index that is, too */
#define LIMIT_GITBORN	     64		  /* repositories told of as new */
#define LIMIT_PLAN_BYTES     (16u << 20)  /* encoded mount plan */
#define LIMIT_PLAN_MOUNTS    1024	  /* entries of a mount plan */
#define LIMIT_SPAWN_BYTES    (4u << 20)	  /* encoded command of a world */
#define LIMIT_COMMANDS	     4096	  /* commands of one world at once */
#define LIMIT_CALL	     256	  /* bytes of a caller's id of a call */
#define LIMIT_RPC_LINE	     (8u << 20)	  /* bytes of one RPC line */
#define LIMIT_RPC_DEPTH	     64		  /* nesting of one RPC line */
#define LIMIT_CLIENT_BACKLOG (64u << 20)  /* unread bytes of one client */
#define LIMIT_CLIENTS	     256	  /* clients of one warden */
#define LIMIT_LOCK_OWNERS    8192	  /* each holds a descriptor */
#define LIMIT_LOCK_RANGES    262144	  /* of all owners of a mount */
#define LIMIT_LOCK_WAITERS   4096	  /* requests that wait for a lock */
#define LIMIT_NOTES	     262144	  /* for the kernel, of one mount */
#define LIMIT_DEVICES	     256	  /* file systems below one workspace */
#define LIMIT_CLIENT_CALLS   32		  /* calls of one client at once */
#define LIMIT_CLIENT_WAITS   16384	  /* and such as wait for a job */
#define LIMIT_WAITED_IDS     (1u << 18)	  /* ids of jobs in these */
#define LIMIT_TERM_UNTIL     256	  /* waits for what terminals do */
#define LIMIT_VERSION_BYTES  (1u << 30)	  /* read to answer for a version */
#define LIMIT_LIST_ROWS	     10000	  /* rows of one answer */
#define LIMIT_FEED_BYTES     (1u << 20)	  /* unread rows of a subscription */
#define LIMIT_CONNECTS	     1024	  /* connect(2) calls that wait */
#define LIMIT_CONNECTING     128	  /* of these, in hand at once */
#define LIMIT_LET_IN	     128	  /* host sockets let in */
#define LIMIT_SOCKET_SHARERS 16		  /* listeners of one socket file */
#define LIMIT_SPOOL_BYTES    (4u << 20)	  /* one world's denial spool */
#define LIMIT_CLIENT_FDS     16		  /* descriptors before their request */
#define LIMIT_FACES	     64		  /* mounts of one world */
#define LIMIT_JOBS_QUEUED    10000	  /* jobs of one world that wait */
#define LIMIT_JOBS_ASKED     (128u << 20) /* bytes of what they shall run */
#define LIMIT_JOB_IDS	     1000	  /* ids of jobs in one request */
#define LIMIT_JOB_NAME	     256	  /* bytes of a name, of a token */
#define LIMIT_JOB_RETRY	     1000	  /* starts after the first */
#define LIMIT_JOB_OUT	     (1u << 20)	  /* bytes of one job.out */
#define LIMIT_LOG_BYTES	     (1u << 20)	  /* log of one warden */
#define LIMIT_ECHO	     8192	  /* changes to be told inside */
#define LIMIT_TREE_ORDER     (1u << 20)	  /* bytes written to jobs/new */
#define LIMIT_TREE_ASK	     (64u << 10)  /* bytes written to ask */
#define LIMIT_TREE_DENIALS   (1u << 20)	  /* bytes read ahead of denials */
#define LIMIT_TREE_OPENS     65536	  /* open files of the control tree */
#define LIMIT_TREE_TEXT	     (64u << 20)  /* bytes of texts they keep */

#endif
