/* SPDX-License-Identifier: Apache-2.0 */
/* Watches on the directories of shared trees. */
#include "gofer/server/srv_watch.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/vfs.h>

#include "gofer/proto/wire.h"
#include "gofer/server/srv_handlers.h"
#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"

enum { SRV_WATCH_TABLE = 2 * WIRE_WATCHES_MAX };

/* What makes a cached name or attribute wrong. */
#define SRV_WATCH_EVENTS                                                           \
    (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_MODIFY | \
     IN_DELETE_SELF | IN_EXCL_UNLINK)

void srv_watch_init(struct srv_session *s)
{
    pthread_mutex_init(&s->watch_mu, NULL);
    s->inotify_fd = -1;
    /* The root file system alone is nobody else's: instances are few on a host. */
    if (s->trees_len < 2)
        return;
    s->watch_table = NEW_ARRAY(int, SRV_WATCH_TABLE);
    if (!s->watch_table)
        return;
    s->inotify_fd = (int)host_ret(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (s->inotify_fd < 0)
        log_debug("no inotify instance: volumes are asked anew after a while");
}

bool srv_watch_is_local(int fd)
{
    struct statfs st;
    if (fstatfs(fd, &st) < 0)
        return false;
    switch ((unsigned long)st.f_type) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case F2FS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case 0x2fc12fc1: /* ZFS */
    case 0xca451a4e: /* bcachefs */
        return true;
    default:
        return false;
    }
}

int srv_watch_tree(struct srv_session *s, uint32_t tree, int fd, uint32_t dev)
{
    if (s->inotify_fd < 0 || !srv_watch_is_local(fd))
        return -1;
    int copy = (int)host_ret(fcntl(s->inotify_fd, F_DUPFD_CLOEXEC, 0));
    if (copy < 0)
        return -1;
    pthread_mutex_lock(&s->watch_mu);
    s->watched[tree / 8] |= (uint8_t)(1u << tree % 8);
    s->watched_dev[tree] = dev;
    pthread_mutex_unlock(&s->watch_mu);
    return copy;
}

static unsigned srv_watch_home(int wd)
{
    return (unsigned)wd * 2654435761u % SRV_WATCH_TABLE;
}

/* Return: place of wd, or of the free place where it belongs. */
static unsigned srv_watch_find(const struct srv_session *s, int wd)
{
    unsigned at = srv_watch_home(wd);
    while (s->watch_table[at] && s->watch_table[at] != wd)
        at = (at + 1) % SRV_WATCH_TABLE;
    return at;
}

/* Empties a place, and moves later entries of its run so that they are still found. */
static void srv_watch_erase(struct srv_session *s, unsigned at)
{
    unsigned next = at;
    s->watch_table[at] = 0;
    s->watches--;
    for (;;) {
        next = (next + 1) % SRV_WATCH_TABLE;
        int wd = s->watch_table[next];
        if (!wd)
            return;
        unsigned home = srv_watch_home(wd);
        bool stays = at <= next ? home > at && home <= next : home > at || home <= next;
        if (!stays) {
            s->watch_table[at] = wd;
            s->watch_table[next] = 0;
            at = next;
        }
    }
}

/* Return: the number, or 0. *ret_new is set when the watch was not there before. */
static uint32_t srv_watch_take(struct srv_session *s, uint32_t tree, int fd, uint32_t dev,
                               bool *ret_new)
{
    char name[16];
    int wd = -1;
    *ret_new = false;
    pthread_mutex_lock(&s->watch_mu);
    bool wanted = s->watched[tree / 8] & (1u << tree % 8) && s->watched_dev[tree] == dev;
    /* One that exists already would be found as well, but whether it does is not known before. */
    if (wanted && s->watches < WIRE_WATCHES_MAX) {
        srv_handlers_fd_name(fd, name);
        wd = inotify_add_watch(s->inotify_fd, name, SRV_WATCH_EVENTS);
    }
    if (wd > 0) {
        unsigned at = srv_watch_find(s, wd);
        *ret_new = s->watch_table[at] == 0;
        s->watches += *ret_new;
        s->watch_table[at] = wd;
    }
    pthread_mutex_unlock(&s->watch_mu);
    return wd > 0 ? (uint32_t)wd : 0;
}

int srv_watch_add(struct srv_session *s, uint32_t tree, int fd, struct wire_attr *inout_attr)
{
    bool fresh;
    if (s->inotify_fd < 0)
        return 0;
    uint32_t wd = srv_watch_take(s, tree, fd, inout_attr->dev, &fresh);
    if (fresh) {
        /* What changed before the watch was there is not told. */
        int err = srv_handlers_attr(s, fd, "", inout_attr);
        if (err < 0)
            return err;
    }
    inout_attr->watch = wd;
    return 0;
}

void srv_watch_remove(struct srv_session *s, int watch)
{
    if (s->inotify_fd < 0 || watch <= 0)
        return;
    pthread_mutex_lock(&s->watch_mu);
    unsigned at = srv_watch_find(s, watch);
    if (s->watch_table[at]) {
        srv_watch_erase(s, at);
        /* Fails when the host has ended it already, with the directory. */
        (void)!inotify_rm_watch(s->inotify_fd, watch);
    }
    pthread_mutex_unlock(&s->watch_mu);
}
