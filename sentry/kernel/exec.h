/* SPDX-License-Identifier: Apache-2.0 */
/* execve: from an opened file to a new program in a fresh guest process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/buf.h"
#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"
#include "sentry/vfs/path_walk.h"

struct task;

/* Arguments or environment: strings one after the other, each with its NUL. */
struct exec_strings {
    struct buf bytes;
    uint32_t count;
};

void exec_strings_free(struct exec_strings *s);
/* Copies a guest's vector of string pointers (NULL: empty). Return: 0, −EFAULT, −E2BIG, −ENOMEM. */
MUST_CHECK int exec_strings_in(struct task *t, uaddr_t vector, struct exec_strings *ret_strings);
/* The same from sentry memory. Return: 0, −E2BIG, −ENOMEM. */
MUST_CHECK int exec_strings_from(char *const *vector, struct exec_strings *ret_strings);

/* Opens path for execution: a regular file that may be executed, on a mount that allows it. walk_flags: WALK_*.
 * Return: 0, −EACCES, the walk's errors. */
MUST_CHECK int exec_open(struct ctx *ctx, const struct walk_base *base, const char *path, unsigned walk_flags,
                         struct file **ret_file);

struct exec_request {
    struct file *file;         /* opened by exec_open; borrowed */
    const char *name;          /* AT_EXECFN, and a script's name for its interpreter */
    bool comm_of_file;         /* the process is named after the file that runs, not after name */
    bool name_unreachable;     /* name is /dev/fd/N of a close-on-exec descriptor: no scripts */
    struct exec_strings *argv, *envp; /* argv is changed for scripts */
};

/* Replaces t's program. For a task without memory it is its first program. Parks. Return: 0 (t's registers are those of the
 * new program), or −errno with the old program untouched. */
MUST_CHECK int exec_run(struct task *t, const struct exec_request *req);
