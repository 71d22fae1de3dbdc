/* SPDX-License-Identifier: Apache-2.0 */
/* The host's notifications about shared trees: the sentry reads them itself, from an inotify
 * descriptor that it is given; the gofer adds a watch for each directory that it hands out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct srv_session;
struct wire_attr;

/* Makes the inotify descriptor, before lock-down. Without one (the host's limit is reached) shared
 * trees are not watched. */
void srv_watch_init(struct srv_session *s);
/* Return: whether fd lies on a file system of the host's own, whose every change is made by its kernel. */
MUST_CHECK bool srv_watch_is_local(int fd);
/* Decides whether a tree whose root is fd is watched: only on file systems whose every change is
 * made through this host's kernel. Return: a descriptor for the sentry, or −1. */
MUST_CHECK int srv_watch_tree(struct srv_session *s, uint32_t tree, int fd, uint32_t dev);
/* Watches the directory fd if its tree is watched, and puts the watch's number into inout_attr,
 * whose contents are taken anew after a watch was added. Return: 0 or the error of that. */
MUST_CHECK int srv_watch_add(struct srv_session *s, uint32_t tree, int fd,
                             struct wire_attr *inout_attr);
/* Ends a watch; an unknown number is ignored. */
void srv_watch_remove(struct srv_session *s, int watch);
