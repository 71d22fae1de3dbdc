/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files before they are asked for. The sentry decides which; here it is made sure that the one that is asked for
 * now does not wait long for the others. */
#include "gofer/server/srv_ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "gofer/server/srv_handlers.h"
#include "platform/base/host.h"

enum { SRV_AHEAD_NS = 3 * 1000 * 1000 }; /* after so long no further file is opened: the disk or the network is slow */

/* Opens one file. Return: descriptor (and ret_entry), or −errno. */
static int srv_ahead_open(struct srv_call *call, struct srv_node *dir, const char *name, uint32_t flags,
                          struct wire_entry *ret_entry)
{
    struct srv_session *s = call->session;
    CLEANUP_CLOSE int fd = srv_handlers_hides(dir, name) ? -ENOENT : srv_handlers_open_child(dir->fd, name);
    if (fd < 0)
        return fd;
    int err = srv_handlers_attr(s, fd, "", &ret_entry->attr);
    if (err < 0)
        return err;
    if (!S_ISREG(ret_entry->attr.mode))
        return -EINVAL;
    /* Nobody asked for most of these: somebody else's lease is not waited for. */
    int file = srv_handlers_reopen(s, fd, O_RDONLY | O_NONBLOCK);
    if (file < 0 || !(flags & WIRE_OPEN_MANY_NODES))
        return file;
    struct srv_node *n;
    err = srv_node_new(&s->nodes, TAKE_FD(fd), dir->tree, ret_entry->attr.mode, &n);
    if (err < 0) {
        host_close(file);
        return err;
    }
    ret_entry->node = srv_node_id(n);
    srv_handlers_put(call, n);
    return file;
}

int srv_ahead_open_many(struct srv_call *call)
{
    struct wire_open_many req;
    char names[WIRE_OPEN_MANY_MAX][WIRE_NAME_MAX + 1];
    struct srv_node *dir;
    codec_get(&call->in, &req, sizeof(req));
    bool ok = req.count >= 1 && req.count <= WIRE_OPEN_MANY_MAX && !(req.flags & ~(uint32_t)WIRE_OPEN_MANY_NODES);
    int err = 0;
    for (uint32_t i = 0; ok && i < req.count; i++)
        err = MIN(err, srv_handlers_name(call, names[i]));
    if (!ok || !codec_reader_done(&call->in)) {
        call->malformed = true;
        return -EINVAL;
    }
    if (err >= 0)
        err = srv_handlers_node(call, req.dir, &dir);
    if (err < 0)
        return err;
    if (!S_ISDIR(dir->type))
        err = -ENOTDIR;
    uint64_t start = host_monotonic_ns();
    for (uint32_t i = 0; err >= 0 && i < req.count; i++) {
        struct wire_opened opened = {0};
        if (i && host_monotonic_ns() - start > SRV_AHEAD_NS)
            break;
        int fd = srv_ahead_open(call, dir, names[i], req.flags, &opened.entry);
        if (fd >= 0)
            call->fds[call->fds_len++] = fd;
        else
            opened = (struct wire_opened){.error = fd};
        codec_put(&call->out, &opened, sizeof(opened));
    }
    srv_handlers_put(call, dir);
    return err;
}
