/* SPDX-License-Identifier: Apache-2.0 */
/* The control protocol: how later commands talk to a running sentry, over a SOCK_SEQPACKET socket in
 * the container's state directory. Both ends check every field: neither trusts the other. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

#define CONTROL_MAGIC 0x6c746f43u
#define CONTROL_SOCKET_NAME "control.sock"

enum control_op {
    CONTROL_START = 1, /* runs the container's init program */
    CONTROL_KILL,      /* args: signal, all */
    CONTROL_STATE,     /* result: enum control_state */
    CONTROL_PS,        /* args: offset; the reply holds guest pids, result says how many in all */
    CONTROL_EXEC,      /* descriptors: process.json in a memfd, then stdio or the console's slave;
                        * args: CONTROL_EXEC_* flags, rows, cols, preserved descriptors. First reply:
                        * guest pid or error. When the process has exited: CONTROL_EXITED */
    CONTROL_SIGNAL,    /* to the process of this connection's exec; args: signal */
    CONTROL_RESIZE,    /* console of this connection's exec, or of init; args: rows, cols */
};

enum control_state { CONTROL_CREATED, CONTROL_RUNNING, CONTROL_EXITING };

enum {
    CONTROL_EXEC_STDIN = 1, /* that descriptor is sent */
    CONTROL_EXEC_STDOUT = 2,
    CONTROL_EXEC_STDERR = 4,
    CONTROL_EXEC_TERMINAL = 8,
};

enum {
    CONTROL_ARGS = 4,
    CONTROL_FDS_MAX = 32,
    CONTROL_DATA_MAX = 2048,
    CONTROL_PS_MAX = CONTROL_DATA_MAX / sizeof(int32_t) - 1, /* pids in one reply */
    CONTROL_PROCESS_MAX = 4 << 20,                       /* bytes of a process.json */
};

struct control_request {
    uint32_t magic;
    uint32_t op;
    int32_t args[CONTROL_ARGS];
};

enum control_kind { CONTROL_REPLY = 1, CONTROL_EXITED };

struct control_reply {
    uint32_t magic;
    uint32_t kind;
    int32_t result; /* ≥ 0, or −errno with the message in data; CONTROL_EXITED: wait status */
    uint32_t size;  /* bytes of data */
    char data[CONTROL_DATA_MAX];
};

/* --- client (control_client.c) --- */

/* Listens at the container's control socket. Return: socket, −errno with a message. */
MUST_CHECK int control_listen(int state_dir, struct errmsg *e);
/* Connects to it. Return: socket, −errno (−ECONNREFUSED, −ENOENT: no sentry). */
MUST_CHECK int control_connect(int state_dir);
/* Sends a request with descriptors. Return: 0, −errno. */
MUST_CHECK int control_send(int sock, enum control_op op, const int32_t args[CONTROL_ARGS],
                            const int *fds, unsigned fds_len);
/* Receives and checks one message. Return: 0; −EPIPE when the sentry is gone; −EPROTO. */
MUST_CHECK int control_recv(int sock, struct control_reply *ret_reply);
/* One request and its reply. timeout_ms: −1 for none. Return: the reply's result (with its message
 * in e when negative), −EPIPE, −ETIMEDOUT, −errno. */
MUST_CHECK int control_call(int state_dir, enum control_op op, const int32_t args[CONTROL_ARGS],
                            int timeout_ms, struct errmsg *e);
/* Guest pids of the container. Return: count. Owns: caller frees *ret_pids with mem_free. */
MUST_CHECK int control_ps(int state_dir, int32_t **ret_pids, struct errmsg *e);
