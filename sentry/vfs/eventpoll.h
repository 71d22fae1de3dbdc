/* SPDX-License-Identifier: Apache-2.0 */
/* epoll: sets of files whose readiness is collected through wait-queue callbacks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"
#include "sentry/core/ctx.h"

struct cred;
struct file;

/* A new, empty eventpoll behind a file. Return: NULL on no memory. */
MUST_CHECK struct file *eventpoll_new(const struct cred *cred);
bool eventpoll_is(const struct file *f);
/* EPOLL_CTL_ADD, MOD or DEL of target under descriptor number fd. ev is ignored by DEL. ctx is the caller's.
 * Return: 0; −EINVAL (epf is no eventpoll, epf watches itself, EPOLLEXCLUSIVE misuse, unknown op), −EPERM (target can't
 * be polled), −EEXIST, −ENOENT, −ENOSPC, −ENOMEM, −ELOOP. Source: epoll_ctl(2). */
MUST_CHECK int eventpoll_ctl(struct ctx *ctx, struct file *epf, int op, int fd, struct file *target,
                             const struct epoll_event *ev);
/* Waits until the deadline (CLOCK_MONOTONIC ns; 0 = do not wait) for events and copies at most max out to events.
 * Parks. Return: their number, −EINTR, −EFAULT, −EINVAL (not an eventpoll). Source: epoll_wait(2). */
MUST_CHECK int eventpoll_wait(struct ctx *ctx, struct file *epf, uaddr_t events, int max,
                              uint64_t deadline_ns);
/* Forgets f in every eventpoll. file_unref calls it before release when f->epoll_items is not empty. */
void eventpoll_file_gone(struct file *f);
