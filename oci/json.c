/* SPDX-License-Identifier: Apache-2.0 */
/* JSON tree over yajl's callbacks. */
#include "oci/json.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "platform/base/alloc.h"
#include "platform/base/list.h"

struct json_value {
    enum json_type type;
    unsigned len;   /* children */
    unsigned index; /* among the parent's children */
    bool boolean;
    size_t text_size; /* strings: may hold NUL bytes */
    size_t key_size;
    const char *text; /* string contents; number as written; name of the root */
    const char *key;
    const struct json_value *parent;
    struct json_value *first, *last, *next;
};

/* --- parsing --- */

/* yajl doesn't check its allocations: a failed one leaves the parser by longjmp, and what it had is
 * freed from this list. */
struct json_chunk {
    struct list link;
    _Alignas(16) char data[];
};

struct json_parser {
    struct arena *arena;
    struct list chunks;
    jmp_buf out_of_memory;
    yajl_handle yajl;
    struct json_value *root, *open; /* open: array or object being filled */
    const char *key;                /* of the next member */
    size_t key_size;
    unsigned depth, values;
    bool at_end; /* all text was taken; yajl counts anew when told so */
    int err;     /* why a callback cancelled */
};

static void *json_yajl_malloc(void *ctx, size_t size)
{
    struct json_parser *p = ctx;
    struct json_chunk *chunk = mem_zalloc(sizeof(*chunk) + size);
    if (!chunk)
        longjmp(p->out_of_memory, 1);
    list_add_tail(&p->chunks, &chunk->link);
    return chunk->data;
}

static void json_yajl_free(void *ctx, void *ptr)
{
    if (!ptr)
        return;
    struct json_chunk *chunk = container_of(ptr, struct json_chunk, data);
    list_del(&chunk->link);
    mem_free(chunk);
}

static void *json_yajl_realloc(void *ctx, void *ptr, size_t size)
{
    struct json_parser *p = ctx;
    if (!ptr)
        return json_yajl_malloc(ctx, size);
    struct json_chunk *chunk = container_of(ptr, struct json_chunk, data);
    list_del(&chunk->link);
    struct json_chunk *grown = mem_realloc(chunk, sizeof(*chunk) + size, 1);
    if (!grown) {
        list_add_tail(&p->chunks, &chunk->link);
        longjmp(p->out_of_memory, 1);
    }
    list_add_tail(&p->chunks, &grown->link);
    return grown->data;
}

static struct json_value *json_add(struct json_parser *p, enum json_type type)
{
    if (p->values++ >= JSON_VALUES_MAX || p->depth > JSON_DEPTH_MAX) {
        p->err = -E2BIG;
        return NULL;
    }
    struct json_value *v = arena_alloc(p->arena, sizeof(*v));
    if (!v) {
        p->err = -ENOMEM;
        return NULL;
    }
    v->type = type;
    v->key = p->key;
    v->key_size = p->key_size;
    p->key = NULL;
    p->key_size = 0;
    v->parent = p->open;
    if (!p->open) {
        p->root = v;
        return v;
    }
    v->index = p->open->len++;
    if (p->open->last)
        p->open->last->next = v;
    else
        p->open->first = v;
    p->open->last = v;
    return v;
}

static int json_on_null(void *ctx)
{
    return json_add(ctx, JSON_NULL) != NULL;
}

static int json_on_bool(void *ctx, int value)
{
    struct json_value *v = json_add(ctx, JSON_BOOL);
    if (!v)
        return 0;
    v->boolean = value != 0;
    return 1;
}

static int json_on_text(struct json_parser *p, enum json_type type, const char *text, size_t size)
{
    struct json_value *v = json_add(p, type);
    if (!v)
        return 0;
    v->text = arena_strndup(p->arena, text, size);
    v->text_size = size;
    if (!v->text)
        p->err = -ENOMEM;
    return v->text != NULL;
}

static int json_on_number(void *ctx, const char *text, size_t size)
{
    return json_on_text(ctx, JSON_NUMBER, text, size);
}

static int json_on_string(void *ctx, const unsigned char *text, size_t size)
{
    return json_on_text(ctx, JSON_STRING, (const char *)text, size);
}

static int json_on_key(void *ctx, const unsigned char *text, size_t size)
{
    struct json_parser *p = ctx;
    p->key = arena_strndup(p->arena, (const char *)text, size);
    p->key_size = size;
    if (!p->key)
        p->err = -ENOMEM;
    return p->key != NULL;
}

static int json_on_open(struct json_parser *p, enum json_type type)
{
    p->depth++;
    struct json_value *v = json_add(p, type);
    if (!v)
        return 0;
    p->open = v;
    return 1;
}

static int json_on_open_object(void *ctx)
{
    return json_on_open(ctx, JSON_OBJECT);
}

static int json_on_open_array(void *ctx)
{
    return json_on_open(ctx, JSON_ARRAY);
}

static int json_on_close(void *ctx)
{
    struct json_parser *p = ctx;
    p->depth--;
    p->open = (struct json_value *)p->open->parent;
    return 1;
}

static const yajl_callbacks json_callbacks = {
    .yajl_null = json_on_null,
    .yajl_boolean = json_on_bool,
    .yajl_number = json_on_number,
    .yajl_string = json_on_string,
    .yajl_start_map = json_on_open_object,
    .yajl_map_key = json_on_key,
    .yajl_end_map = json_on_close,
    .yajl_start_array = json_on_open_array,
    .yajl_end_array = json_on_close,
};

/* Turns yajl's state into a message with line and column. */
static int json_parse_failed(struct json_parser *p, const char *text, size_t size, struct errmsg *e)
{
    if (p->err == -ENOMEM)
        return errmsg_set(e, -ENOMEM, "out of memory");
    size_t offset = p->at_end ? size : MIN(yajl_get_bytes_consumed(p->yajl), size);
    size_t line = 1, column = 1;
    for (size_t i = 0; i < offset; i++) {
        column = text[i] == '\n' ? 1 : column + 1;
        line += text[i] == '\n';
    }
    if (p->err == -E2BIG && p->depth > JSON_DEPTH_MAX)
        return errmsg_set(e, -E2BIG, "line %zu, column %zu: nested deeper than %d levels", line,
                          column, JSON_DEPTH_MAX);
    if (p->err == -E2BIG)
        return errmsg_set(e, -E2BIG, "line %zu, column %zu: more than %u values", line, column,
                          JSON_VALUES_MAX);
    char what[160];
    unsigned char *said = yajl_get_error(p->yajl, 0, (const unsigned char *)text, size);
    const char *start = strstr((const char *)said, "error: ");
    snprintf(what, sizeof(what), "%s", start ? start + strlen("error: ") : (const char *)said);
    yajl_free_error(p->yajl, said);
    what[strcspn(what, "\n")] = '\0';
    return errmsg_set(e, -EINVAL, "line %zu, column %zu: %s", line, column, what);
}

/* Separate from json_parse because locals changed between setjmp and longjmp are lost. */
static int json_run(struct json_parser *p, const char *text, size_t size, struct errmsg *e)
{
    if (setjmp(p->out_of_memory))
        return errmsg_set(e, -ENOMEM, "out of memory");
    yajl_alloc_funcs funcs = {json_yajl_malloc, json_yajl_realloc, json_yajl_free, p};
    p->yajl = yajl_alloc(&json_callbacks, &funcs, p);
    yajl_status status = yajl_parse(p->yajl, (const unsigned char *)text, size);
    if (status == yajl_status_ok) {
        p->at_end = true;
        status = yajl_complete_parse(p->yajl);
    }
    int err = status == yajl_status_ok ? 0 : json_parse_failed(p, text, size, e);
    yajl_free(p->yajl);
    return err;
}

int json_parse(struct arena *a, const char *text, size_t size, const char *root,
               const struct json_value **ret_value, struct errmsg *e)
{
    if (size > JSON_SIZE_MAX)
        return errmsg_set(e, -E2BIG, "larger than %zu bytes", JSON_SIZE_MAX);
    struct json_parser *p = NEW(struct json_parser);
    if (!p)
        return errmsg_set(e, -ENOMEM, "out of memory");
    p->arena = a;
    list_init(&p->chunks);
    int err = json_run(p, text, size, e);
    while (!list_empty(&p->chunks))
        json_yajl_free(p, list_first(&p->chunks, struct json_chunk, link)->data);
    if (!err) {
        p->root->key = root;
        *ret_value = p->root;
    }
    mem_free(p);
    return err;
}

/* --- reading --- */

enum json_type json_type(const struct json_value *v)
{
    return v->type;
}

unsigned json_len(const struct json_value *v)
{
    return v->len;
}

const struct json_value *json_first(const struct json_value *v)
{
    return v->first;
}

const struct json_value *json_next(const struct json_value *v)
{
    return v->next;
}

const char *json_key(const struct json_value *v)
{
    return v->key ? v->key : "";
}

const struct json_value *json_member_peek(const struct json_value *object, const char *name)
{
    const struct json_value *found = NULL;
    size_t size = strlen(name);
    json_for_each(v, object)
    {
        if (v->key_size == size && memcmp(v->key, name, size) == 0)
            found = v;
    }
    return found && found->type != JSON_NULL ? found : NULL;
}

static const char *json_type_name(enum json_type type)
{
    static const char *const names[] = {"null", "boolean", "number", "string", "array", "object"};
    return names[type];
}

/* One step of a path. Keys that are no plain word are quoted, cut and cleaned of control bytes. */
static void json_path_step(struct buf *b, const struct json_value *v)
{
    if (v->parent->type == JSON_ARRAY) {
        buf_printf(b, "[%u]", v->index);
        return;
    }
    bool plain = v->key_size > 0 && v->key_size <= 64;
    for (size_t i = 0; plain && i < v->key_size; i++) {
        char c = v->key[i];
        plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '_' || c == '-';
    }
    if (plain) {
        buf_printf(b, "%s%s", b->size ? "." : "", v->key);
        return;
    }
    buf_puts(b, "[\"");
    for (size_t i = 0; i < MIN(v->key_size, (size_t)64); i++) {
        unsigned char c = (unsigned char)v->key[i];
        buf_putc(b, c < 0x20 || c == 0x7f ? '?' : (char)c);
    }
    buf_puts(b, v->key_size > 64 ? "…\"]" : "\"]");
}

static void json_path(struct buf *b, const struct json_value *v)
{
    if (!v->parent) {
        buf_puts(b, json_key(v));
        return;
    }
    json_path(b, v->parent); /* at most JSON_DEPTH_MAX deep */
    json_path_step(b, v);
}

/* Messages are one line each and may reach a terminal. */
static void json_clean(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
    }
}

int json_error(const struct json_value *v, struct errmsg *e, const char *fmt, ...)
{
    char text[640];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    json_clean(text); /* it may quote the document */
    CLEANUP_BUF struct buf path = {0};
    json_path(&path, v);
    if (buf_error(&path))
        return errmsg_set(e, -ENOMEM, "out of memory");
    return errmsg_set(e, -EINVAL, "%s: %s", path.size ? path.data : "top level", text);
}

int json_missing(const struct json_value *object, const char *name, struct errmsg *e)
{
    const struct json_value absent = {.parent = object, .key = name, .key_size = strlen(name)};
    return json_error(&absent, e, "required field is missing");
}

int json_expect(const struct json_value *v, enum json_type type, struct errmsg *e)
{
    if (v->type == type)
        return 0;
    return json_error(v, e, "expected %s, got %s", json_type_name(type), json_type_name(v->type));
}

int json_as_bool(const struct json_value *v, bool *ret_value, struct errmsg *e)
{
    int r = json_expect(v, JSON_BOOL, e);
    if (!r)
        *ret_value = v->boolean;
    return r;
}

int json_as_string(const struct json_value *v, const char **ret_value, struct errmsg *e)
{
    int r = json_expect(v, JSON_STRING, e);
    if (r)
        return r;
    if (memchr(v->text, '\0', v->text_size))
        return json_error(v, e, "string holds a NUL byte");
    *ret_value = v->text;
    return 0;
}

int json_key_check(const struct json_value *v, struct errmsg *e)
{
    if (v->key_size == 0)
        return json_error(v, e, "name is empty");
    if (memchr(v->key, '\0', v->key_size))
        return json_error(v, e, "name holds a NUL byte");
    return 0;
}

/* Whether the number is written as an integer: an optional minus and digits. */
static bool json_is_integer(const struct json_value *v)
{
    const char *digits = v->text + (v->text[0] == '-');
    return digits[0] && digits[strspn(digits, "0123456789")] == '\0';
}

int json_as_u64(const struct json_value *v, uint64_t max, uint64_t *ret_value, struct errmsg *e)
{
    if (v->type != JSON_NUMBER)
        return json_error(v, e, "expected unsigned integer, got %s", json_type_name(v->type));
    if (!json_is_integer(v) || v->text[0] == '-')
        return json_error(v, e, "expected unsigned integer, got %.40s", v->text);
    errno = 0;
    uint64_t value = strtoull(v->text, NULL, 10);
    if (errno || value > max)
        return json_error(v, e, "%.40s is out of range (0 to %llu)", v->text,
                          (unsigned long long)max);
    *ret_value = value;
    return 0;
}

int json_as_i64(const struct json_value *v, int64_t min, int64_t max, int64_t *ret_value,
                struct errmsg *e)
{
    if (v->type != JSON_NUMBER)
        return json_error(v, e, "expected integer, got %s", json_type_name(v->type));
    if (!json_is_integer(v))
        return json_error(v, e, "expected integer, got %.40s", v->text);
    errno = 0;
    int64_t value = strtoll(v->text, NULL, 10);
    if (errno || value < min || value > max)
        return json_error(v, e, "%.40s is out of range (%lld to %lld)", v->text, (long long)min,
                          (long long)max);
    *ret_value = value;
    return 0;
}

/* --- writing --- */

void json_writer_init(struct json_writer *w, struct buf *out, const char *indent)
{
    *w = (struct json_writer){.out = out, .indent = indent, .empty = true};
}

static void json_line(struct json_writer *w)
{
    if (!w->indent)
        return;
    buf_putc(w->out, '\n');
    for (unsigned i = 0; i < w->depth; i++)
        buf_puts(w->out, w->indent);
}

/* Length of the UTF-8 character at s (NUL-terminated), its code point in ret_code; 0 if malformed.
 */
static unsigned json_utf8(const unsigned char *s, uint32_t *ret_code)
{
    unsigned len = s[0] < 0x80   ? 1
                   : s[0] < 0xc2 ? 0
                   : s[0] < 0xe0 ? 2
                   : s[0] < 0xf0 ? 3
                   : s[0] < 0xf5 ? 4
                                 : 0;
    if (len <= 1) {
        *ret_code = s[0];
        return len;
    }
    uint32_t code = s[0] & (0x7fU >> len);
    for (unsigned i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    *ret_code = code;
    return len;
}

/* Escapes what Go escapes: also <, >, & and the line separators, which HTML and JavaScript mind. */
static void json_quote(struct buf *b, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    buf_putc(b, '"');
    while (*s) {
        uint32_t code;
        unsigned len = json_utf8(s, &code);
        if (len == 0)
            buf_puts(b, "\\ufffd");
        else if (code == '"' || code == '\\')
            buf_printf(b, "\\%c", (int)code);
        else if (code == '\n' || code == '\r' || code == '\t')
            buf_printf(b, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
        else if (code < 0x20 || code == '<' || code == '>' || code == '&' || code == 0x2028 ||
                 code == 0x2029)
            buf_printf(b, "\\u%04x", (unsigned)code);
        else
            buf_append(b, s, len);
        s += MAX(len, 1U);
    }
    buf_putc(b, '"');
}

/* What goes before a value: comma, line, key. */
static void json_lead(struct json_writer *w, const char *key)
{
    if (w->depth) {
        if (!w->empty)
            buf_putc(w->out, ',');
        json_line(w);
    }
    w->empty = false;
    if (!key)
        return;
    json_quote(w->out, key);
    buf_puts(w->out, w->indent ? ": " : ":");
}

static void json_open(struct json_writer *w, const char *key, char bracket)
{
    json_lead(w, key);
    buf_putc(w->out, bracket);
    w->depth++;
    w->empty = true;
}

static void json_close(struct json_writer *w, char bracket)
{
    w->depth--;
    if (!w->empty)
        json_line(w);
    buf_putc(w->out, bracket);
    w->empty = false;
}

void json_open_object(struct json_writer *w, const char *key)
{
    json_open(w, key, '{');
}

void json_close_object(struct json_writer *w)
{
    json_close(w, '}');
}

void json_open_array(struct json_writer *w, const char *key)
{
    json_open(w, key, '[');
}

void json_close_array(struct json_writer *w)
{
    json_close(w, ']');
}

void json_put_string(struct json_writer *w, const char *key, const char *s)
{
    json_lead(w, key);
    json_quote(w->out, s);
}

void json_put_i64(struct json_writer *w, const char *key, int64_t value)
{
    json_lead(w, key);
    buf_printf(w->out, "%lld", (long long)value);
}

void json_put_u64(struct json_writer *w, const char *key, uint64_t value)
{
    json_lead(w, key);
    buf_printf(w->out, "%llu", (unsigned long long)value);
}

void json_put_bool(struct json_writer *w, const char *key, bool value)
{
    json_lead(w, key);
    buf_puts(w->out, value ? "true" : "false");
}

void json_put_strings(struct json_writer *w, const char *key, const char *const *strings)
{
    json_open_array(w, key);
    for (; *strings; strings++)
        json_put_string(w, NULL, *strings);
    json_close_array(w);
}
