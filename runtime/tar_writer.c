/* SPDX-License-Identifier: Apache-2.0 */
/* ustar heads, with pax heads before those that need them. */
#include "runtime/tar_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "platform/base/host.h"

enum {
    TAR_BLOCK = 512,
    TAR_ID_MAX = 07777777, /* what seven octal digits hold */
};
#define TAR_SIZE_MAX 077777777777ULL /* eleven */

/* Source: POSIX.1-2017, pax, "ustar Interchange Format". */
struct tar_head {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], chksum[8];
    char typeflag, linkname[100], magic[6], version[2], uname[32], gname[32], devmajor[8], devminor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_head) == TAR_BLOCK, "a head is one block");

void tar_init(struct tar_writer *w, int fd)
{
    *w = (struct tar_writer){.fd = fd};
}

void tar_free(struct tar_writer *w)
{
    buf_free(&w->pax);
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts itself. */
void tar_add_record(struct tar_writer *w, const char *key, const void *value, size_t size)
{
    size_t rest = strlen(key) + size + 3, digits = 1;
    while ((size_t)snprintf(NULL, 0, "%zu", rest + digits) != digits)
        digits++;
    size_t len = rest + digits;
    buf_printf(&w->pax, "%zu %s=", len, key);
    buf_append(&w->pax, value, size);
    buf_putc(&w->pax, '\n');
}

static void tar_add_number(struct tar_writer *w, const char *key, uint64_t value)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%" PRIu64, value);
    tar_add_record(w, key, text, (size_t)n);
}

/* Digits to the field's end but one, as most readers like it. */
static void tar_octal(char *field, size_t size, uint64_t value)
{
    for (size_t at = size - 1; at--; value >>= 3)
        field[at] = (char)('0' + (value & 7));
    field[size - 1] = '\0';
}

static char tar_type(const struct tar_entry *e)
{
    if (e->hard)
        return '1';
    switch (e->st->st_mode & S_IFMT) {
    case S_IFLNK: return '2';
    case S_IFCHR: return '3';
    case S_IFBLK: return '4';
    case S_IFDIR: return '5';
    case S_IFIFO: return '6';
    default: return '0';
    }
}

static void tar_checksum(struct tar_head *h)
{
    unsigned sum = 0;
    memset(h->chksum, ' ', sizeof(h->chksum));
    for (size_t i = 0; i < sizeof(*h); i++)
        sum += ((const unsigned char *)h)[i];
    tar_octal(h->chksum, sizeof(h->chksum) - 1, sum);
}

static void tar_head_init(struct tar_head *h, char type, uint64_t size)
{
    memset(h, 0, sizeof(*h));
    h->typeflag = type;
    memcpy(h->magic, "ustar", 6);
    memcpy(h->version, "00", 2);
    tar_octal(h->mode, sizeof(h->mode), 0644);
    tar_octal(h->uid, sizeof(h->uid), 0);
    tar_octal(h->gid, sizeof(h->gid), 0);
    tar_octal(h->size, sizeof(h->size), size);
    tar_octal(h->mtime, sizeof(h->mtime), 0);
    tar_octal(h->devmajor, sizeof(h->devmajor), 0);
    tar_octal(h->devminor, sizeof(h->devminor), 0);
}

/* A text field, and a record with the whole text when it does not fit. */
static void tar_text(struct tar_writer *w, const char *key, char *field, size_t size, const char *text)
{
    size_t len = strlen(text);
    memcpy(field, text, MIN(len, size));
    if (len > size)
        tar_add_record(w, key, text, len);
}

static void tar_time(struct tar_writer *w, struct tar_head *h, const struct timespec *t)
{
    char text[48];
    tar_octal(h->mtime, sizeof(h->mtime), t->tv_sec > 0 ? (uint64_t)t->tv_sec & TAR_SIZE_MAX : 0);
    if (!t->tv_nsec && t->tv_sec >= 0 && (uint64_t)t->tv_sec <= TAR_SIZE_MAX)
        return;
    /* Before 1970 the fraction counts backwards, too. */
    bool negative = t->tv_sec < 0;
    int64_t sec = negative && t->tv_nsec ? -(t->tv_sec + 1) : negative ? -t->tv_sec : t->tv_sec;
    long nsec = negative && t->tv_nsec ? 1000000000 - t->tv_nsec : t->tv_nsec;
    int n = snprintf(text, sizeof(text), "%s%" PRId64 ".%09ld", negative ? "-" : "", sec, nsec);
    tar_add_record(w, "mtime", text, (size_t)n);
}

static int tar_pad(struct tar_writer *w, uint64_t size)
{
    static const char zeros[TAR_BLOCK];
    for (; size; size -= MIN(size, (uint64_t)TAR_BLOCK)) {
        int r = host_write_all(w->fd, zeros, MIN(size, (uint64_t)TAR_BLOCK));
        if (r < 0)
            return r;
    }
    return 0;
}

static uint64_t tar_padding(uint64_t size)
{
    return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
}

/* The pax head that carries the records. */
static int tar_put_records(struct tar_writer *w)
{
    struct tar_head h;
    if (buf_error(&w->pax) < 0)
        return -ENOMEM;
    if (!w->pax.size)
        return 0;
    if (w->pax.size > TAR_SIZE_MAX)
        return -EFBIG;
    tar_head_init(&h, 'x', w->pax.size);
    memcpy(h.name, "pax", 4);
    tar_checksum(&h);
    int r = host_write_all(w->fd, &h, sizeof(h));
    if (r == 0)
        r = host_write_all(w->fd, w->pax.data, w->pax.size);
    if (r == 0)
        r = tar_pad(w, tar_padding(w->pax.size));
    w->pax.size = 0;
    return r;
}

int tar_put(struct tar_writer *w, const struct tar_entry *e)
{
    struct tar_head h;
    const struct stat *st = e->st;
    char type = tar_type(e);
    uint64_t size = type == '0' ? (uint64_t)st->st_size : 0;
    tar_head_init(&h, type, MIN(size, TAR_SIZE_MAX));
    tar_text(w, "path", h.name, sizeof(h.name), e->path);
    if (e->link)
        tar_text(w, "linkpath", h.linkname, sizeof(h.linkname), e->link);
    if (size > TAR_SIZE_MAX)
        tar_add_number(w, "size", size);
    if (st->st_uid > TAR_ID_MAX)
        tar_add_number(w, "uid", st->st_uid);
    if (st->st_gid > TAR_ID_MAX)
        tar_add_number(w, "gid", st->st_gid);
    tar_octal(h.mode, sizeof(h.mode), st->st_mode & 07777);
    tar_octal(h.uid, sizeof(h.uid), MIN(st->st_uid, (uid_t)TAR_ID_MAX));
    tar_octal(h.gid, sizeof(h.gid), MIN(st->st_gid, (gid_t)TAR_ID_MAX));
    tar_octal(h.devmajor, sizeof(h.devmajor), type == '3' || type == '4' ? major(st->st_rdev) : 0);
    tar_octal(h.devminor, sizeof(h.devminor), type == '3' || type == '4' ? minor(st->st_rdev) : 0);
    tar_time(w, &h, &st->st_mtim);
    tar_checksum(&h);
    int r = tar_put_records(w);
    if (r == 0)
        r = host_write_all(w->fd, &h, sizeof(h));
    w->left = size;
    w->padding = tar_padding(size);
    return r;
}

int tar_write(struct tar_writer *w, const void *data, size_t size)
{
    size = MIN(size, w->left);
    int r = host_write_all(w->fd, data, size);
    if (r == 0)
        w->left -= size;
    return r;
}

int tar_finish_entry(struct tar_writer *w)
{
    int r = tar_pad(w, w->left + w->padding);
    w->left = w->padding = 0;
    return r;
}

int tar_finish(struct tar_writer *w)
{
    return tar_pad(w, (uint64_t)2 * TAR_BLOCK);
}
