/* SPDX-License-Identifier: Apache-2.0 */
/* Linux AIO: contexts of an address space, their requests and the events of those that are over.
 *
 * A context's number is the address of a page of guest memory, as on Linux, but nothing is read there: its magic stays
 * zero, which tells libraries not to look for events in it by themselves. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "sentry/abi/uaddr.h"
#include "sentry/core/waitq.h"

struct ctx;
struct file;
struct mm;

enum { AIO_MAX_NR = 65536 /* fs.aio-max-nr: requests of all contexts together */ };

struct aio_event { /* struct io_event */
    uint64_t data, obj;
    int64_t res, res2;
};

/* Where the events of one io_setup arrive. */
struct aio_ctx;
/* One request: made before it is acted on, so that its end can't fail. */
struct aio_req;

/* Checks nr, the events asked for. Return: 0, −EINVAL (absurd), −EAGAIN (above what is left of AIO_MAX_NR). */
MUST_CHECK int aio_check_nr(uint32_t nr);
/* Makes a context of that many requests, whose page in the guest is at id. One that had that number before lost its page and
 * ends. Return: 0, −EAGAIN, −EINVAL, −ENOMEM. */
MUST_CHECK int aio_ctx_new(struct mm *mm, uint64_t id, uint32_t nr);
/* Return: referenced or NULL. */
MUST_CHECK struct aio_ctx *aio_ctx_find(struct mm *mm, uint64_t id);
void aio_ctx_unref(struct aio_ctx *a); /* NULL is fine */
/* Ends a context: nobody finds it any more, polls are cancelled, waiters return. Does not park. Return: false when
 * somebody else has done it. */
bool aio_ctx_end(struct aio_ctx *a);
/* Waits until no request of an ended context is being acted on. Parks. Return: 0 or −ERESTARTSYS (fatal signal). */
MUST_CHECK int aio_ctx_drain(struct ctx *ctx, struct aio_ctx *a);
/* Requests that fit at once: what io_submit takes at most. */
uint32_t aio_ctx_capacity(const struct aio_ctx *a);

/* A request for iocb, with the data that its event shall bear. resfd: an eventfd to signal, or NULL. Consumes both files.
 * Return: 0, −EAGAIN (no room for its event, or too many in the sandbox), −EINVAL (the context has ended), −ENOMEM. */
MUST_CHECK int aio_req_new(struct aio_ctx *a, OWNS struct file *f, OWNS struct file *resfd, uint64_t iocb, uint64_t data,
                           struct aio_req **ret_req);
struct file *aio_req_file(const struct aio_req *r);
/* Gives up a request that was not begun: there will be no event. */
void aio_req_drop(struct aio_req *r);
/* The request is over: its event can be fetched. Does not park. */
void aio_req_complete(struct aio_req *r, int64_t res);
/* Waits for EPOLL* events of the file in the background; the event's result is what came. Consumes r on success. Return: 0, or
 * −EINVAL for a file that can't be waited for in this way. */
MUST_CHECK int aio_req_poll(struct aio_req *r, uint32_t events);
/* Cancels the poll of that iocb. Return: −EINPROGRESS (its event follows), −EINVAL (there is none). */
MUST_CHECK int aio_cancel(struct aio_ctx *a, uint64_t iocb);

/* Stores at most nr events at addr, waiting until the deadline (0: not at all) for at least min_nr. Parks. Return: events, −EFAULT,
 * −EINVAL (the context has ended), −ERESTARTSYS (a signal, and no event), −ENOMEM. */
MUST_CHECK int64_t aio_get_events(struct ctx *ctx, struct aio_ctx *a, int64_t min_nr, int64_t nr, uaddr_t addr,
                                  uint64_t deadline_ns);
/* Requests that all contexts of the sandbox were made for: fs.aio-nr. */
uint64_t aio_nr(void);
