/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at everything below a directory that a container has filled. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "platform/base/compiler.h"

struct tree_entry {
    int dir;          /* descriptor of its directory */
    const char *name; /* in dir */
    const char *path; /* from where the walk began, without a leading slash */
    const struct stat *st;
};

/* Calls fn for every entry below the directory root, parents before what is in them, in no other order, and however deep. Links are
 * not followed, other file systems not entered. fn returns 0, or −errno to stop.
 * Return: 0, what fn returned, −ENOMEM, −errno. */
MUST_CHECK int tree_walk(int root, int (*fn)(void *arg, const struct tree_entry *entry), void *arg);

/* What is below root, and the directory itself, takes on disk, as du counts. Return: 0, −errno. */
MUST_CHECK int tree_usage(int root, uint64_t *ret_size, uint64_t *ret_names);
