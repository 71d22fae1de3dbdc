/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptor tables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"

struct ctx;
struct file;
struct task;

struct fdtable {
    struct ref ref;        /* tasks that share it (CLONE_FILES) */
    struct file **files;   /* (k) NULL = free or reserved */
    uint64_t *open_bits;   /* (k) in use or reserved */
    uint64_t *cloexec_bits; /* (k) */
    uint32_t capacity;     /* (k) descriptors of room */
    uint32_t next;         /* (k) lowest number that may be free */
};

MUST_CHECK int fdtable_new(struct fdtable **ret_table);
MUST_CHECK int fdtable_dup(const struct fdtable *t, struct fdtable **ret_table);
struct fdtable *fdtable_ref(struct fdtable *t);
/* ctx (may be NULL at teardown) is for flush of the files closed with the last reference. */
void fdtable_unref(struct ctx *ctx, struct fdtable *t);

/* Reserves the lowest free number ≥ min below the task's RLIMIT_NOFILE. Return: fd, −EMFILE, −ENOMEM. Publish with
 * fdtable_install, or give back with fdtable_unreserve. */
MUST_CHECK int fdtable_reserve(struct task *t, uint32_t min);
void fdtable_unreserve(struct task *t, int fd);
/* Cannot fail. Consumes the reference of file. */
void fdtable_install(struct task *t, int fd, OWNS struct file *file, bool cloexec);
/* Reserve and install in one. Consumes file also on failure. */
MUST_CHECK int fdtable_add(struct task *t, OWNS struct file *file, uint32_t min, bool cloexec);
/* dup2/dup3: closes what is at fd. Consumes file. */
MUST_CHECK int fdtable_replace(struct task *t, int fd, OWNS struct file *file, bool cloexec);
/* Return: referenced file (−> file_unref), or NULL (callers return −EBADF). _any also gives O_PATH files. */
MUST_CHECK struct file *fdtable_get(struct task *t, int fd);
MUST_CHECK struct file *fdtable_get_any(struct task *t, int fd);
/* Return: 0 or −EBADF, or the flush error. */
int fdtable_close(struct task *t, int fd);
void fdtable_close_range(struct task *t, uint32_t first, uint32_t last);
void fdtable_cloexec_range(struct task *t, uint32_t first, uint32_t last);
void fdtable_close_on_exec(struct task *t);
bool fdtable_cloexec(const struct fdtable *t, int fd);
MUST_CHECK int fdtable_set_cloexec(struct task *t, int fd, bool on); /* −EBADF */
/* Next used number ≥ fd, or −1: for /proc/PID/fd. _peek does not take a reference. */
int fdtable_next(const struct fdtable *t, int fd);
struct file *fdtable_peek(const struct fdtable *t, int fd);
