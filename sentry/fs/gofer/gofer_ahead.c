/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files ahead: who goes through a directory file by file (grep -r, tar, git add) pays one round trip for up to 15
 * of them. What is fetched are descriptors, not contents: they are the file itself, so that nothing can be out of date.
 *
 * A directory whose files are opened in the order of its names in the cache (that of its listing), forwards or backwards,
 * has the next ones opened along with the one that is asked for. Files opened ahead count in their directory until somebody
 * opens them; a directory with many such is not looked ahead in until it is listed again, so that a wrong guess costs
 * little. */
#include "sentry/fs/gofer/gofer_fs_priv.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"

enum {
    GOFER_AHEAD_NEAR = 32,      /* names between two files that are still opened in order */
    GOFER_AHEAD_UNUSED_MAX = 16 /* files opened ahead in vain before a directory is given up */
};

/* What one request needs, away from the fiber's small stack. The names are copies: sending may park, and they may change. */
struct gofer_ahead {
    struct codec_str names[WIRE_OPEN_MANY_MAX];
    struct gofer_opened opened[WIRE_OPEN_MANY_MAX];
    char text[WIRE_OPEN_MANY_MAX][WIRE_NAME_MAX];
};

/* The hashed name by which the file is opened ahead; NULL: none in a directory whose node is known. */
static struct dentry *gofer_ahead_name(const struct gofer_inode *gi)
{
    struct dentry *d;
    list_for_each_entry (d, &gi->inode.dentries, alias) {
        if (d->hash_pprev && d->parent != d && d->parent->inode &&
            to_gofer_inode(d->parent->inode)->node != WIRE_NODE_NONE)
            return d;
    }
    return NULL;
}

/* The name beside d in its directory. Return: NULL at the end. */
static struct dentry *gofer_ahead_beside(const struct dentry *d, bool back)
{
    struct list *l = back ? d->sibling.prev : d->sibling.next;
    return l == &d->parent->children ? NULL : list_entry(l, struct dentry, sibling);
}

static bool gofer_ahead_is_file(const struct dentry *d)
{
    return d->inode && S_ISREG(d->inode->mode);
}

/* Looks for the file opened last among the names before (back) or after d. Return: whether it is near; also when d is
 * the first file there is on that side, and none has been opened. */
static bool gofer_ahead_follows(const struct dentry *d, uint64_t last, bool back)
{
    bool first = true;
    for (unsigned n = 0; n < GOFER_AHEAD_NEAR; n++) {
        d = gofer_ahead_beside(d, back);
        if (!d)
            return first && !last;
        if (!gofer_ahead_is_file(d))
            continue;
        first = false;
        if (last && to_gofer_inode(d->inode)->host_ino == last)
            return true;
    }
    return false;
}

static void gofer_ahead_add(struct gofer_ahead *a, unsigned i, const struct dentry *d)
{
    BUG_ON(d->name_len > WIRE_NAME_MAX);
    memcpy(a->text[i], d->name, d->name_len);
    a->names[i] = (struct codec_str){.data = a->text[i], .size = d->name_len};
}

/* Chooses what to open along with d. Return: how many names, d's first. */
static unsigned gofer_ahead_choose(struct gofer_ahead *a, const struct dentry *d, bool back, unsigned max)
{
    unsigned len = 0, seen = 0;
    gofer_ahead_add(a, len++, d);
    while (len < max && seen++ < 4 * GOFER_AHEAD_NEAR && (d = gofer_ahead_beside(d, back))) {
        if (!gofer_ahead_is_file(d) || !d->inode->size || gofer_cache_peek(to_gofer_inode(d->inode)) >= 0)
            continue;
        gofer_ahead_add(a, len++, d);
    }
    return len;
}

/* Takes what has come. Return: the descriptor of gi, or −1 when it did not come along. */
static int gofer_ahead_take(struct gofer_inode *gi, struct gofer_inode *dir, struct gofer_opened *opened, int len)
{
    struct gofer_sb *gs = gofer_sb_of(&gi->inode);
    int ret = -1;
    for (int i = 0; i < len; i++) {
        if (opened[i].fd < 0)
            continue;
        struct gofer_inode *found = gofer_fs_adopt(gs, &opened[i].entry);
        if (found == gi && ret < 0) {
            ret = opened[i].fd;
        } else if (!found || gofer_cache_peek(found) >= 0) {
            host_close(opened[i].fd);
        } else {
            gofer_cache_add(found, opened[i].fd, false);
            found->ahead = true;
            dir->ahead_unused++;
        }
    }
    return ret;
}

int gofer_ahead_open(struct gofer_inode *gi)
{
    struct gofer_sb *gs = gofer_sb_of(&gi->inode);
    struct dentry *d = gofer_ahead_name(gi);
    if (!d)
        return gofer_fs_open(gi, O_RDONLY);
    struct gofer_inode *dir = to_gofer_inode(d->parent->inode);
    uint64_t last = dir->ahead_last;
    unsigned room = MIN(gofer_cache_room(), (unsigned)WIRE_OPEN_MANY_MAX);
    unsigned len = 0;
    dir->ahead_last = gi->host_ino;
    if (dir->ahead_unused >= GOFER_AHEAD_UNUSED_MAX || room < 2)
        return gofer_fs_open(gi, O_RDONLY);
    /* After the one before comes the one behind, and the other way round. */
    bool forward = gofer_ahead_follows(d, last, true);
    CLEANUP_FREE struct gofer_ahead *a = NULL;
    if ((forward || gofer_ahead_follows(d, last, false)) && (a = NEW(struct gofer_ahead)))
        len = gofer_ahead_choose(a, d, !forward, room);
    if (len < 2)
        return gofer_fs_open(gi, O_RDONLY);
    inode_ref(&dir->inode);
    uint64_t node = dir->node;
    /* Where others may remove a file, its node keeps it reachable. */
    int count = gofer_client_open_many(gs->client, node, a->names, len, gs->share == GOFER_SHARED, a->opened);
    int fd = count > 0 ? gofer_ahead_take(gi, dir, a->opened, count) : -1;
    inode_unref(&dir->inode);
    /* A rename or a refusal came between: the usual way finds out what. */
    return fd >= 0 ? fd : gofer_fs_open(gi, O_RDONLY);
}

void gofer_ahead_used(struct gofer_inode *gi)
{
    if (likely(!gi->ahead))
        return;
    gi->ahead = false;
    const struct dentry *d = gofer_ahead_name(gi);
    struct gofer_inode *dir = d ? to_gofer_inode(d->parent->inode) : NULL;
    if (!dir)
        return;
    if (dir->ahead_unused)
        dir->ahead_unused--;
    dir->ahead_last = gi->host_ino;
}

void gofer_ahead_listed(struct gofer_inode *dir)
{
    dir->ahead_unused = 0;
    dir->ahead_last = 0;
}
