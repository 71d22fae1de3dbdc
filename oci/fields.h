/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a JSON object into a struct by a table of its fields. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oci/json.h"
#include "oci/spec.h"

struct fields_warning;

/* What reading a document carries along. */
struct fields_ctx {
    struct arena *arena;
    struct errmsg *e; /* may be NULL */
    struct fields_warning *first_warning, *last_warning;
    unsigned warnings;
};

struct field_word {
    const char *word;
    int64_t value;
};

/* Reads v into dst. Return: 0 or −errno with the message set. */
typedef int field_read_fn(struct fields_ctx *ctx, const struct json_value *v, void *dst);

enum field_kind {
    FIELD_BOOL,
    FIELD_STRING,
    FIELD_STRINGS,
    FIELD_PAIRS,
    FIELD_WORD, /* a string out of a table, into an int */
    FIELD_U16,
    FIELD_U32,
    FIELD_I32,
    FIELD_U64,
    FIELD_I64,
    FIELD_OPT_BOOL,
    FIELD_OPT_I64,
    FIELD_OPT_U64,
    FIELD_OBJECT, /* into a struct, by read */
    FIELD_ARRAY,  /* into a new array of structs, by read */
};

#define FIELD_REQUIRED 1U /* absent is an error */
#define FIELD_NONEMPTY 2U /* a string or list must have something in it */
#define FIELD_ABSOLUTE 4U /* a string (or each of a list) must start with a slash */

struct field {
    const char *name;
    enum field_kind kind;
    unsigned flags;
    size_t offset;     /* of the member; of the pointer for arrays */
    size_t len_offset; /* arrays: of the unsigned length */
    bool has_set;      /* set_offset names a bool that becomes true when the field is there */
    size_t set_offset;
    size_t element_size;
    uint64_t max; /* unsigned integers: the largest; 0 = of the type */
    const struct field_word *words;
    field_read_fn *read;
};

/* Offset of a member whose type is checked against want. */
#define FIELD_OFFSET(type, member, want) \
    (offsetof(type, member) + 0 * sizeof(&((type *)0)->member == (want *)0))

#define FIELD_AS(want, field_kind_, json, type, member, flags_) \
    .name = (json), .kind = (field_kind_), .flags = (flags_),   \
    .offset = FIELD_OFFSET(type, member, want)

#define F_BOOL(json, type, member)                        \
    {                                                     \
        FIELD_AS(bool, FIELD_BOOL, json, type, member, 0) \
    }
#define F_STRING(json, type, member, flags)                             \
    {                                                                   \
        FIELD_AS(const char *, FIELD_STRING, json, type, member, flags) \
    }
#define F_STRINGS(json, type, member, flags)                                   \
    {                                                                          \
        FIELD_AS(struct oci_strings, FIELD_STRINGS, json, type, member, flags) \
    }
#define F_PAIRS(json, type, member)                                    \
    {                                                                  \
        FIELD_AS(struct oci_pairs, FIELD_PAIRS, json, type, member, 0) \
    }
#define F_WORD(json, type, member, flags_, words_)                                      \
    {                                                                                   \
        .name = (json), .kind = FIELD_WORD, .flags = (flags_), .words = (words_),       \
        .offset = offsetof(type, member) +                                              \
                  0 * sizeof(char[sizeof(((type *)0)->member) == sizeof(int) ? 1 : -1]) \
    }
#define F_U16(json, type, member, flags)                         \
    {                                                            \
        FIELD_AS(uint16_t, FIELD_U16, json, type, member, flags) \
    }
#define F_U32(json, type, member, flags)                         \
    {                                                            \
        FIELD_AS(uint32_t, FIELD_U32, json, type, member, flags) \
    }
#define F_I32(json, type, member, flags)                        \
    {                                                           \
        FIELD_AS(int32_t, FIELD_I32, json, type, member, flags) \
    }
#define F_U64(json, type, member, flags)                         \
    {                                                            \
        FIELD_AS(uint64_t, FIELD_U64, json, type, member, flags) \
    }
#define F_I64(json, type, member, flags)                        \
    {                                                           \
        FIELD_AS(int64_t, FIELD_I64, json, type, member, flags) \
    }
/* An integer whose presence goes to another member. */
#define F_U32_SET(json, type, member, set_member, max_)                                        \
    {                                                                                          \
        FIELD_AS(uint32_t, FIELD_U32, json, type, member, 0),                                  \
            .max = (max_), .has_set = true, .set_offset = FIELD_OFFSET(type, set_member, bool) \
    }
#define F_I32_SET(json, type, member, set_member)                               \
    {                                                                           \
        FIELD_AS(int32_t, FIELD_I32, json, type, member, 0),                    \
            .has_set = true, .set_offset = FIELD_OFFSET(type, set_member, bool) \
    }
#define F_OPT_BOOL(json, type, member)                                   \
    {                                                                    \
        FIELD_AS(struct oci_bool, FIELD_OPT_BOOL, json, type, member, 0) \
    }
#define F_OPT_I64(json, type, member)                                  \
    {                                                                  \
        FIELD_AS(struct oci_i64, FIELD_OPT_I64, json, type, member, 0) \
    }
#define F_OPT_U64(json, type, member, max_)                                           \
    {                                                                                 \
        FIELD_AS(struct oci_u64, FIELD_OPT_U64, json, type, member, 0), .max = (max_) \
    }
/* read gets the address of the member. */
#define F_OBJECT(json, type, member, flags_, read_)                                                \
    {                                                                                              \
        .name = (json), .kind = FIELD_OBJECT, .flags = (flags_), .offset = offsetof(type, member), \
        .read = (read_)                                                                            \
    }
/* read gets the address of the struct that has the fields: for objects spread over several members.
 */
#define F_SELF(json, flags_, read_)                                                           \
    {                                                                                         \
        .name = (json), .kind = FIELD_OBJECT, .flags = (flags_), .offset = 0, .read = (read_) \
    }
#define F_ARRAY(json, type, member, len_member, flags_, read_)                                    \
    {                                                                                             \
        .name = (json), .kind = FIELD_ARRAY, .flags = (flags_), .offset = offsetof(type, member), \
        .len_offset = FIELD_OFFSET(type, len_member, unsigned),                                   \
        .element_size = sizeof(*((type *)0)->member), .read = (read_)                             \
    }

/* Reads object v by len fields into dst; absent optional fields (and null) leave dst as it is,
 * unknown ones are ignored. Return: 0 or −errno with the message set. */
MUST_CHECK int fields_read(struct fields_ctx *ctx, const struct json_value *v,
                           const struct field *fields, unsigned len, void *dst);
#define FIELDS_READ(ctx, v, fields, dst) fields_read(ctx, v, fields, ARRAY_SIZE(fields), dst)

/* Looks a word up. Errors: EINVAL, the message lists the words. */
MUST_CHECK int fields_word(struct fields_ctx *ctx, const struct json_value *v,
                           const struct field_word *words, int64_t *ret_value);

/* Keeps "PATH: text" for the caller's log. Return: 0. Errors: ENOMEM. */
MUST_CHECK int fields_warn(struct fields_ctx *ctx, const struct json_value *v, const char *fmt, ...)
    PRINTF(3, 4);
/* The warnings so far as a list. Errors: ENOMEM. */
MUST_CHECK int fields_warnings(struct fields_ctx *ctx, struct oci_strings *ret_warnings);

/* Sets "out of memory". Return: −ENOMEM. */
int fields_oom(struct fields_ctx *ctx);
