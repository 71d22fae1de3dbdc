/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals of containers and of exec sessions, backed by a host pty whose master the caller of the runtime holds. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"

struct ctx;
struct file;
struct task;
struct tty;
struct walk_base;

/* Makes a terminal over the host pty slave host_fd (consumed, also on failure; nobody else may use its description),
 * gives it a node in the devpts at /dev/pts below base (owned by uid) and opens it. rows and cols 0: the host's size.
 * The host side is put into raw mode: our line discipline does the editing. Return: 0, −ENOTTY, −ENOMEM, −ENOSPC, the errors of open. */
MUST_CHECK int tty_console_open(struct ctx *ctx, const struct walk_base *base, OWNS int host_fd,
                                uint16_t rows, uint16_t cols, uint32_t uid, struct file **ret_file);
/* Makes the terminal of f the controlling one of t's process, which leads a session without one. Return: 0 or −EPERM. */
MUST_CHECK int tty_console_attach(struct task *t, struct file *f);
/* Binds the terminal of f over /dev/console, as runc does for the container's own. */
MUST_CHECK int tty_console_bind(struct ctx *ctx, const struct walk_base *base, struct file *f);
/* Return: the terminal of f, referenced, to resize it later; NULL when it is none. */
MUST_CHECK struct tty *tty_console_get(struct file *f);
void tty_console_put(struct tty *tty); /* NULL is fine */
void tty_console_resize(struct tty *tty, uint16_t rows, uint16_t cols);
