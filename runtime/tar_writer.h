/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a tar archive in the pax format (POSIX.1-2001), in which names, sizes, owners and attributes have no limits. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#include "platform/base/buf.h"
#include "platform/base/compiler.h"

struct tar_writer {
    int fd;          /* borrowed */
    struct buf pax;  /* records of the next entry */
    uint64_t left;   /* bytes of content that the last entry still wants */
    uint64_t padding; /* … and after them */
};

/* An entry's head. path has no leading slash. link: target of a symbolic link, or with hard the path of the file of which this is
 * another name. st: mode, owner, times, size (regular files without hard), device numbers.
 * Records added with tar_add_record since the last entry go with it. Return: 0, −errno. */
struct tar_entry {
    const char *path, *link;
    bool hard;
    const struct stat *st;
};

void tar_init(struct tar_writer *w, int fd);
void tar_free(struct tar_writer *w);
/* A pax record, such as an extended attribute, for the next entry. Out of memory is told by tar_put. */
void tar_add_record(struct tar_writer *w, const char *key, const void *value, size_t size);
/* Return: 0, −errno; −ENAMETOOLONG never. */
MUST_CHECK int tar_put(struct tar_writer *w, const struct tar_entry *entry);
/* Content of the last entry, as much as its size said and no more. Return: 0, −errno. */
MUST_CHECK int tar_write(struct tar_writer *w, const void *data, size_t size);
/* Fills up what the last entry's content lacks (a file that became shorter) with zeros. Return: 0, −errno. */
MUST_CHECK int tar_finish_entry(struct tar_writer *w);
/* Ends the archive. Return: 0, −errno. */
MUST_CHECK int tar_finish(struct tar_writer *w);
