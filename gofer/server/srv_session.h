/* SPDX-License-Identifier: Apache-2.0 */
/* One container's session: its trees, its nodes, and the loop that answers requests. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gofer/proto/channel.h"
#include "gofer/proto/codec.h"
#include "gofer/server/srv_main.h"
#include "gofer/server/srv_node.h"

enum { SRV_DEVS_MAX = 64, SRV_SCRATCH_SIZE = 16384 };

struct srv_session {
    struct channel channel;         /* (i) */
    struct channel lane;            /* (i) its shm is the channel's; sock −1: the host gave none */
    int lane_peer;                  /* (devs_mu) the sentry's end until it asks for it, then −1 */
    const struct gofer_tree *trees; /* (i) borrowed */
    unsigned trees_len;             /* (i) */
    int proc_self_fd;               /* (i) borrowed; also the working directory */
    struct srv_node_table nodes;
    pthread_mutex_t devs_mu;
    uint64_t devs[SRV_DEVS_MAX]; /* (devs_mu) host device numbers, in the order they were met */
    unsigned devs_len;           /* (devs_mu) */
    pthread_mutex_t watch_mu;
    int inotify_fd;                        /* (i) −1: nothing is watched */
    int *watch_table;                      /* (watch_mu) hash of the live numbers, 0: free place */
    unsigned watches;                      /* (watch_mu) entries in it */
    uint8_t watched[GOFER_TREES_MAX / 8];  /* (watch_mu) bit map of trees */
    uint32_t watched_dev[GOFER_TREES_MAX]; /* (watch_mu) their file systems */
};

/* One request while it is served. */
struct srv_call {
    struct srv_session *session;
    struct codec_reader in;
    struct codec_writer out;
    int fds[WIRE_FDS_MAX]; /* to be sent, then closed */
    unsigned fds_len;
    char
        *scratch; /* SRV_SCRATCH_SIZE bytes of this worker's: spares clearing large stack buffers */
    bool malformed; /* the payload breaks the protocol: the session ends */
};

/* Opens the channel of config (its sock and shm are consumed) and the trees.
 * Return: 0 or −errno. */
MUST_CHECK int srv_session_init(struct srv_session *s, const struct gofer_server_config *config,
                                uint64_t fds_limit);
/* Answers requests until the sentry is gone (return 0) or breaks the protocol (−EPROTO), or
 * memory for the buffers is lacking (−ENOMEM). May run on several threads at once. */
MUST_CHECK int srv_session_serve(struct srv_session *s);

/* The same for what comes by the lane, on one thread. Return likewise. */
MUST_CHECK int srv_session_serve_lane(struct srv_session *s);
/* Takes the sentry's end of the lane, for the one reply that it goes with. Return: fd (the caller's) or −1. */
MUST_CHECK int srv_session_take_lane(struct srv_session *s);

/* Number by which the sentry knows the host device major:minor. */
uint32_t srv_session_dev(struct srv_session *s, uint32_t major, uint32_t minor);
