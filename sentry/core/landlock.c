/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock rulesets and domains. A domain is a copy of its parent's rules and one ruleset's, so that a check looks in one table. */
#include "sentry/core/landlock.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/limits.h"

struct landlock_node {
    struct ref ref;
    struct landlock_node *parent; /* (i) referenced; NULL: the first layer */
};

static void node_unref(struct landlock_node *n)
{
    while (n && ref_put(&n->ref)) {
        struct landlock_node *parent = n->parent;
        mem_free(n);
        n = parent;
    }
}

/* ---- rules ---- */

/* Return: index of the first rule of key, or where it would be. */
static uint32_t rules_index(const struct landlock_rules *r, const void *key)
{
    uint32_t low = 0, high = r->len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if ((uintptr_t)r->rule[mid].key < (uintptr_t)key)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Room for len rules. Return: 0, −ENOMEM (also when the sandbox holds too many). */
static int rules_reserve(struct landlock_rules *r, uint32_t len)
{
    if (len <= r->capacity)
        return 0;
    if (limit_charge(LIMIT_KIND_LANDLOCK_RULES, len - r->capacity))
        return -ENOMEM;
    struct landlock_rule *rule = mem_realloc(r->rule, len, sizeof(*rule));
    if (!rule) {
        limit_uncharge(LIMIT_KIND_LANDLOCK_RULES, len - r->capacity);
        return -ENOMEM;
    }
    r->rule = rule;
    r->capacity = len;
    return 0;
}

static void rules_free(struct landlock_rules *r, const struct landlock_key_ops *keys)
{
    for (uint32_t i = 0; keys && i < r->len; i++)
        keys->unref(r->rule[i].key);
    limit_uncharge(LIMIT_KIND_LANDLOCK_RULES, r->capacity);
    mem_free(r->rule);
}

/* keys: NULL when the key needs no holding. */
static int rules_add(struct landlock_rules *r, const struct landlock_key_ops *keys, const void *key,
                     uint32_t access)
{
    uint32_t i = rules_index(r, key);
    if (i < r->len && r->rule[i].key == key) {
        r->rule[i].access |= access;
        return 0;
    }
    if (r->len >= LIMIT_LANDLOCK_RULES)
        return -E2BIG;
    int ret = r->len < r->capacity ? 0 : rules_reserve(r, MAX(8U, r->capacity * 2));
    if (ret < 0)
        return ret;
    memmove(&r->rule[i + 1], &r->rule[i], (r->len - i) * sizeof(r->rule[0]));
    r->rule[i] = (struct landlock_rule){key, 0, access};
    r->len++;
    if (keys)
        keys->ref(key);
    return 0;
}

/* dst (empty) becomes the rules of a (may be NULL) and, as those of layer, the ones of b. */
static int rules_merge(struct landlock_rules *dst, const struct landlock_key_ops *keys,
                       const struct landlock_rules *a, const struct landlock_rules *b, uint32_t layer)
{
    uint32_t a_len = a ? a->len : 0;
    int ret = rules_reserve(dst, a_len + b->len);
    if (ret < 0)
        return ret;
    for (uint32_t i = 0, j = 0; i < a_len || j < b->len;) {
        bool from_a = j == b->len || (i < a_len && (uintptr_t)a->rule[i].key <= (uintptr_t)b->rule[j].key);
        struct landlock_rule *to = &dst->rule[dst->len++];
        if (from_a) {
            *to = a->rule[i++];
        } else {
            *to = b->rule[j++];
            to->layer = layer;
        }
        if (keys)
            keys->ref(to->key);
    }
    return 0;
}

/* ---- rulesets and domains ---- */

static struct landlock_set *set_new(const struct landlock_key_ops *keys)
{
    struct landlock_set *s = NEW(struct landlock_set);
    if (!s)
        return NULL;
    ref_init(&s->ref);
    s->keys = keys;
    return s;
}

static void set_push_layer(struct landlock_set *s, const struct landlock_handled *handled)
{
    s->handled[s->layers++] = *handled;
    s->fs_any |= handled->fs;
    s->net_any |= handled->net;
}

struct landlock_set *landlock_ruleset_new(const struct landlock_handled *handled,
                                          const struct landlock_key_ops *keys)
{
    struct landlock_set *s = set_new(keys);
    if (s)
        set_push_layer(s, handled);
    return s;
}

struct landlock_set *landlock_ref(struct landlock_set *s)
{
    if (s)
        ref_get(&s->ref);
    return s;
}

void landlock_unref(struct landlock_set *s)
{
    if (!s || !ref_put(&s->ref))
        return;
    rules_free(&s->files, s->keys);
    rules_free(&s->ports, NULL);
    node_unref(s->node);
    mem_free(s);
}

int landlock_add_file(struct landlock_set *s, const void *key, uint32_t access)
{
    return rules_add(&s->files, s->keys, key, access);
}

static const void *port_key(uint16_t port)
{
    return (const void *)(uintptr_t)port;
}

int landlock_add_port(struct landlock_set *s, uint16_t port, uint32_t access)
{
    return rules_add(&s->ports, NULL, port_key(port), access);
}

int landlock_domain_new(struct landlock_set *parent, const struct landlock_set *ruleset,
                        struct landlock_set **ret_domain)
{
    uint32_t layer = parent ? parent->layers : 0;
    if (layer >= LANDLOCK_LAYERS_MAX)
        return -E2BIG;
    struct landlock_set *d = set_new(ruleset->keys);
    if (!d)
        return -ENOMEM;
    for (uint32_t i = 0; i < layer; i++)
        set_push_layer(d, &parent->handled[i]);
    set_push_layer(d, &ruleset->handled[0]);
    int ret = rules_merge(&d->files, d->keys, parent ? &parent->files : NULL, &ruleset->files, layer);
    if (ret == 0)
        ret = rules_merge(&d->ports, NULL, parent ? &parent->ports : NULL, &ruleset->ports, layer);
    if (ret == 0 && !(d->node = NEW(struct landlock_node)))
        ret = -ENOMEM;
    if (ret < 0) {
        landlock_unref(d);
        return ret;
    }
    ref_init(&d->node->ref);
    if (parent) {
        ref_get(&parent->node->ref);
        d->node->parent = parent->node;
    }
    *ret_domain = d;
    return 0;
}

/* ---- questions ---- */

uint32_t landlock_masks_init(const struct landlock_set *domain, uint32_t access, struct landlock_masks *ret_masks)
{
    uint32_t handled = 0;
    memset(ret_masks, 0, sizeof(*ret_masks));
    for (uint32_t layer = 0; layer < domain->layers; layer++) {
        /* Moving files to another directory is refused by every layer that does not say otherwise. */
        uint32_t asked = access & (domain->handled[layer].fs | LANDLOCK_REFER);
        handled |= asked;
        for (uint32_t bits = asked; bits; bits &= bits - 1)
            ret_masks->layers[__builtin_ctz(bits)] |= (uint16_t)(1U << layer);
    }
    return handled;
}

bool landlock_masks_grant(const struct landlock_set *domain, const void *key, uint32_t access,
                          struct landlock_masks *masks)
{
    const struct landlock_rules *r = &domain->files;
    for (uint32_t i = rules_index(r, key); i < r->len && r->rule[i].key == key; i++) {
        for (uint32_t bits = r->rule[i].access & access; bits; bits &= bits - 1)
            masks->layers[__builtin_ctz(bits)] &= (uint16_t)~(1U << r->rule[i].layer);
    }
    return !landlock_masks_denied(masks, access);
}

uint32_t landlock_masks_denied(const struct landlock_masks *masks, uint32_t access)
{
    uint32_t denied = 0;
    for (uint32_t bits = access; bits; bits &= bits - 1) {
        unsigned bit = (unsigned)__builtin_ctz(bits);
        if (masks->layers[bit])
            denied |= 1U << bit;
    }
    return denied;
}

int landlock_check_port(const struct landlock_set *domain, uint16_t port, uint32_t access)
{
    uint32_t missing = 0;
    for (uint32_t layer = 0; layer < domain->layers; layer++) {
        if (domain->handled[layer].net & access)
            missing |= 1U << layer;
    }
    const struct landlock_rules *r = &domain->ports;
    for (uint32_t i = rules_index(r, port_key(port)); i < r->len && r->rule[i].key == port_key(port); i++) {
        if (r->rule[i].access & access)
            missing &= ~(1U << r->rule[i].layer);
    }
    return missing ? -EACCES : 0;
}

bool landlock_contains(const struct landlock_set *outer, const struct landlock_set *inner)
{
    if (!outer)
        return true;
    for (const struct landlock_node *n = inner ? inner->node : NULL; n; n = n->parent) {
        if (n == outer->node)
            return true;
    }
    return false;
}

bool landlock_scope_denies(const struct landlock_set *from, const struct landlock_set *to, uint32_t scope)
{
    if (!from)
        return false;
    const struct landlock_node *a = from->node, *b = to ? to->node : NULL;
    uint32_t i = from->layers, j = to ? to->layers : 0;
    for (; j > i; j--)
        b = b->parent;
    for (; i > 0; i--) {
        /* The layer holds what is not in it, or below it. */
        if ((from->handled[i - 1].scope & scope) && (i > j || a != b))
            return true;
        a = a->parent;
        if (i == j) {
            b = b->parent;
            j--;
        }
    }
    return false;
}
