/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo-terminal pairs: the master's files, and the line below a slave. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "platform/base/compiler.h"
#include "sentry/core/ctx.h"

struct file;
struct superblock;
struct tty;

/* A pair, locked, with its master side opened through file. gone(tty) is called once when the master has closed: the slave's name
 * has to go. Return: the terminal (slave) in ret_tty, a reference of the caller's; −ENOMEM. */
MUST_CHECK int pty_open_master(struct file *file, unsigned index, struct superblock *devpts,
                               void (*gone)(struct superblock *devpts, struct tty *tty),
                               struct tty **ret_tty);
bool pty_is_master(const struct file *f);
/* Open of the slave side by its name or by TIOCGPTPEER. Return: 0, −EIO (locked, or the master is closed), −EBUSY, −ENOMEM. */
MUST_CHECK int pty_open_slave(struct ctx *ctx, struct tty *tty, struct file *file);
/* TCFLSH on the master: what the slave wrote and what the master wrote, respectively. */
void pty_master_flush(struct tty *tty, bool input, bool output);
size_t pty_master_inq(const struct tty *tty);
