/* SPDX-License-Identifier: Apache-2.0 */
/* A gofer server, its client and a mounted file system, with short forms for what tests do to it.
 */
#pragma once

#include "sentry/core/ctx.h"
#include "sentry/fs/gofer/gofer_client_priv.h"
#include "sentry/fs/gofer/gofer_fs.h"
#include "sentry/vfs/path_walk.h"
#include "tests/unit/gofer/gofer_harness.h"

extern struct gofer_harness h;
extern struct gofer_client *client;
extern struct ctx ctx;
extern struct path root;
extern struct walk_base base;

struct counting_sink {
    struct dir_sink sink;
    unsigned count, max;
    int64_t last_pos;
};

void count_calls(void);
unsigned calls(void);
struct file *open_file(const char *path, uint32_t flags);
int try_open(const char *path, uint32_t flags);
ssize_t write_at(struct file *f, const void *p, size_t size, int64_t pos);
ssize_t read_at(struct file *f, void *p, size_t size, int64_t pos);
int stat_path(const char *path, struct kstat *st);
void write_file(const char *path, const char *text);
bool file_is(const char *path, const char *text);
const char *host_path(const char *path);
int set_attr(const char *path, struct iattr a);
bool count_entry(struct dir_sink *sink, const char *name, size_t len, uint64_t ino, unsigned type,
                 int64_t next_pos);
unsigned list_all(struct file *f, unsigned piece);
void mount_root(uint32_t tree, enum gofer_share share);
void with_server(void (*fn)(void *), uintptr_t arg);
/* Makes the event loop and the credentials that all the above uses. */
void vfs_harness_init(void);
