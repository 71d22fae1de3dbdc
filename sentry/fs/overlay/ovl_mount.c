/* SPDX-License-Identifier: Apache-2.0 */
/* The type "overlay" of mount(2) and its options. */
#include "sentry/fs/overlay/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "sentry/core/cred.h"
#include "sentry/core/userns.h"
#include "sentry/fs/fs_options.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/task.h"

struct ovl_options {
    struct ctx *ctx;
    struct path *lowers; /* OVERLAY_LOWERS_MAX */
    unsigned len;
    struct path upper, work;
    bool userxattr, volatile_;
    struct buf shown;
    struct buf lower_text, upper_text, work_text;
};

/* Options are separated by commas, but a backslash takes a comma's meaning away. */
static bool ovl_option_next(const char **inout_data, struct fs_option *o)
{
    const char *p = *inout_data;
    while (p && *p == ',')
        p++;
    if (!p || !*p)
        return false;
    const char *end = p;
    while (*end && *end != ',')
        end += end[0] == '\\' && end[1] ? 2 : 1;
    const char *equals = memchr(p, '=', (size_t)(end - p));
    *o = (struct fs_option){
        .name = p,
        .name_len = (size_t)((equals ? equals : end) - p),
        .value = equals ? equals + 1 : NULL,
        .value_len = equals ? (size_t)(end - equals - 1) : 0,
    };
    *inout_data = end;
    return true;
}

/* Resolves size bytes of text, with backslashes taken off, for the caller. */
static int ovl_resolve(struct ctx *ctx, const char *text, size_t size, struct path *ret_path)
{
    struct task *t = ctx_task_or_null(ctx);
    if (!t || !size)
        return -EINVAL;
    CLEANUP_FREE char *path = mem_zalloc(size + 1);
    if (!path)
        return -ENOMEM;
    size_t len = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\\' && i + 1 < size)
            i++;
        path[len++] = text[i];
    }
    struct path hold = {0};
    struct walk_base base;
    int ret = fsctx_base(t, AT_FDCWD, path, &hold, &base);
    if (ret == 0) {
        ret = walk_path(ctx, &base, path, WALK_FOLLOW | WALK_DIRECTORY, ret_path);
        path_unref(&hold);
    }
    return ret;
}

static int ovl_add_lower(struct ovl_options *opts, const char *text, size_t size)
{
    if (opts->len == OVERLAY_LOWERS_MAX)
        return -EINVAL;
    int ret = ovl_resolve(opts->ctx, text, size, &opts->lowers[opts->len]);
    if (ret == 0)
        opts->len++;
    return ret;
}

/* "a:b:c", where "\:" is no end. */
static int ovl_parse_lowers(struct ovl_options *opts, const char *text, size_t size)
{
    if (opts->len)
        return -EINVAL;
    for (size_t from = 0; from <= size;) {
        size_t at = from;
        while (at < size && text[at] != ':')
            at += text[at] == '\\' && at + 1 < size ? 2 : 1;
        int ret = ovl_add_lower(opts, text + from, at - from);
        if (ret < 0)
            return ret;
        from = at + 1;
    }
    return 0;
}

static bool ovl_value_is(const struct fs_option *o, const char *value)
{
    return o->value && o->value_len == strlen(value) && !memcmp(o->value, value, o->value_len);
}

/* What is only accepted as it is here anyway. */
static int ovl_parse_fixed(const struct fs_option *o)
{
    static const struct {
        const char *name, *value;
    } fixed[] = {
        {"redirect_dir", "off"}, {"redirect_dir", "nofollow"}, {"index", "off"}, {"metacopy", "off"}, {"nfs_export", "off"},
        {"xino", "auto"}, {"xino", "on"}, {"uuid", "auto"}, {"verity", "off"}, {"fsync", "auto"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
        if (fs_option_is(o, fixed[i].name) && ovl_value_is(o, fixed[i].value))
            return 0;
    }
    return -EINVAL;
}

static int ovl_set_dir(struct ovl_options *opts, const struct fs_option *o, struct path *dir, struct buf *text)
{
    path_unref(dir);
    buf_free(text);
    *text = (struct buf){0};
    buf_printf(text, "%.*s", (int)o->value_len, o->value);
    return ovl_resolve(opts->ctx, o->value, o->value_len, dir);
}

static int ovl_parse_one(struct ovl_options *opts, const struct fs_option *o)
{
    if (fs_option_is(o, "userxattr") && !o->value) {
        opts->userxattr = true;
        return 0;
    }
    if (fs_option_is(o, "volatile") && !o->value) {
        opts->volatile_ = true;
        return 0;
    }
    if (!o->value_len)
        return -EINVAL;
    if (fs_option_is(o, "lowerdir")) {
        buf_printf(&opts->lower_text, ",lowerdir=%.*s", (int)o->value_len, o->value);
        return ovl_parse_lowers(opts, o->value, o->value_len);
    }
    if (fs_option_is(o, "lowerdir+")) {
        buf_printf(&opts->lower_text, ",lowerdir+=%.*s", (int)o->value_len, o->value);
        return ovl_add_lower(opts, o->value, o->value_len);
    }
    if (fs_option_is(o, "upperdir"))
        return ovl_set_dir(opts, o, &opts->upper, &opts->upper_text);
    if (fs_option_is(o, "workdir"))
        return ovl_set_dir(opts, o, &opts->work, &opts->work_text);
    return ovl_parse_fixed(o);
}

static int ovl_parse(struct ovl_options *opts, const char *data)
{
    struct fs_option o;
    while (ovl_option_next(&data, &o)) {
        int ret = ovl_parse_one(opts, &o);
        if (ret < 0)
            return ret;
    }
    if (opts->upper.dentry && !opts->work.dentry)
        return -EINVAL;
    /* A work directory alone is for nothing. */
    if (!opts->upper.dentry)
        path_unref(&opts->work);
    buf_printf(&opts->shown, "%s", opts->lower_text.data ? opts->lower_text.data : "");
    if (opts->upper.dentry)
        buf_printf(&opts->shown, ",upperdir=%s,workdir=%s", opts->upper_text.data, opts->work_text.data);
    if (opts->userxattr)
        buf_puts(&opts->shown, ",userxattr");
    if (opts->volatile_)
        buf_puts(&opts->shown, ",volatile");
    return buf_error(&opts->shown);
}

static int ovl_mount(struct ctx *ctx, unsigned long flags, const char *source, const char *data, struct dentry **ret_root)
{
    struct ovl_options opts = {.ctx = ctx, .lowers = NEW_ARRAY(struct path, OVERLAY_LOWERS_MAX)};
    if (!opts.lowers)
        return -ENOMEM;
    int ret = ovl_parse(&opts, data);
    if (ret == 0) {
        const struct overlay_config config = {
            .lowers = opts.lowers,
            .lowers_len = opts.len,
            .upper = opts.upper,
            .work = opts.work,
            .prefix = opts.userxattr ? OVERLAY_PREFIX_USER : OVERLAY_PREFIX_TRUSTED,
            .volatile_ = opts.volatile_,
            .options = opts.shown.data,
        };
        ret = overlay_new(ctx, &config, ret_root);
    }
    for (unsigned i = 0; i < opts.len; i++)
        path_unref(&opts.lowers[i]);
    path_unref(&opts.upper);
    path_unref(&opts.work);
    buf_free(&opts.shown);
    buf_free(&opts.lower_text);
    buf_free(&opts.upper_text);
    buf_free(&opts.work_text);
    mem_free(opts.lowers);
    return ret;
}

void overlay_register(void)
{
    static const struct fs_type type = {
        .name = "overlay",
        .userns_mount = true,
        .nodev = true,
        .mount = ovl_mount,
    };
    fs_type_register(&type);
}
