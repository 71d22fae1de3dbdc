/* SPDX-License-Identifier: Apache-2.0 */
/* The devpts file system: each mount is an instance of its own with its own numbers. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/vfs/mount.h"

struct ctx;
struct file;
struct superblock;
struct tty;

/* Largest number of terminals of one instance, and of all together (/proc/sys/kernel/pty). */
enum { DEVPTS_INSTANCE_MAX = 1024, DEVPTS_TOTAL_MAX = 4096 };

extern const struct fs_type devpts_fs_type;

/* Registers /dev/ptmx. */
void devpts_register(void);
/* Return: terminals in use, for /proc/sys/kernel/pty/nr. */
unsigned devpts_in_use(void);
/* TIOCGPTPEER: opens the slave of a master's file in the instance that the master came from. Return: descriptor, or −errno. */
MUST_CHECK int64_t devpts_open_peer(struct ctx *ctx, struct file *master, struct tty *tty, uint32_t flags);

/* Reserves a number in the instance sb. Return: number, −ENOSPC, −ENOMEM. Undone by devpts_remove. */
MUST_CHECK int devpts_reserve(struct superblock *sb);
/* Makes the node of a reserved number; tty gets a reference. uid or gid UINT32_MAX: as for a ptmx open by ctx.
 * Return: 0, −ENOMEM (the number stays reserved). */
MUST_CHECK int devpts_publish(struct ctx *ctx, struct superblock *sb, struct tty *tty, uint32_t uid);
/* The node goes and the number is free again. */
void devpts_remove(struct superblock *sb, unsigned index);
/* Return: sb is a devpts instance. */
bool devpts_is(const struct superblock *sb);
