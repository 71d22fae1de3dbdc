/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock: rulesets, the domains that credentials carry, and what their layers leave of a request. The meaning of file rights
 * is vfs/landlock_fs.h's. Source: landlock(7), Linux 6.12 (ABI 6). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"

enum { LANDLOCK_ABI = 6, LANDLOCK_LAYERS_MAX = 16 };

/* Rights of LANDLOCK_ACCESS_FS_*. */
enum {
    LANDLOCK_EXECUTE = 1 << 0,
    LANDLOCK_WRITE_FILE = 1 << 1,
    LANDLOCK_READ_FILE = 1 << 2,
    LANDLOCK_READ_DIR = 1 << 3,
    LANDLOCK_REMOVE_DIR = 1 << 4,
    LANDLOCK_REMOVE_FILE = 1 << 5,
    LANDLOCK_MAKE_CHAR = 1 << 6,
    LANDLOCK_MAKE_DIR = 1 << 7,
    LANDLOCK_MAKE_REG = 1 << 8,
    LANDLOCK_MAKE_SOCK = 1 << 9,
    LANDLOCK_MAKE_FIFO = 1 << 10,
    LANDLOCK_MAKE_BLOCK = 1 << 11,
    LANDLOCK_MAKE_SYM = 1 << 12,
    LANDLOCK_REFER = 1 << 13,
    LANDLOCK_TRUNCATE = 1 << 14,
    LANDLOCK_IOCTL_DEV = 1 << 15,
    LANDLOCK_FS_ALL = (1 << 16) - 1,
    LANDLOCK_FS_RIGHTS = 16,
    /* What makes sense for a file that is no directory. */
    LANDLOCK_FS_FILE =
        LANDLOCK_EXECUTE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE | LANDLOCK_TRUNCATE | LANDLOCK_IOCTL_DEV,
};
/* LANDLOCK_ACCESS_NET_*, LANDLOCK_SCOPE_*. */
enum { LANDLOCK_BIND_TCP = 1, LANDLOCK_CONNECT_TCP = 2, LANDLOCK_NET_ALL = 3 };
enum { LANDLOCK_SCOPE_ABSTRACT = 1, LANDLOCK_SCOPE_SIGNAL = 2, LANDLOCK_SCOPE_ALL = 3 };

/* What one layer restricts. */
struct landlock_handled {
    uint32_t fs, net, scope;
};

/* One right-giving entry. File rules are keyed by objects of the VFS, which landlock only counts; ports by their number. */
struct landlock_rule {
    const void *key;
    uint32_t layer;  /* from 0 */
    uint32_t access; /* granted */
};

/* Sorted by key, then layer. */
struct landlock_rules {
    struct landlock_rule *rule; /* owned */
    uint32_t len, capacity;
};

/* How keys of file rules are held. */
struct landlock_key_ops {
    void (*ref)(const void *key);
    void (*unref)(const void *key);
};

/* Where a domain stands: one node a layer, so that domains can be told to descend from one another. */
struct landlock_node;

/* A ruleset that is being made (one layer, no node), or a domain (immutable, node set). */
struct landlock_set {
    struct ref ref;
    const struct landlock_key_ops *keys; /* (i) */
    uint32_t layers;                     /* (i) */
    struct landlock_handled handled[LANDLOCK_LAYERS_MAX]; /* (i) */
    uint32_t fs_any, net_any;            /* (i) what any layer handles */
    struct landlock_rules files, ports;  /* (k) */
    struct landlock_node *node;          /* (i) referenced; NULL for a ruleset */
};

/* Return: NULL on no memory. */
MUST_CHECK struct landlock_set *landlock_ruleset_new(const struct landlock_handled *handled,
                                                     const struct landlock_key_ops *keys);
struct landlock_set *landlock_ref(struct landlock_set *s); /* NULL is fine */
void landlock_unref(struct landlock_set *s);               /* NULL is fine */
/* Adds rights to a ruleset's rule for a file key or a port. Return: 0, −E2BIG (too many rules), −ENOMEM. */
MUST_CHECK int landlock_add_file(struct landlock_set *s, const void *key, uint32_t access);
MUST_CHECK int landlock_add_port(struct landlock_set *s, uint16_t port, uint32_t access);
/* The domain of who lives in parent (NULL: none) and restricts himself further. Return: 0, −E2BIG (too many layers),
 * −ENOMEM. */
MUST_CHECK int landlock_domain_new(struct landlock_set *parent, const struct landlock_set *ruleset,
                                   struct landlock_set **ret_domain);

/* For each file right, the layers that have not granted it yet. */
struct landlock_masks {
    uint16_t layers[LANDLOCK_FS_RIGHTS];
};
/* Starts with every layer that handles one of the rights. Return: the rights that are handled at all. */
uint32_t landlock_masks_init(const struct landlock_set *domain, uint32_t access, struct landlock_masks *ret_masks);
/* Takes off what the rule of key grants. Return: whether nothing of access is left to grant. */
bool landlock_masks_grant(const struct landlock_set *domain, const void *key, uint32_t access,
                          struct landlock_masks *masks);
/* The rights of access that some layer still withholds. */
uint32_t landlock_masks_denied(const struct landlock_masks *masks, uint32_t access);

/* Return: 0, or −EACCES when domain withholds a LANDLOCK_*_TCP right on port. */
MUST_CHECK int landlock_check_port(const struct landlock_set *domain, uint16_t port, uint32_t access);
/* Whether what lives in inner is held by all that holds what lives in outer: who may trace. Either may be NULL. */
bool landlock_contains(const struct landlock_set *outer, const struct landlock_set *inner);
/* Whether a LANDLOCK_SCOPE_* of from's layers keeps it from reaching what lives in to. Either may be NULL. */
bool landlock_scope_denies(const struct landlock_set *from, const struct landlock_set *to, uint32_t scope);
