/* SPDX-License-Identifier: Apache-2.0 */
/* The gofer's operations (proto/wire.h says what each does). */
#pragma once

#include <stdint.h>

#include "gofer/server/srv_session.h"

/* Reads call->in, does the work, writes call->out and call->fds. Return: 0 or −errno. */
typedef int (*srv_handler)(struct srv_call *call);

/* Return: handler of op, or NULL. */
srv_handler srv_handlers_find(enum wire_op op);

/* ---- shared with srv_dir.c, srv_make.c and srv_meta.c ---- */

/* Ends the handler with −EBADF when id names no node of the session; put with srv_handlers_put. */
MUST_CHECK int srv_handlers_node(struct srv_call *call, uint64_t id, struct srv_node **ret_node);
/* The same for a directory that is about to be changed: −ENOTDIR, −EROFS. */
MUST_CHECK int srv_handlers_dir_for_write(struct srv_call *call, uint64_t id,
                                          struct srv_node **ret_node);
void srv_handlers_put(struct srv_call *call, struct srv_node *n);
/* Whether name in dir is the runtime's own (WIRE_STORE_NAME): for the sentry it is not there. */
bool srv_handlers_hides(const struct srv_node *dir, const char *name);
bool srv_handlers_read_only(const struct srv_call *call, const struct srv_node *n);

/* Reads a string that must be one valid name, NUL-terminated into name. Return: 0, −EINVAL. */
MUST_CHECK int srv_handlers_name(struct srv_call *call, char name[static WIRE_NAME_MAX + 1]);

/* Opens one component below the directory fd without following or leaving anything.
 * Return: O_PATH descriptor or −errno. */
MUST_CHECK int srv_handlers_open_child(int dir_fd, const char *name);
/* Opens the inode of an O_PATH descriptor anew. Return: descriptor or −errno. */
MUST_CHECK int srv_handlers_reopen(struct srv_session *s, int fd, int flags);
/* The name of a descriptor in the working directory, which is /proc/self/fd. */
void srv_handlers_fd_name(int fd, char ret_name[static 16]);

/* Attributes of name below fd, or of fd itself when name is "". Return: 0 or −errno. */
MUST_CHECK int srv_handlers_attr(struct srv_session *s, int fd, const char *name,
                                 struct wire_attr *ret_attr);
/* Makes a node of fd (consumed) and writes its entry. Return: 0 or −errno. */
MUST_CHECK int srv_handlers_put_entry(struct srv_call *call, OWNS int fd, uint32_t tree,
                                      const struct wire_attr *attr);
