/* SPDX-License-Identifier: Apache-2.0 */
/* ioctl calls on a host terminal that was given as stdio without being the container's own terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct ctx;

/* Return: whether fd is a terminal. */
bool hostfd_tty_is(int fd);
/* Carries out the calls that only touch the line's settings and buffers. The terminal is not the controlling one of
 * any guest session, so job control answers as Linux does for a foreign terminal.
 * Return: 0 or −errno; −ENOTTY for calls that have no meaning here. Parks while output drains. */
MUST_CHECK int64_t hostfd_tty_ioctl(struct ctx *ctx, int fd, uint32_t cmd, uint64_t arg);
