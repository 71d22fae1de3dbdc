/* SPDX-License-Identifier: Apache-2.0 */
/* Reading events of fanotify, for its tests. */
#pragma once

#include "tests/guest/guest.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#ifndef FAN_REPORT_TARGET_FID
#define FAN_REPORT_TARGET_FID 0x1000
#endif
#ifndef FAN_MARK_IGNORE
#define FAN_MARK_IGNORE 0x400
#endif
#ifndef FAN_MARK_EVICTABLE
#define FAN_MARK_EVICTABLE 0x200
#endif
#ifndef FAN_RENAME
#define FAN_RENAME 0x10000000
#endif

static char events[65536];
static ssize_t events_len, events_at;

__attribute__((unused)) static void forget_events(void)
{
    events_len = events_at = 0;
}

/* The next event of group fd. */
__attribute__((unused)) static struct fanotify_event_metadata *next_event(int fd)
{
    if (events_at == events_len) {
        events_len = OK(read(fd, events, sizeof(events)));
        events_at = 0;
    }
    struct fanotify_event_metadata *e = (void *)(events + events_at);
    EQ(e->vers, FANOTIFY_METADATA_VERSION);
    EQ(e->metadata_len, sizeof(*e));
    CHECK(e->event_len >= sizeof(*e) && events_at + e->event_len <= events_len);
    events_at += e->event_len;
    return e;
}

__attribute__((unused)) static void no_event(int fd)
{
    EQ(events_at, events_len);
    errno = 0;
    ssize_t n = read(fd, events, sizeof(events));
    if (n > 0)
        FAIL("an event %llx that should not be", (unsigned long long)((struct fanotify_event_metadata *)events)->mask);
    EQ(errno, EAGAIN);
}

__attribute__((unused)) static ino_t ino_of(const char *path)
{
    struct stat st;
    OK(lstat(path, &st));
    return st.st_ino;
}

/* The next event has these bits, is ours, and brings a descriptor of the file. Value: the descriptor, or −1. */
__attribute__((unused)) static int expect(int fd, uint64_t mask, const char *path)
{
    struct fanotify_event_metadata *e = next_event(fd);
    struct stat st;
    if (e->mask != mask)
        FAIL("event %llx instead of %llx", (unsigned long long)e->mask, (unsigned long long)mask);
    EQ(e->event_len, sizeof(*e));
    CHECK(e->fd >= 0);
    OK(fstat(e->fd, &st));
    EQ(st.st_ino, ino_of(path));
    return e->fd;
}

__attribute__((unused)) static void expect_close(int fd, uint64_t mask, const char *path)
{
    OK(close(expect(fd, mask, path)));
}

__attribute__((unused)) static void touch(const char *path)
{
    OK(close(OK(open(path, O_CREAT | O_RDWR, 0600))));
}
