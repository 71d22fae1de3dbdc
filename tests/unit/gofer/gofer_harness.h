/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a gofer server in a process of its own on a fresh tree, and talks to it synchronously. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "gofer/proto/channel.h"
#include "gofer/proto/codec.h"

#define CHECK(cond)                                                            \
    do {                                                                       \
        if (!(cond)) {                                                         \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #cond); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)
#define CHECK_EQ(a, b)                                                                         \
    do {                                                                                       \
        long long check_a_ = (long long)(a), check_b_ = (long long)(b);                        \
        if (check_a_ != check_b_) {                                                            \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #a, check_a_, \
                    check_b_);                                                                 \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

/* tree 0: dir "root" (rw), tree 1: the same directory read-only, tree 2: a single file, rw. */
struct gofer_harness {
    char dir[64];  /* scratch directory; the trees' root is dir/root, dir/outside is not served */
    pid_t pid;     /* of the server */
    int sock, shm; /* the sentry's end, until harness_open or a client consumes it */
    struct channel channel;
    uint32_t sequence;
    /* Of the last call: */
    int fds[WIRE_FDS_MAX];
    size_t fds_len;
    unsigned char reply[WIRE_SLOT_SIZE];
    struct codec_reader in;
};

/* Makes the trees and starts a server with that many workers. */
void harness_start(struct gofer_harness *h, unsigned workers);
/* Opens h->channel for harness_call. */
void harness_open(struct gofer_harness *h);
/* Sends a request made of the fixed part and the strings (NULL-terminated list), waits for the
 * reply; descriptors of an earlier call are closed. Return: 0 or −errno of the reply; 1 when the
 * server is gone. */
int harness_call(struct gofer_harness *h, enum wire_op op, const void *fixed, size_t size, ...);
/* Closes the channel, waits for the server. Return: its wait status. */
int harness_stop(struct gofer_harness *h);
/* Removes the scratch directory. */
void harness_clean(struct gofer_harness *h);

/* Short forms. */
struct wire_entry harness_attach(struct gofer_harness *h, uint32_t tree);
struct wire_walk_result harness_walk(struct gofer_harness *h, uint64_t node, const char *path,
                                     uint32_t flags, uint32_t open_flags, struct wire_entry *ret,
                                     size_t len);
