/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in and out: a checked tree whose errors name the path in the document, and a writer. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oci/arena.h"
#include "platform/base/buf.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

#define JSON_SIZE_MAX ((size_t)8 << 20) /* bytes of one document */
#define JSON_DEPTH_MAX 64               /* arrays and objects inside each other */
#define JSON_VALUES_MAX (1U << 18)      /* values of one document */

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_value;

/* Parses one document of size bytes; the tree lives in a. root is what messages call the top level
 * ("process"); "" if its members are to be named alone. Return: 0. Errors: EINVAL (e names line and
 * column), E2BIG (a limit above), ENOMEM. */
MUST_CHECK int json_parse(struct arena *a, const char *text, size_t size, const char *root,
                          const struct json_value **ret_value, struct errmsg *e);

enum json_type json_type(const struct json_value *v);
/* Number of elements or members. */
unsigned json_len(const struct json_value *v);
/* First element or member, and the next one; NULL at the end. */
const struct json_value *json_first(const struct json_value *v);
const struct json_value *json_next(const struct json_value *v);
#define json_for_each(child, parent) \
    for (const struct json_value *child = json_first(parent); child; child = json_next(child))
/* Name of a member; "" for an element. */
const char *json_key(const struct json_value *v);
/* The member of that name, the last if there are several; NULL if absent or null, as in Go. */
const struct json_value *json_member_peek(const struct json_value *object, const char *name);

/* Sets the message to "PATH: text". Return: −EINVAL. */
int json_error(const struct json_value *v, struct errmsg *e, const char *fmt, ...) PRINTF(3, 4);
/* The same for a member that is not there. */
int json_missing(const struct json_value *object, const char *name, struct errmsg *e);

/* Checks the type. Return: 0, or −EINVAL with "PATH: expected object, got string". */
MUST_CHECK int json_expect(const struct json_value *v, enum json_type type, struct errmsg *e);

/* The value as a C type, or −EINVAL with the path and what was expected. Strings must hold no NUL
 * byte and stay in the arena. Integers must be written as such (no 1.0, no 1e3). */
MUST_CHECK int json_as_bool(const struct json_value *v, bool *ret_value, struct errmsg *e);
MUST_CHECK int json_as_string(const struct json_value *v, const char **ret_value, struct errmsg *e);
MUST_CHECK int json_as_u64(const struct json_value *v, uint64_t max, uint64_t *ret_value,
                           struct errmsg *e);
MUST_CHECK int json_as_i64(const struct json_value *v, int64_t min, int64_t max, int64_t *ret_value,
                           struct errmsg *e);
/* A member's name as a C string: it must not be empty nor hold a NUL byte. */
MUST_CHECK int json_key_check(const struct json_value *v, struct errmsg *e);

/* Writes JSON onto a buffer, laid out as Go's encoding/json does with an indent (what users of runc
 * parse and compare). Allocation failures stick to the buffer: see buf_error. */
struct json_writer {
    struct buf *out;
    const char *indent; /* per level; NULL: everything on one line */
    unsigned depth;
    bool empty; /* the open array or object has nothing in it yet */
};

void json_writer_init(struct json_writer *w, struct buf *out, const char *indent);
/* key is NULL inside an array and at the top level. */
void json_open_object(struct json_writer *w, const char *key);
void json_close_object(struct json_writer *w);
void json_open_array(struct json_writer *w, const char *key);
void json_close_array(struct json_writer *w);
/* s must be UTF-8: other bytes come out as U+FFFD. */
void json_put_string(struct json_writer *w, const char *key, const char *s);
void json_put_i64(struct json_writer *w, const char *key, int64_t value);
void json_put_u64(struct json_writer *w, const char *key, uint64_t value);
void json_put_bool(struct json_writer *w, const char *key, bool value);
/* Array of the NULL-terminated strings. */
void json_put_strings(struct json_writer *w, const char *key, const char *const *strings);
