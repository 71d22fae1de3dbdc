/* SPDX-License-Identifier: Apache-2.0 */
/* The top level of config.json, and documents that hold one section of it. */
#include "oci/spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oci/spec_priv.h"
#include "oci/validate.h"
#include "platform/base/alloc.h"

/* Parses a decimal number of a version. Return: where it ends, NULL if there is none. */
static const char *spec_version_number(const char *s, unsigned long *ret_number)
{
    size_t digits = strspn(s, "0123456789");
    if (digits == 0 || digits > 6)
        return NULL;
    *ret_number = strtoul(s, NULL, 10);
    return s + digits;
}

/* Accepts major version 1: minor versions only add to it. */
static int spec_check_version(struct fields_ctx *ctx, const struct json_value *v,
                              const char *version)
{
    unsigned long number[3];
    const char *s = version;
    for (unsigned i = 0; i < 3; i++) {
        s = spec_version_number(s, &number[i]);
        if (!s || (i < 2 && *s++ != '.'))
            return json_error(v, ctx->e, "expected a version such as \"1.2.0\", got \"%.64s\"",
                              version);
    }
    if (*s && *s != '-' && *s != '+')
        return json_error(v, ctx->e, "expected a version such as \"1.2.0\", got \"%.64s\"",
                          version);
    if (number[0] != 1)
        return json_error(v, ctx->e, "unsupported version \"%.64s\", expected 1.x", version);
    return 0;
}

static int spec_root_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_STRING("path", struct oci_spec, root_path, FIELD_REQUIRED | FIELD_NONEMPTY),
        F_BOOL("readonly", struct oci_spec, root_readonly),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_read(struct fields_ctx *ctx, const struct json_value *v, struct oci_spec *spec)
{
    static const struct field version[] = {
        F_STRING("ociVersion", struct oci_spec, oci_version, FIELD_REQUIRED | FIELD_NONEMPTY),
    };
    static const struct field fields[] = {
        F_OBJECT("process", struct oci_spec, process, FIELD_REQUIRED, spec_process_read),
        F_SELF("root", FIELD_REQUIRED, spec_root_read),
        F_STRING("hostname", struct oci_spec, hostname, 0),
        F_STRING("domainname", struct oci_spec, domainname, 0),
        F_ARRAY("mounts", struct oci_spec, mounts, mounts_len, 0, spec_mount_read),
        F_OBJECT("hooks", struct oci_spec, hooks, 0, spec_hooks_read),
        F_PAIRS("annotations", struct oci_spec, annotations),
        F_OBJECT("linux", struct oci_spec, linux_, 0, spec_linux_read),
    };
    /* The version decides whether the rest can be understood at all. */
    int r = FIELDS_READ(ctx, v, version, spec);
    if (!r)
        r = spec_check_version(ctx, json_member_peek(v, "ociVersion"), spec->oci_version);
    return r ? r : FIELDS_READ(ctx, v, fields, spec);
}

/* Lists that the document left out still end with NULL. */
static void spec_fill(struct oci_spec *spec)
{
    static const char *const none[] = {NULL};
    struct oci_strings *lists[] = {&spec->linux_.masked_paths, &spec->linux_.readonly_paths,
                                   &spec->linux_.seccomp.architectures};
    for (unsigned i = 0; i < ARRAY_SIZE(lists); i++) {
        if (!lists[i]->v)
            lists[i]->v = none;
    }
}

int oci_spec_parse(const char *json, size_t size, struct oci_spec **ret_spec, struct errmsg *e)
{
    struct oci_spec *spec = NEW(struct oci_spec);
    if (!spec)
        return errmsg_set(e, -ENOMEM, "out of memory");
    struct fields_ctx ctx = {.arena = &spec->arena, .e = e};
    const struct json_value *v;
    int r = json_parse(&spec->arena, json, size, "", &v, e);
    if (!r)
        r = spec_read(&ctx, v, spec);
    if (!r)
        r = validate_spec(spec, e);
    if (!r)
        r = fields_warnings(&ctx, &spec->warnings);
    if (r) {
        oci_spec_free(spec);
        return r;
    }
    spec_fill(spec);
    *ret_spec = spec;
    return 0;
}

void oci_spec_free(struct oci_spec *spec)
{
    if (!spec)
        return;
    arena_free(&spec->arena);
    mem_free(spec);
}

int oci_process_parse(const char *json, size_t size, struct oci_process_doc **ret_doc,
                      struct errmsg *e)
{
    struct oci_process_doc *doc = NEW(struct oci_process_doc);
    if (!doc)
        return errmsg_set(e, -ENOMEM, "out of memory");
    struct fields_ctx ctx = {.arena = &doc->arena, .e = e};
    const struct json_value *v;
    int r = json_parse(&doc->arena, json, size, "process", &v, e);
    if (!r)
        r = spec_process_read(&ctx, v, &doc->process);
    if (!r)
        r = validate_process(&doc->process, e);
    if (!r)
        r = fields_warnings(&ctx, &doc->warnings);
    if (r) {
        oci_process_doc_free(doc);
        return r;
    }
    *ret_doc = doc;
    return 0;
}

void oci_process_doc_free(struct oci_process_doc *doc)
{
    if (!doc)
        return;
    arena_free(&doc->arena);
    mem_free(doc);
}

int oci_resources_parse(const char *json, size_t size, struct oci_resources_doc **ret_doc,
                        struct errmsg *e)
{
    struct oci_resources_doc *doc = NEW(struct oci_resources_doc);
    if (!doc)
        return errmsg_set(e, -ENOMEM, "out of memory");
    struct fields_ctx ctx = {.arena = &doc->arena, .e = e};
    const struct json_value *v;
    int r = json_parse(&doc->arena, json, size, "resources", &v, e);
    if (!r)
        r = spec_resources_read(&ctx, v, &doc->resources);
    if (r) {
        oci_resources_doc_free(doc);
        return r;
    }
    *ret_doc = doc;
    return 0;
}

void oci_resources_doc_free(struct oci_resources_doc *doc)
{
    if (!doc)
        return;
    arena_free(&doc->arena);
    mem_free(doc);
}

const struct oci_namespace *oci_spec_namespace_peek(const struct oci_spec *spec,
                                                    enum oci_ns_type type)
{
    for (unsigned i = 0; i < spec->linux_.namespaces_len; i++) {
        if (spec->linux_.namespaces[i].type == type)
            return &spec->linux_.namespaces[i];
    }
    return NULL;
}

const char *oci_spec_annotation_peek(const struct oci_spec *spec, const char *key)
{
    for (unsigned i = 0; i < spec->annotations.len; i++) {
        if (strcmp(spec->annotations.v[i].key, key) == 0)
            return spec->annotations.v[i].value;
    }
    return NULL;
}
