/* SPDX-License-Identifier: Apache-2.0 */
/* What a creating command hands to the sentry and the gofer it starts: descriptors at fixed numbers,
 * a sealed parameter file, and the messages of the start-up socket. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

/* Descriptors of `cloister boot`. Those that a container does not use are closed. */
enum {
    BOOT_FD_PARAMS = 3, /* once read, the place of: */
    BOOT_FD_SELF = BOOT_FD_PARAMS, /* the sentry's own /proc/self/fd, to open a file anew */
    BOOT_FD_SOCK,       /* start-up socket */
    BOOT_FD_CONTROL,    /* listening control socket */
    BOOT_FD_GOFER_SOCK,
    BOOT_FD_GOFER_SHM,
    BOOT_FD_PROC,       /* root of a procfs of the sentry's pid namespace, mounted nowhere */
    BOOT_FD_LOG,
    BOOT_FD_STDIO,      /* three of them */
    BOOT_FD_CONSOLE = BOOT_FD_STDIO + 3, /* slave of the host pty */
    BOOT_FD_PRESERVED,  /* preserved_len of them, then doors_len to enter the container's cgroup and
                         * doors_len to leave it: a "0" written moves the writer */
};

/* Descriptors of `cloister gofer`. */
enum {
    GOFER_FD_PARAMS = 3,
    GOFER_FD_SOCK,
    GOFER_FD_SHM,
    GOFER_FD_READY,     /* write end of a pipe: a byte 0 when it serves, or 'E' and a message */
    GOFER_FD_PROC_SELF, /* detached /proc/self/fd of the gofer */
    GOFER_FD_LOG,
    GOFER_FD_TREES,     /* trees_len of them */
};

/* The sentry as every process outside sees it: one user of its own, and nobody inside. */
enum {
    BOOT_UID_INSIDE = 65534,
    BOOT_UID_BASE = 0x70000000, /* plus the sentry's host pid */
};

enum { BOOTPROTO_PRESERVED_MAX = 1024, BOOTPROTO_DOORS_MAX = 32 };

struct boot_params {
    bool strace, log_json, have_log;
    bool foreground; /* the container lives no longer than the start-up socket's other end */
    bool terminal;
    bool overlay_root, overlay_all; /* as in struct sentry_overlay */
    bool overlay_memory;    /* its layers are in memory; else the gofer's last tree has them */
    uint64_t overlay_size;  /* bytes; 0: no limit of their own */
    uint64_t overlay_used, overlay_names; /* what they take of it now */
    uint32_t log_level; /* enum log_level */
    uint16_t console_rows, console_cols;
    uint32_t stdio_mask;    /* which of the three BOOT_FD_STDIO are open */
    uint32_t preserved_len;
    uint32_t doors_len;
    uint32_t listen_fds; /* of the preserved ones, those that LISTEN_FDS speaks of */
    const char *id, *home, *cgroup_path;
    const char *config; /* text of config.json */
    size_t config_size;
};

/* Return: a sealed memfd with the parameters, or −errno. */
MUST_CHECK int boot_params_write(const struct boot_params *params);
/* Reads them back. Strings live in *ret_memory, which the caller frees with mem_free.
 * Return: 0, −EINVAL, −errno. */
MUST_CHECK int boot_params_read(int fd, struct boot_params *ret_params, char **ret_memory);

struct gofer_params {
    bool log_json, have_log, debug;
    bool immutable; /* may set the inode flags that need CAP_LINUX_IMMUTABLE */
    uint32_t log_level;
    uint32_t trees_len;
    const unsigned char *read_only; /* one byte a tree */
};
MUST_CHECK int gofer_params_write(const struct gofer_params *params);
MUST_CHECK int gofer_params_read(int fd, struct gofer_params *ret_params, char **ret_memory);

/* Messages of the start-up socket (SOCK_SEQPACKET). */
enum boot_message_type {
    BOOT_GO = 1,     /* creator: ids are mapped, limits are set; go on */
    BOOT_ZYGOTE,     /* sentry: a zygote exists; carries its pidfd, and error 1 if it is in the
                      * container's cgroup already */
    BOOT_ZYGOTE_OK,  /* creator: it is in the container's cgroup */
    BOOT_READY,      /* sentry: the container is built */
    BOOT_ERROR,      /* sentry: it is not; text says why */
    BOOT_COMMIT,     /* creator: the state file says so too; live on without me */
    BOOT_COMMITTED,  /* sentry: so be it */
};

struct boot_message {
    uint32_t type;
    int32_t error; /* BOOT_ERROR: −errno */
    char text[1024];
};

/* Sends a message, with fd if it is not −1. Return: 0, −errno. */
MUST_CHECK int boot_send(int sock, enum boot_message_type type, int error, const char *text, int fd);
/* Receives one; *ret_fd is −1 if none came. Return: 0; −EPIPE when the peer is gone; −EPROTO. */
MUST_CHECK int boot_recv(int sock, struct boot_message *ret_message, int *ret_fd);
