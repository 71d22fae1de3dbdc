/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/keys, /proc/key-users and /proc/sys/kernel/keys. Source: proc_keys(5), proc_key-users(5), keyrings(7). */
#include "sentry/fs/proc/proc_global.h"
#include "sentry/fs/proc/proc_sys.h"

#include <ctype.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>

#include "platform/base/host.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/key.h"
#include "sentry/kernel/keyring.h"
#include "sentry/kernel/task.h"

static void put_expiry(const struct key *k, char *text, size_t size)
{
    static const struct {
        uint64_t seconds;
        char unit;
    } units[] = {{604800, 'w'}, {86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    uint64_t now = host_monotonic_ns(), left;

    if (!k->expiry_ns) {
        snprintf(text, size, "perm");
        return;
    }
    if (now >= k->expiry_ns) {
        snprintf(text, size, "expd");
        return;
    }
    left = (k->expiry_ns - now + 999999999) / 1000000000;
    for (unsigned i = 0; i < ARRAY_SIZE(units); i++) {
        if (left >= units[i].seconds) {
            snprintf(text, size, "%llu%c", (unsigned long long)(left / units[i].seconds), units[i].unit);
            return;
        }
    }
}

static void put_key(const struct key *k, struct buf *out)
{
    char expiry[24];

    put_expiry(k, expiry, sizeof(expiry));
    buf_printf(out, "%08x I%c-Q-%c%c %5u %4s %08x %5d %5d %-9.9s %s", (unsigned)k->serial, k->revoked ? 'R' : '-',
               k->reject ? 'N' : '-', k->invalidated ? 'i' : '-', k->ref.count, expiry, k->perm, (int)k->uid, k->gid == (uint32_t)-1 ? -1 : (int)k->gid,
               k->type->name, k->desc);
    if (k->reject)
        ;
    else if (!k->type->is_keyring)
        buf_printf(out, ": %u", k->size);
    else if (k->links_len)
        buf_printf(out, ": %u", k->links_len);
    else
        buf_puts(out, ": empty");
    buf_putc(out, '\n');
}

int proc_show_keys(struct proc_call *c, struct buf *out)
{
    struct key_search s = {.cred = c->ctx->cred, .any_state = true};
    struct key *found;

    if (!c->viewer)
        return 0;
    for (struct key *k = key_next(NULL); k; k = key_next(k)) {
        bool possessed = false;

        if (key_permission(k, false, c->ctx->cred, KEY_VIEW)) {
            s.exact = k;
            possessed = !taskkeys_search(c->viewer, &s, &found);
            if (possessed)
                key_unref(found); /* never the last one: somebody leads to it */
        }
        if (!key_permission(k, possessed, c->ctx->cred, KEY_VIEW))
            put_key(k, out);
    }
    return buf_error(out);
}

int proc_show_key_users(struct proc_call *c, struct buf *out)
{
    uint32_t max_keys, max_bytes;

    for (struct key_user *u = key_user_next(NULL); u; u = key_user_next(u)) {
        key_user_limits(u, &max_keys, &max_bytes);
        buf_printf(out, "%5u: %5u %u/%u %u/%u %llu/%u\n", u->uid, u->keys, u->keys, u->keys, u->charged_keys, max_keys,
                   (unsigned long long)u->charged_bytes, max_bytes);
    }
    return buf_error(out);
}

static int show_tunable(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%u\n", key_tunable((enum key_tunable)(uintptr_t)c->node->arg));
    return buf_error(out);
}

static int64_t write_tunable(struct proc_call *c, const char *data, size_t size)
{
    char *end;
    unsigned long value;

    if (!cred_has_cap(c->ctx->cred, CAP_SYS_ADMIN))
        return -EPERM;
    errno = 0;
    value = strtoul(data, &end, 0);
    if (end == data || errno || value > INT32_MAX)
        return -EINVAL;
    key_set_tunable((enum key_tunable)(uintptr_t)c->node->arg, (uint32_t)value);
    return (int64_t)size;
}

#define TUNABLE(n, which)                                                                          \
    {.name = n, .mode = S_IFREG | 0644, .show = show_tunable, .write = write_tunable, .arg = (const void *)(uintptr_t)(which)}
static const struct proc_node keys_nodes[] = {
    TUNABLE("gc_delay", KEY_GC_DELAY),
    TUNABLE("maxbytes", KEY_MAX_BYTES),
    TUNABLE("maxkeys", KEY_MAX_KEYS),
    TUNABLE("persistent_keyring_expiry", KEY_PERSISTENT_EXPIRY),
    TUNABLE("root_maxbytes", KEY_ROOT_MAX_BYTES),
    TUNABLE("root_maxkeys", KEY_ROOT_MAX_KEYS),
};
const struct proc_dir proc_sys_keys_dir = PROC_DIR_OF(keys_nodes);
