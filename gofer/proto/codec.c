/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded payload access. */
#include "gofer/proto/codec.h"

#include <string.h>

#include "gofer/proto/wire.h"

void codec_reader_init(struct codec_reader *r, const void *data, size_t size)
{
    *r = (struct codec_reader){.data = data, .size = size};
}

const void *codec_get_bytes(struct codec_reader *r, size_t size)
{
    if (r->bad || size > r->size - r->at) {
        r->bad = true;
        return NULL;
    }
    const void *p = r->data + r->at;
    r->at += size;
    return p;
}

void codec_get(struct codec_reader *r, void *p, size_t size)
{
    const void *from = codec_get_bytes(r, size);
    if (!size)
        return;
    if (from)
        memcpy(p, from, size);
    else
        memset(p, 0, size);
}

struct codec_str codec_get_str(struct codec_reader *r, size_t max)
{
    uint16_t size;
    codec_get(r, &size, sizeof(size));
    if (size > max)
        r->bad = true;
    const char *data = codec_get_bytes(r, size);
    if (data && memchr(data, '\0', size)) {
        r->bad = true;
        data = NULL;
    }
    return (struct codec_str){.data = data, .size = data ? size : 0};
}

bool codec_reader_done(const struct codec_reader *r)
{
    return !r->bad && r->at == r->size;
}

void codec_writer_init(struct codec_writer *w, void *data, size_t capacity)
{
    *w = (struct codec_writer){.data = data, .capacity = capacity};
}

void *codec_reserve(struct codec_writer *w, size_t size)
{
    if (w->bad || size > w->capacity - w->size) {
        w->bad = true;
        return NULL;
    }
    void *p = w->data + w->size;
    w->size += size;
    return p;
}

void codec_put(struct codec_writer *w, const void *p, size_t size)
{
    void *to = codec_reserve(w, size);
    if (to && size)
        memcpy(to, p, size);
}

void codec_put_str(struct codec_writer *w, const char *data, size_t size)
{
    uint16_t wire_size = (uint16_t)size;
    if (size > UINT16_MAX) {
        w->bad = true;
        return;
    }
    codec_put(w, &wire_size, sizeof(wire_size));
    codec_put(w, data, size);
}

bool codec_name_ok(const char *name, size_t size)
{
    if (size == 0 || size > WIRE_NAME_MAX)
        return false;
    if (name[0] == '.' && (size == 1 || (size == 2 && name[1] == '.')))
        return false;
    return !memchr(name, '/', size) && !memchr(name, '\0', size);
}
