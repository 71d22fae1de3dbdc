/* SPDX-License-Identifier: Apache-2.0 */
/* Host notifications about shared trees. */
#include "sentry/fs/gofer/gofer_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>
#include <x86intrin.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/fs/gofer/gofer_client_priv.h"
#include "sentry/fs/gofer/gofer_fs_priv.h"
#include "sentry/vfs/acl.h"

enum {
    GOFER_WATCH_TABLE = 1024,
    GOFER_WATCH_BUFFER = 8192,
    GOFER_WATCH_FRESH_CYCLES =
        3000 /* about a microsecond: the components of one walk share one read */
};

#define GOFER_WATCH_APPEARED (IN_CREATE | IN_MOVED_TO)
#define GOFER_WATCH_GONE (IN_DELETE | IN_MOVED_FROM)

/* All (k). */
struct gofer_watch {
    int fd;
    uint64_t events;     /* of others */
    uint64_t drained_at; /* cycles */
    struct list expects; /* of gofer_expect: changes of our own that are under way */
    struct gofer_inode
        *table[GOFER_WATCH_TABLE]; /* watched directories by number; several may share one */
};

int gofer_watch_open(struct gofer_client *c, OWNS int fd)
{
    if (c->tree_watch) {
        host_close(fd);
        return 0;
    }
    struct gofer_watch *w = NEW(struct gofer_watch);
    /* Reading must never wait, whatever the gofer has sent. */
    int err = w ? (int)host_ret(fcntl(fd, F_SETFL, O_NONBLOCK)) : -ENOMEM;
    if (err < 0) {
        host_close(fd);
        mem_free(w);
        return err;
    }
    w->fd = fd;
    list_init(&w->expects);
    c->tree_watch = w;
    return 0;
}

void gofer_watch_free(struct gofer_watch *w)
{
    if (!w)
        return;
    host_close(w->fd);
    mem_free(w);
}

uint64_t gofer_watch_events(const struct gofer_watch *w)
{
    return w ? w->events : 0;
}

/* ---- the table ---- */

static struct gofer_inode **gofer_watch_bucket(struct gofer_watch *w, uint32_t wd)
{
    return &w->table[wd % GOFER_WATCH_TABLE];
}

static struct gofer_watch *gofer_watch_of(const struct gofer_inode *gi)
{
    return gofer_sb_of(&gi->inode)->client->tree_watch;
}

static void gofer_watch_unlink(struct gofer_watch *w, struct gofer_inode *gi)
{
    struct gofer_inode **at = gofer_watch_bucket(w, gi->wd);
    while (*at != gi)
        at = &(*at)->watch_next;
    *at = gi->watch_next;
    gi->wd = 0;
}

/* The cached dentry of a directory: it has one name at most. */
static struct dentry *gofer_watch_dentry(const struct gofer_inode *gi)
{
    if (list_empty(&gi->inode.dentries))
        return NULL;
    return list_first(&gi->inode.dentries, struct dentry, alias);
}

void gofer_watch_distrust(struct gofer_inode *gi)
{
    struct dentry *dir = gofer_watch_dentry(gi), *child, *next;
    gi->stale = gi->owner_stale = true;
    gi->complete = false;
    gi->events++;
    if (!dir)
        return;
    dir->dir_seq++;
    dentry_ref(dir);
    list_for_each_entry_safe (child, next, &dir->children, sibling) {
        if (!child->mounted)
            dentry_invalidate(child);
    }
    dentry_unref(dir);
}

void gofer_watch_set(struct gofer_inode *gi, uint32_t wd)
{
    struct gofer_watch *w = gofer_watch_of(gi);
    if (!w || !wd || gi->wd == wd)
        return;
    if (gi->wd)
        gofer_watch_unlink(w, gi);
    /* Names that were cached while nobody watched may be wrong by now. */
    struct dentry *dir = gofer_watch_dentry(gi);
    if (dir && !list_empty(&dir->children))
        gofer_watch_distrust(gi);
    gi->wd = wd;
    gi->watch_next = *gofer_watch_bucket(w, wd);
    *gofer_watch_bucket(w, wd) = gi;
}

static bool gofer_watch_known(struct gofer_watch *w, uint32_t wd)
{
    const struct gofer_inode *gi = *gofer_watch_bucket(w, wd);
    while (gi && gi->wd != wd)
        gi = gi->watch_next;
    return gi != NULL;
}

void gofer_watch_drop(struct gofer_inode *gi)
{
    struct gofer_watch *w = gofer_watch_of(gi);
    uint32_t wd = gi->wd;
    if (!w || !wd)
        return;
    gofer_watch_unlink(w, gi);
    /* Another tree may show the same directory. Should the gofer hand the number out again at this
     * very moment, the host says IN_IGNORED and nothing is trusted. */
    if (!gofer_watch_known(w, wd))
        gofer_client_release(gofer_sb_of(&gi->inode)->client, WIRE_RELEASE_WATCH | wd);
}

/* ---- expected events ---- */

void gofer_watch_expect(struct gofer_expect *e, struct gofer_inode *dir, const char *name,
                        uint32_t mask)
{
    struct gofer_watch *w = gofer_watch_of(dir);
    *e = (struct gofer_expect){.wd = dir->wd, .mask = mask, .name = name};
    list_init(&e->link);
    if (w && dir->wd)
        list_add_tail(&w->expects, &e->link);
}

void gofer_watch_done(struct gofer_expect *e, unsigned len)
{
    for (unsigned i = 0; i < len; i++)
        list_del(&e[i].link);
}

static bool gofer_watch_is_own(struct gofer_watch *w, uint32_t wd, uint32_t mask, const char *name)
{
    struct gofer_expect *e;
    list_for_each_entry (e, &w->expects, link) {
        if (e->wd == wd && (e->mask & mask) && strcmp(e->name, name) == 0) {
            if (!e->keep)
                list_del(&e->link);
            return true;
        }
    }
    return false;
}

/* ---- events ---- */

/* Something happened to the entry name of the directory gi. */
static void gofer_watch_entry(struct gofer_inode *gi, uint32_t mask, const char *name, size_t len)
{
    struct dentry *dir = gofer_watch_dentry(gi);
    bool moved = mask & (GOFER_WATCH_APPEARED | GOFER_WATCH_GONE);
    gi->events++;
    if (moved)
        gi->stale = gi->others = true;
    if (!dir)
        return;
    struct dentry *d = dentry_find(dir, name, len);
    if (d && d->inode) {
        struct gofer_inode *child = to_gofer_inode(d->inode);
        child->stale = true;
        if (mask & IN_ATTRIB) {
            child->owner_stale = true;
            child->no_capability = false;
            acl_forget(d->inode);
        }
        child->events++;
    }
    if (moved) {
        /* Look-ups that are under way start again. */
        dir->dir_seq++;
        if (d && !d->mounted)
            dentry_invalidate(d);
        else if (!d && (mask & GOFER_WATCH_APPEARED))
            dir->child_evictions++;
    }
    dentry_unref(d);
}

/* Next inode of a chain that this event has not been told to. What is done with it may take any
 * other off the chain. wd 0: of any number. */
static struct gofer_inode *gofer_watch_next(const struct gofer_watch *w, struct gofer_inode *gi,
                                            uint32_t wd)
{
    while (gi && (gi->watch_seen == w->events || (wd && gi->wd != wd)))
        gi = gi->watch_next;
    if (gi)
        gi->watch_seen = w->events;
    return gi;
}

static void gofer_watch_event(struct gofer_watch *w, uint32_t wd, uint32_t mask, const char *name)
{
    size_t len = strlen(name);
    if (len && gofer_watch_is_own(w, wd, mask, name))
        return;
    w->events++;
    struct gofer_inode *gi;
    while ((gi = gofer_watch_next(w, *gofer_watch_bucket(w, wd), wd))) {
        if (mask & IN_IGNORED) {
            gofer_watch_unlink(w, gi);
            gofer_client_release(gofer_sb_of(&gi->inode)->client, WIRE_RELEASE_WATCH | wd);
        } else if (len) {
            gofer_watch_entry(gi, mask, name, len);
        } else {
            gi->stale = gi->owner_stale = true;
            gi->no_capability = false;
            acl_forget(&gi->inode);
            gi->events++;
        }
    }
}

/* The host has dropped events. */
static void gofer_watch_overflow(struct gofer_watch *w)
{
    w->events++;
    for (unsigned i = 0; i < GOFER_WATCH_TABLE; i++) {
        struct gofer_inode *gi;
        while ((gi = gofer_watch_next(w, w->table[i], 0))) {
            gi->others = true;
            gofer_watch_distrust(gi);
        }
    }
}

/* Takes the events of one read apart. Return: false when they are not what an inotify descriptor
 * gives. */
static bool gofer_watch_parse(struct gofer_watch *w, const char *data, size_t size)
{
    while (size) {
        struct inotify_event ev;
        if (size < sizeof(ev))
            return false;
        memcpy(&ev, data, sizeof(ev));
        const char *name = ev.len ? data + sizeof(ev) : "";
        if (ev.len > size - sizeof(ev) || (ev.len && !memchr(name, '\0', ev.len)))
            return false;
        if (ev.mask & IN_Q_OVERFLOW)
            gofer_watch_overflow(w);
        else if (ev.wd > 0)
            gofer_watch_event(w, (uint32_t)ev.wd, ev.mask, name);
        data += sizeof(ev) + ev.len;
        size -= sizeof(ev) + ev.len;
    }
    return true;
}

void gofer_watch_drain(struct gofer_watch *w, bool now)
{
    static char buffer[GOFER_WATCH_BUFFER] ALIGNED(8);
    if (!w)
        return;
    uint64_t cycles = __rdtsc();
    if (!now && cycles - w->drained_at < GOFER_WATCH_FRESH_CYCLES)
        return;
    w->drained_at = cycles;
    for (;;) {
        ssize_t n = read(w->fd, buffer, sizeof(buffer));
        if (n <= 0)
            return;
        if (!gofer_watch_parse(w, buffer, (size_t)n))
            gofer_watch_overflow(w);
        /* A read that left room has emptied the queue. */
        if ((size_t)n < sizeof(buffer) - sizeof(struct inotify_event) - WIRE_NAME_MAX - 1)
            return;
    }
}
