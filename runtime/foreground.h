/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting in the foreground for a container or an exec'd process: signals are passed on, and with a
 * terminal the person's keys and the program's output pass through. */
#pragma once

#include <stdbool.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

struct foreground {
    int watch_fd; /* readable when something about the target happened */
    /* Called when watch_fd is readable. Return: 1 when the target has ended, 0 to go on, −errno. */
    int (*on_watch)(void *arg);
    void (*on_signal)(void *arg, int signo);
    /* The person's window has a new size; NULL without interest (the pty is set already). */
    void (*on_resize)(void *arg, unsigned rows, unsigned cols);
    void *arg;
    int master;       /* master of the target's pty, or −1 */
    int host_console; /* the person's terminal, already raw, or −1 */
};

/* Blocks the signals that are to be passed on; before anything that may take long is started, so that
 * none is lost. */
void foreground_block_signals(void);
/* Waits for the end. Return: 0, −errno with a message. */
MUST_CHECK int foreground_wait(const struct foreground *f, struct errmsg *e);
