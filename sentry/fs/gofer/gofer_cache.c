/* SPDX-License-Identifier: Apache-2.0 */
/* Host descriptors of gofer files: opened when first needed, shared by all open files of an inode,
 * kept for a while after the last close, bounded in number over all file systems.
 *
 * An inode with open files is on the busy list, one without on the idle list; both hold only
 * inodes that have a descriptor. Every descriptor can be had again from the gofer (a file whose
 * last name goes while it is in use has a node), so that any that is not pinned may be closed. */
#include "sentry/fs/gofer/gofer_fs_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "sentry/fs/gofer/gofer_lane.h"

enum {
    GOFER_CACHE_IDLE_MAX = 4096, /* inodes whose descriptors outlive the last close */
    GOFER_CACHE_MIN = 64         /* descriptors that may be open however low RLIMIT_NOFILE is */
};

static struct {
    struct list idle, busy; /* (k) of gofer_inode.cache_link, least recently opened first */
    unsigned idle_len;      /* (k) */
    unsigned fds;           /* (k) */
    unsigned fds_max;       /* (k) 0: not known yet */
} gofer_cache = {.idle = LIST_INIT(gofer_cache.idle), .busy = LIST_INIT(gofer_cache.busy)};

int gofer_cache_peek(const struct gofer_inode *gi)
{
    return gi->fd_rw >= 0 ? gi->fd_rw : gi->fd_ro;
}

static void gofer_cache_unlist(struct gofer_inode *gi)
{
    if (list_empty(&gi->cache_link))
        return;
    if (!gi->opens)
        gofer_cache.idle_len--;
    list_del(&gi->cache_link);
}

static void gofer_cache_list(struct gofer_inode *gi)
{
    if (gofer_cache_peek(gi) < 0)
        return;
    list_add_tail(gi->opens ? &gofer_cache.busy : &gofer_cache.idle, &gi->cache_link);
    if (!gi->opens)
        gofer_cache.idle_len++;
}

static void gofer_cache_close(struct gofer_inode *gi)
{
    gofer_cache_unlist(gi);
    gofer_cache.fds -= (gi->fd_ro >= 0) + (gi->fd_rw >= 0);
    host_close(gi->fd_ro);
    host_close(gi->fd_rw);
    gi->fd_ro = gi->fd_rw = -1;
    gi->ahead = false;
}

/* Closes a descriptor of the first inode on l that is not pinned. Return: whether there was one. */
static bool gofer_cache_evict(struct list *l)
{
    struct gofer_inode *gi;
    list_for_each_entry (gi, l, cache_link) {
        if (gi->pins || gi->keep_open)
            continue;
        /* What the descriptor knows better than the cached attributes must not get lost. Events of
         * our own writes are older than what it says now. */
        if (gi->io_dirty) {
            gofer_watch_drain(gofer_sb_of(&gi->inode)->watch, true);
            gofer_cache_fstat(gi);
        }
        gofer_cache_close(gi);
        return true;
    }
    return false;
}

/* Descriptors that may be held. The other half of the process's limit is for everything else. */
static unsigned gofer_cache_max(void)
{
    if (unlikely(!gofer_cache.fds_max)) {
        struct rlimit limit = {.rlim_cur = 1024};
        (void)getrlimit(RLIMIT_NOFILE, &limit);
        gofer_cache.fds_max = (unsigned)MIN(limit.rlim_cur / 2, (rlim_t)1 << 20);
        gofer_cache.fds_max = MAX(gofer_cache.fds_max, (unsigned)GOFER_CACHE_MIN);
    }
    return gofer_cache.fds_max;
}

static void gofer_cache_trim(void)
{
    unsigned max = MIN(gofer_cache_max() / 2, (unsigned)GOFER_CACHE_IDLE_MAX);
    while (gofer_cache.idle_len > max && gofer_cache_evict(&gofer_cache.idle))
        ;
}

/* Before a descriptor is fetched: running into RLIMIT_NOFILE would lose it on receipt. */
static int gofer_cache_make_room(void)
{
    while (gofer_cache.fds >= gofer_cache_max()) {
        if (!gofer_cache_evict(&gofer_cache.idle) && !gofer_cache_evict(&gofer_cache.busy))
            return -ENFILE;
    }
    return 0;
}

/* Opens the file. Another fiber may have done the same meanwhile: then its descriptor stays. */
static int gofer_cache_fetch(struct gofer_inode *gi, bool write)
{
    int err = gofer_cache_make_room();
    if (err < 0)
        return err;
    int fd = write ? gofer_fs_open(gi, O_RDWR) : gofer_ahead_open(gi);
    if (fd < 0)
        return fd;
    int *place = write ? &gi->fd_rw : &gi->fd_ro;
    if (*place >= 0) {
        host_close(fd);
        return *place;
    }
    gofer_cache_unlist(gi);
    *place = fd;
    gofer_cache.fds++;
    gofer_cache_list(gi);
    return fd;
}

int gofer_cache_get(struct gofer_inode *gi, bool write)
{
    gi->pins++;
    int fd = write ? gi->fd_rw : gofer_cache_peek(gi);
    if (unlikely(fd < 0))
        fd = gofer_cache_fetch(gi, write);
    if (fd < 0)
        gi->pins--;
    return fd;
}

int gofer_cache_get_read_only(struct gofer_inode *gi)
{
    gi->pins++;
    int fd = gi->fd_ro >= 0 ? gi->fd_ro : gofer_cache_fetch(gi, false);
    if (fd < 0)
        gi->pins--;
    return fd;
}

void gofer_cache_put(struct gofer_inode *gi)
{
    BUG_ON(!gi->pins);
    gi->pins--;
}

bool gofer_cache_has_room(void)
{
    return gofer_cache_make_room() >= 0;
}

unsigned gofer_cache_room(void)
{
    return gofer_cache.fds < gofer_cache_max() ? gofer_cache_max() - gofer_cache.fds : 0;
}

void gofer_cache_add(struct gofer_inode *gi, OWNS int fd, bool write)
{
    int *place = write ? &gi->fd_rw : &gi->fd_ro;
    if (*place >= 0) {
        host_close(fd);
        return;
    }
    gofer_cache_unlist(gi);
    *place = fd;
    gofer_cache.fds++;
    gofer_cache_list(gi);
    gofer_cache_trim();
}

void gofer_cache_opened(struct gofer_inode *gi)
{
    gofer_cache_unlist(gi);
    gi->opens++;
    gofer_cache_list(gi);
}

void gofer_cache_closed(struct gofer_inode *gi)
{
    BUG_ON(!gi->opens);
    if (gi->opens > 1) {
        gi->opens--;
        return;
    }
    gofer_cache_unlist(gi);
    gi->opens--;
    gofer_cache_list(gi);
    gofer_cache_trim();
}

void gofer_cache_drop(struct gofer_inode *gi)
{
    BUG_ON(gi->pins || gi->opens);
    gofer_cache_close(gi);
}

bool gofer_cache_fstat(struct gofer_inode *gi)
{
    struct stat st;
    int fd = gofer_cache_peek(gi);
    /* The bare call: the C library's goes through newfstatat, which takes a path. */
    if (fd < 0 || syscall(SYS_fstat, fd, &st) < 0)
        return false;
    struct inode *inode = &gi->inode;
    gi->posted = gi->posted && gofer_lane_busy(gofer_sb_of(inode)->client);
    if (unlikely(gi->posted)) {
        /* What was just written counts; the rest is asked for again when the host has done what was sent. */
        inode->size = (uint64_t)st.st_size;
        inode->blocks = (uint64_t)st.st_blocks;
        gofer_quota_note(gi);
        return true;
    }
    if (inode->ctime.tv_sec != st.st_ctim.tv_sec || inode->ctime.tv_nsec != st.st_ctim.tv_nsec)
        gofer_fs_new_ctime(gi);
    /* Owners can't be learnt here: in the sentry's user namespace they all look unmapped. */
    inode->mode = (inode->mode & S_IFMT) | (st.st_mode & 07777);
    inode->nlink = st.st_nlink;
    inode->size = (uint64_t)st.st_size;
    inode->blocks = (uint64_t)st.st_blocks;
    inode->atime = st.st_atim;
    inode->mtime = st.st_mtim;
    inode->ctime = st.st_ctim;
    gi->stale = gi->io_dirty = false;
    gofer_quota_note(gi);
    return true;
}
