/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces: the names of unix sockets outside the file system, ports, the loopback link. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "platform/base/ref.h"
#include "sentry/core/userns.h"

struct inet_ports;

enum { NETNS_UNIX_BUCKETS = 64 };

struct netns {
    struct ref ref;
    struct userns *userns;     /* (i) owner, referenced; NULL: the initial one */
    struct ucharge charge;     /* (i) */
    uint64_t ino;              /* (i) of /proc/PID/ns/net */
    bool lo_up;                /* (k) loopback is up, with 127.0.0.1/8 and ::1/128 */
    bool lo_has_addr4;         /* (k) 127.0.0.1/8 was given to it while it was down; up, it always has it */
    struct list unix_names[NETNS_UNIX_BUCKETS]; /* (k) abstract names: of unix_sock.name_link */
    struct list unix_all;      /* (k) every unix socket: /proc/net/unix */
    uint32_t unix_autobind;    /* (k) number tried next */
    struct inet_ports *ports;  /* (k) owned, on demand */
};

/* lo_up: a container's own namespace starts with its loopback up; one that a guest unshares does not.
 * Return: 0 or −ENOMEM. */
MUST_CHECK int netns_new(struct userns *userns, bool lo_up, struct netns **ret_ns);
/* Counts ns for the user uid who made it. Return: 0, −ENOSPC, −ENOMEM. */
MUST_CHECK int netns_charge(struct netns *ns, uint32_t uid);
struct netns *netns_ref(struct netns *ns);
void netns_unref(struct netns *ns); /* NULL is fine */
