/* SPDX-License-Identifier: Apache-2.0 */
/* Table-driven reading of JSON objects. */
#include "oci/fields.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fields_warning {
    struct fields_warning *next;
    const char *text;
};

static const char *const fields_no_strings[] = {NULL};

int fields_oom(struct fields_ctx *ctx)
{
    return errmsg_set(ctx->e, -ENOMEM, "out of memory");
}

int fields_warn(struct fields_ctx *ctx, const struct json_value *v, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    struct errmsg m;
    if (json_error(v, &m, "%s", text) == -ENOMEM)
        return fields_oom(ctx);
    struct fields_warning *w = arena_alloc(ctx->arena, sizeof(*w));
    if (!w || !(w->text = arena_strndup(ctx->arena, m.text, strlen(m.text))))
        return fields_oom(ctx);
    if (ctx->last_warning)
        ctx->last_warning->next = w;
    else
        ctx->first_warning = w;
    ctx->last_warning = w;
    ctx->warnings++;
    return 0;
}

int fields_warnings(struct fields_ctx *ctx, struct oci_strings *ret_warnings)
{
    const char **list = arena_calloc(ctx->arena, (size_t)ctx->warnings + 1, sizeof(*list));
    if (!list)
        return fields_oom(ctx);
    unsigned len = 0;
    for (const struct fields_warning *w = ctx->first_warning; w; w = w->next)
        list[len++] = w->text;
    *ret_warnings = (struct oci_strings){list, len};
    return 0;
}

int fields_word(struct fields_ctx *ctx, const struct json_value *v, const struct field_word *words,
                int64_t *ret_value)
{
    const char *s;
    int r = json_as_string(v, &s, ctx->e);
    if (r)
        return r;
    char list[500] = "";
    size_t used = 0;
    for (const struct field_word *w = words; w->word; w++) {
        if (strcmp(w->word, s) == 0) {
            *ret_value = w->value;
            return 0;
        }
        if (used < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
                                     w->word);
    }
    return json_error(v, ctx->e, "expected one of %s, got \"%.64s\"", list, s);
}

static int fields_check_string(struct fields_ctx *ctx, const struct json_value *v, unsigned flags,
                               const char **ret_string)
{
    const char *s;
    int r = json_as_string(v, &s, ctx->e);
    if (r)
        return r;
    if ((flags & FIELD_NONEMPTY) && !s[0])
        return json_error(v, ctx->e, "must not be empty");
    if ((flags & FIELD_ABSOLUTE) && s[0] != '/')
        return json_error(v, ctx->e, "expected an absolute path, got \"%.200s\"", s);
    *ret_string = s;
    return 0;
}

static int fields_strings(struct fields_ctx *ctx, const struct json_value *v, unsigned flags,
                          struct oci_strings *dst)
{
    int r = json_expect(v, JSON_ARRAY, ctx->e);
    if (r)
        return r;
    if ((flags & FIELD_NONEMPTY) && json_len(v) == 0)
        return json_error(v, ctx->e, "must not be empty");
    const char **list = arena_calloc(ctx->arena, (size_t)json_len(v) + 1, sizeof(*list));
    if (!list)
        return fields_oom(ctx);
    unsigned len = 0;
    json_for_each(child, v)
    {
        r = fields_check_string(ctx, child, flags & FIELD_ABSOLUTE, &list[len++]);
        if (r)
            return r;
    }
    *dst = (struct oci_strings){list, len};
    return 0;
}

struct fields_numbered_pair {
    struct oci_pair pair;
    unsigned number;
};

static int fields_compare_pairs(const void *pa, const void *pb)
{
    const struct fields_numbered_pair *a = pa, *b = pb;
    int r = strcmp(a->pair.key, b->pair.key);
    return r ? r : (a->number > b->number) - (a->number < b->number);
}

/* Sorted by key, as Go writes maps; of several equal keys the last counts, as in Go. */
static int fields_pairs(struct fields_ctx *ctx, const struct json_value *v, struct oci_pairs *dst)
{
    int r = json_expect(v, JSON_OBJECT, ctx->e);
    if (r)
        return r;
    struct fields_numbered_pair *all = arena_calloc(ctx->arena, json_len(v), sizeof(*all));
    struct oci_pair *pairs = arena_calloc(ctx->arena, json_len(v), sizeof(*pairs));
    if (!all || !pairs)
        return fields_oom(ctx);
    unsigned len = 0;
    json_for_each(child, v)
    {
        struct fields_numbered_pair *p = &all[len];
        p->number = len++;
        r = json_key_check(child, ctx->e);
        if (!r)
            r = json_as_string(child, &p->pair.value, ctx->e);
        if (r)
            return r;
        p->pair.key = json_key(child);
    }
    qsort(all, len, sizeof(*all), fields_compare_pairs);
    unsigned kept = 0;
    for (unsigned i = 0; i < len; i++) {
        if (i + 1 == len || strcmp(all[i].pair.key, all[i + 1].pair.key) != 0)
            pairs[kept++] = all[i].pair;
    }
    *dst = (struct oci_pairs){pairs, kept};
    return 0;
}

static int fields_array(struct fields_ctx *ctx, const struct json_value *v, const struct field *f,
                        char *dst)
{
    int r = json_expect(v, JSON_ARRAY, ctx->e);
    if (r)
        return r;
    if ((f->flags & FIELD_NONEMPTY) && json_len(v) == 0)
        return json_error(v, ctx->e, "must not be empty");
    char *elements = arena_calloc(ctx->arena, json_len(v), f->element_size);
    if (!elements)
        return fields_oom(ctx);
    size_t at = 0;
    json_for_each(child, v)
    {
        r = f->read(ctx, child, elements + at);
        if (r)
            return r;
        at += f->element_size;
    }
    *(void **)(dst + f->offset) = elements;
    *(unsigned *)(dst + f->len_offset) = json_len(v);
    return 0;
}

static int fields_unsigned(struct fields_ctx *ctx, const struct json_value *v,
                           const struct field *f, void *member)
{
    uint64_t max = f->kind == FIELD_U16   ? UINT16_MAX
                   : f->kind == FIELD_U32 ? UINT32_MAX
                                          : UINT64_MAX;
    uint64_t value;
    int r = json_as_u64(v, f->max ? f->max : max, &value, ctx->e);
    if (r)
        return r;
    switch (f->kind) {
    case FIELD_U16:
        *(uint16_t *)member = (uint16_t)value;
        break;
    case FIELD_U32:
        *(uint32_t *)member = (uint32_t)value;
        break;
    case FIELD_U64:
        *(uint64_t *)member = value;
        break;
    default:
        *(struct oci_u64 *)member = (struct oci_u64){true, value};
        break;
    }
    return 0;
}

static int fields_signed(struct fields_ctx *ctx, const struct json_value *v, const struct field *f,
                         void *member)
{
    bool narrow = f->kind == FIELD_I32;
    int64_t value;
    int r = json_as_i64(v, narrow ? INT32_MIN : INT64_MIN, narrow ? INT32_MAX : INT64_MAX, &value,
                        ctx->e);
    if (r)
        return r;
    if (narrow)
        *(int32_t *)member = (int32_t)value;
    else if (f->kind == FIELD_I64)
        *(int64_t *)member = value;
    else
        *(struct oci_i64 *)member = (struct oci_i64){true, value};
    return 0;
}

static int fields_one(struct fields_ctx *ctx, const struct json_value *v, const struct field *f,
                      char *dst)
{
    void *member = dst + f->offset;
    int64_t word;
    int r;
    switch (f->kind) {
    case FIELD_BOOL:
        return json_as_bool(v, member, ctx->e);
    case FIELD_STRING:
        return fields_check_string(ctx, v, f->flags, member);
    case FIELD_STRINGS:
        return fields_strings(ctx, v, f->flags, member);
    case FIELD_PAIRS:
        return fields_pairs(ctx, v, member);
    case FIELD_WORD:
        r = fields_word(ctx, v, f->words, &word);
        if (!r)
            *(int *)member = (int)word;
        return r;
    case FIELD_U16:
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_OPT_U64:
        return fields_unsigned(ctx, v, f, member);
    case FIELD_I32:
    case FIELD_I64:
    case FIELD_OPT_I64:
        return fields_signed(ctx, v, f, member);
    case FIELD_OPT_BOOL:
        r = json_as_bool(v, &((struct oci_bool *)member)->value, ctx->e);
        ((struct oci_bool *)member)->set = !r;
        return r;
    case FIELD_OBJECT:
        return f->read(ctx, v, member);
    case FIELD_ARRAY:
        return fields_array(ctx, v, f, dst);
    }
    return -EINVAL;
}

int fields_read(struct fields_ctx *ctx, const struct json_value *v, const struct field *fields,
                unsigned len, void *dst)
{
    int r = json_expect(v, JSON_OBJECT, ctx->e);
    for (unsigned i = 0; !r && i < len; i++) {
        const struct field *f = &fields[i];
        const struct json_value *member = json_member_peek(v, f->name);
        if (!member) {
            /* A list that is absent still ends with NULL. */
            if (f->kind == FIELD_STRINGS && !((struct oci_strings *)((char *)dst + f->offset))->v)
                ((struct oci_strings *)((char *)dst + f->offset))->v = fields_no_strings;
            if (f->flags & FIELD_REQUIRED)
                r = json_missing(v, f->name, ctx->e);
            continue;
        }
        r = fields_one(ctx, member, f, dst);
        if (!r && f->has_set)
            *(bool *)((char *)dst + f->set_offset) = true;
    }
    return r;
}
