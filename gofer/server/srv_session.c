/* SPDX-License-Identifier: Apache-2.0 */
/* Receives requests, calls their handlers, sends the replies. */
#include "gofer/server/srv_session.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "gofer/server/srv_handlers.h"
#include "gofer/server/srv_watch.h"
#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"

int srv_session_init(struct srv_session *s, const struct gofer_server_config *config,
                     uint64_t fds_limit)
{
    if (config->trees_len == 0 || config->trees_len > GOFER_TREES_MAX)
        return -EINVAL;
    memset(s, 0, sizeof(*s));
    s->trees = config->trees;
    s->trees_len = config->trees_len;
    s->proc_self_fd = config->proc_self_fd;
    srv_node_table_init(&s->nodes, fds_limit);
    pthread_mutex_init(&s->devs_mu, NULL);
    srv_watch_init(s);
    int err = channel_open(&s->channel, config->sock, config->shm);
    if (err < 0)
        return err;
    host_close(config->shm);
    int ends[2] = {-1, -1}, size = WIRE_LANE_BUFFER;
    if (channel_socketpair(ends) < 0)
        log_debug("no second socket: every change is waited for");
    /* As much as the host allows; the sentry can do with less. */
    (void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    s->lane = (struct channel){.sock = ends[0], .shm = s->channel.shm};
    s->lane_peer = ends[1];
    return 0;
}

int srv_session_take_lane(struct srv_session *s)
{
    pthread_mutex_lock(&s->devs_mu);
    int fd = s->lane_peer;
    s->lane_peer = -1;
    pthread_mutex_unlock(&s->devs_mu);
    return fd;
}

uint32_t srv_session_dev(struct srv_session *s, uint32_t major, uint32_t minor)
{
    uint64_t dev = (uint64_t)major << 32 | minor;
    unsigned i;
    pthread_mutex_lock(&s->devs_mu);
    for (i = 0; i < s->devs_len && s->devs[i] != dev; i++)
        ;
    if (i == s->devs_len) {
        /* Past the limit, file systems share the last number; nothing but st_dev depends on it. */
        if (i < SRV_DEVS_MAX)
            s->devs[s->devs_len++] = dev;
        else
            i = SRV_DEVS_MAX - 1;
    }
    pthread_mutex_unlock(&s->devs_mu);
    return i;
}

/* Runs one request's handler. Return: 0 or the error to reply. */
static int srv_session_call(struct srv_call *call, enum wire_op op)
{
    srv_handler handler = srv_handlers_find(op);
    if (!handler) {
        call->malformed = true;
        return -EPROTO;
    }
    int err = handler(call);
    /* A handler that ran out of payload worked on zeroes, which name no node: nothing was done. */
    if (call->in.bad)
        call->malformed = true;
    if (err >= 0 && call->out.bad)
        err = -EOVERFLOW;
    return err < 0 ? err : 0;
}

/* A worker's memory. */
struct srv_buffers {
    unsigned char in[CHANNEL_BUFFER_SIZE] ALIGNED(16);
    unsigned char out[CHANNEL_BUFFER_SIZE] ALIGNED(16);
    char scratch[SRV_SCRATCH_SIZE] ALIGNED(16);
};

/* Serves one request and answers it by ch, unless it succeeded and nobody waits. Return: 0 or −errno, the end of the
 * session. */
static int srv_session_one(struct srv_session *s, struct channel *ch, struct srv_buffers *buffers,
                           const struct channel_request *request)
{
    struct srv_call call = {.session = s, .scratch = buffers->scratch};
    unsigned char *out = buffers->out;
    codec_reader_init(&call.in, request->payload, request->size);
    codec_writer_init(&call.out, channel_reply_payload(out), WIRE_SLOT_SIZE);
    int err = srv_session_call(&call, request->op);
    if (!call.malformed && (err || WIRE_TAG_SLOT(request->tag) != WIRE_SLOT_NONE))
        err = channel_send_reply(ch, request->tag, err, out, err ? 0 : call.out.size, call.fds,
                                 err ? 0 : call.fds_len);
    for (unsigned i = 0; i < call.fds_len; i++)
        host_close(call.fds[i]);
    if (call.malformed)
        return -EPROTO;
    /* A sentry that is gone may have sent EXIT before: what it left is read first. */
    return err == -EPIPE || err == -ECONNRESET ? 0 : err;
}

int srv_session_serve(struct srv_session *s)
{
    /* In one piece, which is large enough to come from the host as pages that are not touched
     * before use. */
    CLEANUP_FREE struct srv_buffers *buffers = NEW(struct srv_buffers);
    if (!buffers)
        return -ENOMEM;
    for (;;) {
        struct channel_request request;
        int err = channel_recv_request(&s->channel, buffers->in, &request);
        if (err > 0)
            err = srv_session_one(s, &s->channel, buffers, &request);
        else
            return err;
        if (err < 0)
            return err;
    }
}

int srv_session_serve_lane(struct srv_session *s)
{
    CLEANUP_FREE struct srv_buffers *buffers = NEW(struct srv_buffers);
    CLEANUP_FREE unsigned char *message = mem_zalloc(WIRE_LANE_MAX);
    uint32_t *done = &channel_board(&s->lane)->lane_done, count = 0;
    if (!buffers || !message)
        return -ENOMEM;
    for (;;) {
        struct channel_request request;
        size_t at = 0;
        ssize_t size = channel_recv_lane(s->lane.sock, message);
        int more = 1;
        if (size <= 0)
            return (int)size;
        while ((more = channel_lane_request(&s->lane, message, (size_t)size, &at, buffers->in, &request)) > 0) {
            int err = srv_session_one(s, &s->lane, buffers, &request);
            if (err < 0)
                return err;
            __atomic_store_n(done, ++count, __ATOMIC_RELEASE);
        }
        if (more < 0)
            return more;
    }
}
