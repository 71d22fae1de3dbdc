/* SPDX-License-Identifier: Apache-2.0 */
/* What this layer has to know of, and do for, the task behind a context. It lies below the kernel's layer, so these are
 * implemented above it, in syscalls/ipc_glue.c. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct ctx;
struct file;
struct ipcns;
struct mm;
struct pid;
struct sem_undo_list;
struct tgroup;

struct ipcns *ipc_caller_ns(struct ctx *ctx);
struct mm *ipc_caller_mm(struct ctx *ctx);
uint64_t ipc_caller_rlimit(struct ctx *ctx, int resource);
uint32_t ipc_caller_umask(struct ctx *ctx);
/* SEM_UNDO adjustments of the calling process. */
struct sem_undo_list **ipc_caller_undos(struct ctx *ctx);

/* The calling process's number object, referenced. */
struct pid *ipc_caller_pid(struct ctx *ctx);
struct pid *ipc_caller_pid_ref(struct pid *pid);
void ipc_caller_pid_put(struct pid *pid); /* NULL is fine */
/* As ctx sees it; 0: not visible, or NULL. */
int ipc_caller_pid_number(struct ctx *ctx, const struct pid *pid);

/* A memory file for a segment. Return: 0, −ENOMEM, −ENFILE. */
MUST_CHECK int ipc_caller_memory_file(struct ctx *ctx, const char *name, uint32_t mode, uint64_t size,
                                      struct file **ret_file);
/* Maps all of f shared, at addr (0: anywhere). Parks. Return: the address; −EINVAL (addr is taken, and replace is not set), the
 * host's errors. */
MUST_CHECK int64_t ipc_caller_map(struct ctx *ctx, struct file *f, uint64_t addr, uint64_t size, uint32_t prot,
                                  bool replace);
MUST_CHECK int64_t ipc_caller_unmap(struct ctx *ctx, uint64_t addr, uint64_t size);

/* The calling process, for notifications: only an identity here. */
struct tgroup *ipc_caller_group(struct ctx *ctx); /* borrowed; NULL for the sentry's own contexts */
struct tgroup *ipc_caller_group_ref(struct tgroup *g);
void ipc_caller_group_put(struct tgroup *g);
int ipc_caller_group_number(struct tgroup *g); /* its pid in its own namespace */
/* SIGEV_SIGNAL of a message queue: ctx's process sent the message. */
void ipc_caller_signal(struct ctx *ctx, struct tgroup *g, const struct sigevent *ev);
/* SIGEV_THREAD: sends size bytes to a netlink socket. */
void ipc_caller_tell(struct file *socket, const void *p, uint32_t size);
