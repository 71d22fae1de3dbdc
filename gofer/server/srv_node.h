/* SPDX-License-Identifier: Apache-2.0 */
/* Table of the inodes that the sentry holds: ids to O_PATH descriptors, bounded in number. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "platform/base/compiler.h"

enum {
    SRV_NODE_CHUNK = 256,       /* nodes allocated at a time */
    SRV_NODE_CHUNKS_MAX = 1024, /* so at most 262144 nodes, if RLIMIT_NOFILE permits */
    SRV_NODE_FDS_SPARE = 256,   /* descriptors kept for everything but nodes */
    SRV_NODE_DIRS_SHARE = 16,   /* one of so many nodes is kept for directories: no path can be walked without */
    SRV_NODE_READERS_MAX = 64   /* directories with an open read position */
};

struct srv_node {
    int fd;              /* (i) O_PATH */
    uint32_t tree;       /* (i) */
    mode_t type;         /* (i) S_IFMT part */
    bool holds_store;    /* (i) the root of the root file system: WIRE_STORE_NAME in it is not the container's */
    uint32_t generation; /* (mu) changes when the place in the table is reused */
    uint32_t refs;       /* (mu) one of the table while live, one per running operation; 0: free */
    bool live;           /* (mu) the sentry may name it */
    uint32_t index;      /* (i) place in the table */
    uint32_t next_free;  /* (mu) */
    int reader_fd;       /* (mu) O_RDONLY of a directory that is being read, or −1 */
    uint64_t reader_cookie; /* (mu) position of reader_fd */
};

struct srv_node_table {
    pthread_mutex_t mu;
    struct srv_node *chunks[SRV_NODE_CHUNKS_MAX]; /* (mu) */
    uint32_t capacity;                            /* (mu) nodes allocated */
    uint32_t len;                                 /* (mu) nodes in use */
    uint32_t max;                                 /* (i) */
    uint32_t first_free;                          /* (mu) UINT32_MAX: none */
    uint32_t readers[SRV_NODE_READERS_MAX]; /* (mu) indexes of nodes with a reader_fd, plus one */
    unsigned readers_next;                  /* (mu) */
};

/* fds_limit: how many descriptors the process may have. */
void srv_node_table_init(struct srv_node_table *t, uint64_t fds_limit);

/* Adds a node. fd is consumed, also on failure.
 * Return: 0, −ENFILE when the sentry holds too many, −ENOMEM. The node comes with a reference of
 * the caller's beside the table's. */
MUST_CHECK int srv_node_new(struct srv_node_table *t, OWNS int fd, uint32_t tree, mode_t type,
                            struct srv_node **ret_node);
/* Return: whether a node can be made, as far as one can tell: asked before something is made that
 * would need one. */
MUST_CHECK bool srv_node_has_room(struct srv_node_table *t);
/* Return: the node with a reference, or NULL when the id is not one that is live. */
MUST_CHECK struct srv_node *srv_node_get(struct srv_node_table *t, uint64_t id);
void srv_node_put(struct srv_node_table *t, struct srv_node *n);
/* The sentry gives the id back; unknown ids are ignored. */
void srv_node_release(struct srv_node_table *t, uint64_t id);
uint64_t srv_node_id(const struct srv_node *n);

/* Takes the directory's reader away for exclusive use. Return: fd (owned by the caller) or −1. */
MUST_CHECK int srv_node_take_reader(struct srv_node_table *t, struct srv_node *n,
                                    uint64_t *ret_cookie);
/* Keeps fd, positioned at cookie, for the next read of the directory; closes an older one. */
void srv_node_keep_reader(struct srv_node_table *t, struct srv_node *n, OWNS int fd,
                          uint64_t cookie);
