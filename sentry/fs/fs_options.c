/* SPDX-License-Identifier: Apache-2.0 */
/* Mount options of the form "a,b=c" for the synthetic file systems. */
#include "sentry/fs/fs_options.h"

#include <errno.h>
#include <string.h>

#include "sentry/core/cred.h"
#include "sentry/core/ctx.h"

int fs_option_next(const char **inout_data, struct fs_option *ret_option)
{
    const char *p = *inout_data, *end, *equals;

    while (p && *p == ',')
        p++;
    if (!p || !*p)
        return 0;
    end = strchrnul(p, ',');
    equals = memchr(p, '=', (size_t)(end - p));
    *ret_option = (struct fs_option){
        .name = p,
        .name_len = (size_t)((equals ? equals : end) - p),
        .value = equals ? equals + 1 : NULL,
        .value_len = equals ? (size_t)(end - equals - 1) : 0,
    };
    *inout_data = end;
    return 1;
}

bool fs_option_is(const struct fs_option *o, const char *name)
{
    return strlen(name) == o->name_len && memcmp(name, o->name, o->name_len) == 0;
}

int fs_option_u32(const struct fs_option *o, unsigned base, uint32_t *ret_value)
{
    uint64_t value = 0;

    if (!o->value || o->value_len == 0 || o->value_len > 12)
        return -EINVAL;
    for (size_t i = 0; i < o->value_len; i++) {
        unsigned digit = (unsigned)(o->value[i] - '0');

        if (digit >= base)
            return -EINVAL;
        value = value * base + digit;
    }
    if (value > UINT32_MAX)
        return -EINVAL;
    *ret_value = (uint32_t)value;
    return 0;
}

int fs_option_uid(const struct ctx *ctx, const struct fs_option *o, uint32_t *ret_uid)
{
    uint32_t uid;
    int r = fs_option_u32(o, 10, &uid);

    if (!r)
        uid = userns_uid_in(ctx && ctx->cred ? ctx->cred->userns : NULL, uid);
    if (r || uid == USERNS_NO_ID)
        return -EINVAL;
    *ret_uid = uid;
    return 0;
}

int fs_option_gid(const struct ctx *ctx, const struct fs_option *o, uint32_t *ret_gid)
{
    uint32_t gid;
    int r = fs_option_u32(o, 10, &gid);

    if (!r)
        gid = userns_gid_in(ctx && ctx->cred ? ctx->cred->userns : NULL, gid);
    if (r || gid == USERNS_NO_ID)
        return -EINVAL;
    *ret_gid = gid;
    return 0;
}
