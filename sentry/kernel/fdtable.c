/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptor tables: bitmaps over an array that doubles. */
#include "sentry/kernel/fdtable.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>

#include "platform/base/alloc.h"
#include "sentry/core/limits.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/dnotify.h"
#include "sentry/vfs/flock.h"

enum { FDTABLE_MIN = 64, FDTABLE_WORD = 64 };

static bool fdtable_bit(const uint64_t *bits, uint32_t i)
{
    return bits[i / FDTABLE_WORD] >> (i % FDTABLE_WORD) & 1;
}

static void fdtable_set_bit(uint64_t *bits, uint32_t i, bool on)
{
    uint64_t mask = 1ULL << (i % FDTABLE_WORD);
    if (on)
        bits[i / FDTABLE_WORD] |= mask;
    else
        bits[i / FDTABLE_WORD] &= ~mask;
}

/* ---- life ---- */

static int fdtable_alloc(uint32_t capacity, struct fdtable **ret_table)
{
    struct fdtable *t = NEW(struct fdtable);
    if (!t)
        return -ENOMEM;
    ref_init(&t->ref);
    t->capacity = capacity;
    t->files = NEW_ARRAY(struct file *, capacity);
    t->open_bits = NEW_ARRAY(uint64_t, capacity / FDTABLE_WORD);
    t->cloexec_bits = NEW_ARRAY(uint64_t, capacity / FDTABLE_WORD);
    if (!t->files || !t->open_bits || !t->cloexec_bits) {
        fdtable_unref(NULL, t);
        return -ENOMEM;
    }
    *ret_table = t;
    return 0;
}

int fdtable_new(struct fdtable **ret_table)
{
    return fdtable_alloc(FDTABLE_MIN, ret_table);
}

int fdtable_dup(const struct fdtable *t, struct fdtable **ret_table)
{
    /* As small as what is open allows: a table that was large once does not stay large in children. */
    uint32_t top = 0;
    for (uint32_t w = t->capacity / FDTABLE_WORD; w-- > 0;) {
        if (t->open_bits[w]) {
            top = (w + 1) * FDTABLE_WORD;
            break;
        }
    }
    uint32_t capacity = FDTABLE_MIN;
    while (capacity < top)
        capacity *= 2;
    struct fdtable *n;
    int ret = fdtable_alloc(capacity, &n);
    if (ret < 0)
        return ret;
    for (uint32_t i = 0; i < top; i++) {
        if (!t->files[i])
            continue; /* free, or reserved by another thread of the original */
        n->files[i] = file_ref(t->files[i]);
        fdtable_set_bit(n->open_bits, i, true);
        fdtable_set_bit(n->cloexec_bits, i, fdtable_bit(t->cloexec_bits, i));
    }
    *ret_table = n;
    return 0;
}

struct fdtable *fdtable_ref(struct fdtable *t)
{
    ref_get(&t->ref);
    return t;
}

/* What a close does once the number is free again. Consumes f. */
static int fdtable_finish_close(struct ctx *ctx, struct fdtable *t, OWNS struct file *f)
{
    int ret = 0;
    if (!(f->flags & O_PATH)) {
        if (f->ops->flush && ctx)
            ret = f->ops->flush(ctx, f);
        if (f->inode->locks)
            flock_release_posix(f->inode, t);
        if (f->inode->dnotify)
            dnotify_close(f, t);
    }
    file_unref(f);
    return ret;
}

void fdtable_unref(struct ctx *ctx, struct fdtable *t)
{
    if (!t || !ref_put(&t->ref))
        return;
    if (t->files && t->open_bits) {
        for (uint32_t w = 0; w < t->capacity / FDTABLE_WORD; w++) {
            for (uint64_t bits = t->open_bits[w]; bits; bits &= bits - 1) {
                uint32_t i = w * FDTABLE_WORD + (uint32_t)__builtin_ctzll(bits);
                struct file *f = TAKE_PTR(t->files[i]);
                if (f)
                    fdtable_finish_close(ctx, t, f);
            }
        }
    }
    mem_free(t->files);
    mem_free(t->open_bits);
    mem_free(t->cloexec_bits);
    mem_free(t);
}

/* Each array is replaced on its own: after a failure the table still has its old capacity and works. */
static int fdtable_grow(struct fdtable *t, uint32_t capacity)
{
    size_t old_words = t->capacity / FDTABLE_WORD, words = capacity / FDTABLE_WORD;
    struct file **files = mem_realloc(t->files, capacity, sizeof(*files));
    if (!files)
        return -ENOMEM;
    t->files = files;
    uint64_t *open_bits = mem_realloc(t->open_bits, words, sizeof(*open_bits));
    if (!open_bits)
        return -ENOMEM;
    t->open_bits = open_bits;
    uint64_t *cloexec_bits = mem_realloc(t->cloexec_bits, words, sizeof(*cloexec_bits));
    if (!cloexec_bits)
        return -ENOMEM;
    t->cloexec_bits = cloexec_bits;
    memset(files + t->capacity, 0, (capacity - t->capacity) * sizeof(*files));
    memset(open_bits + old_words, 0, (words - old_words) * sizeof(*open_bits));
    memset(cloexec_bits + old_words, 0, (words - old_words) * sizeof(*cloexec_bits));
    t->capacity = capacity;
    return 0;
}

static uint64_t fdtable_limit(const struct task *t)
{
    uint64_t limit = t->group->rlimits[RLIMIT_NOFILE].rlim_cur;
    return MIN(limit, (uint64_t)LIMIT_NR_OPEN);
}

static int fdtable_make_room(struct fdtable *ft, uint32_t fd)
{
    if (fd < ft->capacity)
        return 0;
    uint32_t capacity = ft->capacity;
    while (capacity <= fd)
        capacity *= 2;
    return fdtable_grow(ft, capacity);
}

/* ---- numbers ---- */

static uint32_t fdtable_first_free(const struct fdtable *ft, uint32_t from)
{
    uint32_t words = ft->capacity / FDTABLE_WORD;
    for (uint32_t w = from / FDTABLE_WORD; w < words; w++) {
        uint64_t free_bits = ~ft->open_bits[w];
        if (w == from / FDTABLE_WORD)
            free_bits &= ~0ULL << (from % FDTABLE_WORD);
        if (free_bits)
            return w * FDTABLE_WORD + (uint32_t)__builtin_ctzll(free_bits);
    }
    return MAX(from, ft->capacity);
}

int fdtable_reserve(struct task *t, uint32_t min)
{
    struct fdtable *ft = t->files;
    uint32_t fd = fdtable_first_free(ft, MAX(min, ft->next));
    if (fd >= fdtable_limit(t))
        return -EMFILE;
    int ret = fdtable_make_room(ft, fd);
    if (ret < 0)
        return ret;
    fdtable_set_bit(ft->open_bits, fd, true);
    fdtable_set_bit(ft->cloexec_bits, fd, false);
    if (min <= ft->next)
        ft->next = fd + 1;
    return (int)fd;
}

static void fdtable_free_number(struct fdtable *ft, uint32_t fd)
{
    fdtable_set_bit(ft->open_bits, fd, false);
    fdtable_set_bit(ft->cloexec_bits, fd, false);
    ft->next = MIN(ft->next, fd);
}

void fdtable_unreserve(struct task *t, int fd)
{
    BUG_ON(t->files->files[fd]);
    fdtable_free_number(t->files, (uint32_t)fd);
}

void fdtable_install(struct task *t, int fd, OWNS struct file *file, bool cloexec)
{
    struct fdtable *ft = t->files;
    BUG_ON(!fdtable_bit(ft->open_bits, (uint32_t)fd) || ft->files[fd]);
    ft->files[fd] = file;
    fdtable_set_bit(ft->cloexec_bits, (uint32_t)fd, cloexec);
}

int fdtable_add(struct task *t, OWNS struct file *file, uint32_t min, bool cloexec)
{
    int fd = fdtable_reserve(t, min);
    if (fd < 0) {
        file_unref(file);
        return fd;
    }
    fdtable_install(t, fd, file, cloexec);
    return fd;
}

int fdtable_replace(struct task *t, int fd, OWNS struct file *file, bool cloexec)
{
    struct fdtable *ft = t->files;
    int ret = fd < 0 || (uint64_t)fd >= fdtable_limit(t) ? -EBADF : fdtable_make_room(ft, (uint32_t)fd);
    /* Reserved by another thread whose open is still under way. */
    if (ret == 0 && fdtable_bit(ft->open_bits, (uint32_t)fd) && !ft->files[fd])
        ret = -EBUSY;
    if (ret < 0) {
        file_unref(file);
        return ret;
    }
    struct file *old = ft->files[fd];
    ft->files[fd] = file;
    fdtable_set_bit(ft->open_bits, (uint32_t)fd, true);
    fdtable_set_bit(ft->cloexec_bits, (uint32_t)fd, cloexec);
    if (old)
        fdtable_finish_close(&t->ctx, ft, old);
    return fd;
}

/* ---- look-up ---- */

struct file *fdtable_peek(const struct fdtable *t, int fd)
{
    return fd >= 0 && (uint32_t)fd < t->capacity ? t->files[fd] : NULL;
}

struct file *fdtable_get_any(struct task *t, int fd)
{
    struct file *f = fdtable_peek(t->files, fd);
    return f ? file_ref(f) : NULL;
}

struct file *fdtable_get(struct task *t, int fd)
{
    struct file *f = fdtable_peek(t->files, fd);
    return f && !(f->flags & O_PATH) ? file_ref(f) : NULL;
}

bool fdtable_cloexec(const struct fdtable *t, int fd)
{
    return fd >= 0 && (uint32_t)fd < t->capacity && fdtable_bit(t->cloexec_bits, (uint32_t)fd);
}

int fdtable_set_cloexec(struct task *t, int fd, bool on)
{
    if (!fdtable_peek(t->files, fd))
        return -EBADF;
    fdtable_set_bit(t->files->cloexec_bits, (uint32_t)fd, on);
    return 0;
}

int fdtable_next(const struct fdtable *t, int fd)
{
    for (uint32_t i = fd < 0 ? 0 : (uint32_t)fd; i < t->capacity; i++) {
        if (i % FDTABLE_WORD == 0 && !t->open_bits[i / FDTABLE_WORD]) {
            i += FDTABLE_WORD - 1;
            continue;
        }
        if (t->files[i])
            return (int)i;
    }
    return -1;
}

/* ---- closing ---- */

int fdtable_close(struct task *t, int fd)
{
    struct fdtable *ft = t->files;
    struct file *f = fdtable_peek(ft, fd);
    if (!f)
        return -EBADF;
    ft->files[fd] = NULL;
    fdtable_free_number(ft, (uint32_t)fd);
    return fdtable_finish_close(&t->ctx, ft, f);
}

void fdtable_close_range(struct task *t, uint32_t first, uint32_t last)
{
    /* A flush may park, and another thread may then put something in t->files: each step asks for the next one anew. */
    struct fdtable *ft = fdtable_ref(t->files);
    if (first <= INT32_MAX) {
        for (int fd = fdtable_next(ft, (int)first); fd >= 0 && (uint32_t)fd <= last; fd = fdtable_next(ft, fd + 1)) {
            struct file *f = TAKE_PTR(ft->files[fd]);
            fdtable_free_number(ft, (uint32_t)fd);
            fdtable_finish_close(&t->ctx, ft, f);
        }
    }
    fdtable_unref(&t->ctx, ft);
}

void fdtable_cloexec_range(struct task *t, uint32_t first, uint32_t last)
{
    struct fdtable *ft = t->files;
    for (int fd = first <= INT32_MAX ? fdtable_next(ft, (int)first) : -1; fd >= 0 && (uint32_t)fd <= last;
         fd = fdtable_next(ft, fd + 1))
        fdtable_set_bit(ft->cloexec_bits, (uint32_t)fd, true);
}

void fdtable_close_on_exec(struct task *t)
{
    struct fdtable *ft = t->files;
    for (int fd = fdtable_next(ft, 0); fd >= 0; fd = fdtable_next(ft, fd + 1)) {
        if (!fdtable_bit(ft->cloexec_bits, (uint32_t)fd))
            continue;
        struct file *f = TAKE_PTR(ft->files[fd]);
        fdtable_free_number(ft, (uint32_t)fd);
        fdtable_finish_close(&t->ctx, ft, f);
    }
}
