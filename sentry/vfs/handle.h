/* SPDX-License-Identifier: Apache-2.0 */
/* File handles: names of inodes that outlive their paths (name_to_handle_at, fanotify's file identifiers).
 *
 * The file systems here can't find a file by its number alone, so the dentry of each file that a handle was given out for is
 * kept, the last HANDLE_KEPT_MAX of the sandbox; older handles are stale, as are those of files that are gone. A keyed hash
 * in the handle makes made-up ones stale as well. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct buf;
struct dentry;
struct inode;
struct superblock;

enum {
    HANDLE_SIZE_MAX = 128, /* what the calls accept */
    HANDLE_SIZE = 12,      /* of every handle here */
    HANDLE_KEPT_MAX = 8192,
};

struct handle {
    uint32_t size; /* bytes of data */
    int32_t type;
    uint8_t data[HANDLE_SIZE];
};

/* The handle of d's inode. fid: it need not be good for opening, so that any file system will do and nothing is kept.
 * Return: 0, −EOPNOTSUPP (the file system has no handles), −ENOMEM. Does not park. */
MUST_CHECK int handle_encode(struct dentry *d, bool fid, struct handle *ret_handle);
/* The same as with fid, of an inode that is not known by a name. Does not park, cannot fail. */
void handle_encode_fid(const struct inode *inode, struct handle *ret_handle);
/* The handle as /proc/PID/fdinfo shows it. */
void handle_print(const struct inode *inode, struct buf *out);
/* The file of sb that a handle names. data: size bytes, as a guest gave them.
 * Return: 0 with a reference, or −ESTALE. Does not park. */
MUST_CHECK int handle_decode(struct superblock *sb, const void *data, uint32_t size, int32_t type,
                             struct dentry **ret_dentry);
/* Inside the VFS: d loses its name, or sb its last mount: what is kept for handles goes. */
void handle_forget(struct dentry *d);
void handle_forget_sb(struct superblock *sb);
