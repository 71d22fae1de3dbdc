/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and environment on their way from the old program to the new one. */
#include "sentry/kernel/exec.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/limits.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

/* Pages of the caller that were read last: strings lie close together, and each copy from a guest is a host call. */
enum { WINDOWS = 4 };

struct window {
    uint64_t page; /* address; 1 = empty */
    uint8_t data[PAGE_SIZE];
};

struct reader {
    struct ctx *ctx;
    unsigned next; /* to be replaced */
    struct window windows[WINDOWS];
};

void exec_strings_free(struct exec_strings *s)
{
    buf_free(&s->bytes);
    s->count = 0;
}

static struct reader *reader_new(struct ctx *ctx)
{
    struct reader *r = NEW(struct reader);

    if (r) {
        r->ctx = ctx;
        for (int i = 0; i < WINDOWS; i++)
            r->windows[i].page = 1;
    }
    return r;
}

/* Return: what is at addr up to the end of its page, with its length; NULL when it can't be read. */
static const uint8_t *peek(struct reader *r, uint64_t addr, size_t *ret_len)
{
    uint64_t page = addr & PAGE_MASK;
    struct window *w;

    *ret_len = PAGE_SIZE - (addr - page);
    for (int i = 0; i < WINDOWS; i++) {
        if (r->windows[i].page == page)
            return r->windows[i].data + (addr - page);
    }
    w = &r->windows[r->next];
    r->next = (r->next + 1) % WINDOWS;
    w->page = 1;
    if (copy_in(r->ctx, w->data, UADDR(page), PAGE_SIZE))
        return NULL;
    w->page = page;
    return w->data + (addr - page);
}

static int read_pointer(struct reader *r, uint64_t addr, uint64_t *ret)
{
    uint8_t *to = (uint8_t *)ret;
    size_t done = 0, len;

    while (done < sizeof(*ret)) {
        const uint8_t *p = peek(r, addr + done, &len);

        if (!p)
            return -EFAULT;
        len = MIN(len, sizeof(*ret) - done);
        memcpy(to + done, p, len);
        done += len;
    }
    return 0;
}

static int read_string(struct reader *r, uint64_t addr, struct buf *out)
{
    size_t total = 0, len;

    for (;;) {
        const uint8_t *p = peek(r, addr + total, &len), *end;

        if (!p)
            return -EFAULT;
        end = memchr(p, 0, len);
        if (end)
            len = (size_t)(end - p) + 1;
        total += len;
        if (total > LIMIT_ARG_STRLEN || out->size + len > LIMIT_ARG_MAX)
            return -E2BIG;
        buf_append(out, p, len);
        if (end)
            return 0;
    }
}

int exec_strings_in(struct task *t, uaddr_t vector, struct exec_strings *ret)
{
    CLEANUP_FREE struct reader *r = NULL;
    uint64_t pointer;
    int err;

    memset(ret, 0, sizeof(*ret));
    if (uaddr_is_null(vector))
        return 0;
    r = reader_new(&t->ctx);
    if (!r)
        return -ENOMEM;
    for (;; ret->count++) {
        err = read_pointer(r, vector.v + ret->count * sizeof(pointer), &pointer);
        if (err || !pointer)
            break;
        /* A pointer counts like a byte string of its size. */
        if ((uint64_t)ret->count * sizeof(pointer) > LIMIT_ARG_MAX)
            err = -E2BIG;
        else
            err = read_string(r, pointer, &ret->bytes);
        if (err)
            break;
    }
    if (!err)
        err = buf_error(&ret->bytes);
    if (err)
        exec_strings_free(ret);
    return err;
}

int exec_strings_from(char *const *vector, struct exec_strings *ret)
{
    int err;

    memset(ret, 0, sizeof(*ret));
    for (; vector && vector[ret->count]; ret->count++) {
        size_t size = strlen(vector[ret->count]) + 1;

        if (size > LIMIT_ARG_STRLEN || ret->bytes.size + size > LIMIT_ARG_MAX) {
            exec_strings_free(ret);
            return -E2BIG;
        }
        buf_append(&ret->bytes, vector[ret->count], size);
    }
    err = buf_error(&ret->bytes);
    if (err)
        exec_strings_free(ret);
    return err;
}
