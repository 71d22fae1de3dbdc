/* SPDX-License-Identifier: Apache-2.0 */
/* Character devices by number, and the device nodes that a container's /dev starts with. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/sysmacros.h>

#include "platform/base/buf.h"
#include "platform/base/compiler.h"

struct ctx;
struct file;
struct inode;
struct walk_base;

/* Linux's numbers (Documentation/admin-guide/devices.txt). */
enum {
    DEV_MEM_MAJOR = 1,
    DEV_NULL = 3,
    DEV_ZERO = 5,
    DEV_FULL = 7,
    DEV_RANDOM = 8,
    DEV_URANDOM = 9,
    DEV_TTYAUX_MAJOR = 5,
    DEV_TTY = 0,
    DEV_CONSOLE = 1,
    DEV_PTMX = 2,
    DEV_PTS_MAJOR = 136, /* and up to 143 */
};

typedef int (*chrdev_open_fn)(struct ctx *ctx, struct inode *inode, struct file *file);

/* Announces who opens devices (major, first…first+count−1). name is shown in /proc/devices; a static string. At most 32
 * calls, at boot. */
void chrdev_register(unsigned major, unsigned first, unsigned count, const char *name, chrdev_open_fn fn);
/* The open of a character device node on any file system: sets file->ops and file->priv by inode->rdev.
 * Return: 0, −EPERM (the container's rules), −ENXIO (no such device), the device's errors. */
MUST_CHECK int chrdev_open(struct ctx *ctx, struct inode *inode, struct file *file);
/* The same for block devices, of which there are none. Return: −EPERM (the container's rules), −ENXIO. */
MUST_CHECK int blkdev_open(struct ctx *ctx, struct inode *inode, struct file *file);
/* The character part of /proc/devices. */
void chrdev_print(struct buf *out);

/* Registers the memory devices (null, zero, full, random, urandom). */
void devfs_register(void);

/* Puts into /dev below base what runc puts there: the standard nodes, the links fd, stdin, stdout, stderr and ptmx. Entries
 * that are there already stay. A node that can't be made (no rights, wrong type in the image) is bound over from an
 * internal file system. skip (may be NULL) says of a standard node's path that the config names a device for it. Must run before
 * the root is made read-only. Return: 0, or −errno with the failing path in ret_path when it is not NULL (a static string). */
MUST_CHECK int devfs_populate(struct ctx *ctx, const struct walk_base *base, bool (*skip)(const void *arg, const char *path),
                              const void *arg, const char **ret_path);
/* Binds the node of rdev over the file path, which is made when it is missing (/dev/console, a device of the config). */
MUST_CHECK int devfs_bind_node(struct ctx *ctx, const struct walk_base *base, const char *path,
                               uint32_t mode, uint64_t rdev);
