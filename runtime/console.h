/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals on the host: the pty behind a container's console, and the person's own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

struct console {
    int master, slave; /* −1: none */
};

/* Makes a pty pair in raw mode: the container's line discipline is the sentry's. rows and cols of 0
 * leave the size unset. Return: 0, −errno with a message. */
MUST_CHECK int console_new(uint16_t rows, uint16_t cols, struct console *ret_console, struct errmsg *e);
void console_close(struct console *c);
/* Sends the master to whoever listens at the path, as runc does. */
MUST_CHECK int console_send(const struct console *c, const char *socket_path, struct errmsg *e);

/* The person's terminal: a standard descriptor that is one, or /dev/tty.
 * Return: descriptor (the caller's to close), −errno with a message. */
MUST_CHECK int console_host(struct errmsg *e);
/* Window size of a terminal. Return: 0, −errno. */
MUST_CHECK int console_get_size(int fd, uint16_t *ret_rows, uint16_t *ret_cols);
MUST_CHECK int console_set_size(int fd, uint16_t rows, uint16_t cols);
/* Raw mode on the person's terminal; the old settings for console_restore. */
MUST_CHECK int console_make_raw(int fd, struct termios *ret_old, struct errmsg *e);
void console_restore(int fd, const struct termios *old);
