/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/net: the loopback interface and the socket tables, in the formats that tools parse. */
#include "sentry/fs/proc/procfs.h"

#include <string.h>
#include <sys/socket.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/socket/netns.h"
#include "sentry/socket/sock_inet.h"
#include "sentry/socket/unix_sock.h"

static int show_text(struct proc_call *c, struct buf *out)
{
    buf_puts(out, c->node->arg);
    return buf_error(out);
}

static int show_dev(struct proc_call *c, struct buf *out)
{
    buf_puts(out, "Inter-|   Receive                                                |  Transmit\n"
                  " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs "
                  "drop fifo colls carrier compressed\n");
    buf_printf(out, "%6s: %7d %7d %4d %4d %4d %5d %10d %9d %8d %7d %4d %4d %4d %5d %7d %10d\n", "lo", 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return buf_error(out);
}

static struct netns *call_netns(const struct proc_call *c)
{
    return c->task && c->task->ns ? c->task->ns->net : NULL;
}

static int show_unix(struct proc_call *c, struct buf *out)
{
    struct netns *ns = call_netns(c);

    if (ns)
        unix_sock_print(ns, out);
    return buf_error(out);
}

/* ---- TCP and UDP ---- */

enum { TCP_STATE_ESTABLISHED = 1, TCP_STATE_CLOSE = 7, TCP_STATE_LISTEN = 10, TCP_LINE = 149, UDP_LINE = 127 };

#define INET_HEAD                                                                                  \
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "  \
    "inode"
#define INET6_HEAD                                                                                 \
    "  sl  local_address                         remote_address                        st "        \
    "tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"

struct inet_table {
    int family, type;
    const char *head;
    int line; /* width that lines are filled up to; 0: not */
};

/* Addresses are printed as words in the machine's order. */
static void put_address(struct buf *out, int family, const struct inet_addr *a)
{
    uint32_t words[4];

    memcpy(words, &a->ip, sizeof(words));
    if (family == AF_INET)
        buf_printf(out, "%08X:%04X", words[3], a->port);
    else
        buf_printf(out, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3], a->port);
}

static int inet_state(const struct inet_sock *s)
{
    if (s->u.base.type == SOCK_STREAM && s->u.state == UNIX_LISTENING)
        return TCP_STATE_LISTEN;
    return s->remote.port ? TCP_STATE_ESTABLISHED : TCP_STATE_CLOSE;
}

static void put_inet_sock(struct buf *out, const struct inet_table *t, unsigned index, const struct inet_sock *s)
{
    size_t start = out->size;
    unsigned long long ino = s->u.base.file ? s->u.base.file->inode->ino : 0;

    buf_printf(out, t->type == SOCK_STREAM ? "%4u: " : "%5u: ", index);
    put_address(out, t->family, &s->local);
    buf_putc(out, ' ');
    put_address(out, t->family, &s->remote);
    buf_printf(out, " %02X %08X:%08X %02X:%08X %08X %5u %8d %llu %u %016x", inet_state(s), 0,
               (unsigned)MIN(s->dgram_bytes, (uint64_t)UINT32_MAX), 0, 0, 0, s->uid, 0, ino,
               s->u.base.ref.count, 0);
    buf_puts(out, t->type == SOCK_STREAM ? " 100 0 0 10 0" : " 0");
    while (t->line && out->size - start < (size_t)t->line && !buf_error(out))
        buf_putc(out, ' ');
    buf_putc(out, '\n');
}

static int show_inet(struct proc_call *c, struct buf *out)
{
    const struct inet_table *t = c->node->arg;
    struct netns *ns = call_netns(c);
    struct inet_sock *s;
    unsigned index = 0;
    size_t start = out->size;

    buf_puts(out, t->head);
    while (t->line && out->size - start < (size_t)t->line && !buf_error(out))
        buf_putc(out, ' ');
    buf_putc(out, '\n');
    for (unsigned i = 0; ns && ns->ports && i < INET_BUCKETS; i++) {
        list_for_each_entry(s, &ns->ports->buckets[i], port_link) {
            if (s->u.base.family == t->family && s->u.base.type == t->type)
                put_inet_sock(out, t, index++, s);
        }
    }
    return buf_error(out);
}

static const struct inet_table tcp4_table = {AF_INET, SOCK_STREAM, INET_HEAD, TCP_LINE};
static const struct inet_table tcp6_table = {AF_INET6, SOCK_STREAM, INET6_HEAD, 0};
static const struct inet_table udp4_table = {AF_INET, SOCK_DGRAM, INET_HEAD " ref pointer drops", UDP_LINE};
static const struct inet_table udp6_table = {AF_INET6, SOCK_DGRAM, INET6_HEAD " ref pointer drops", 0};

#define NET_INET(n, table) {.name = n, .mode = S_IFREG | 0444, .show = show_inet, .arg = &(table)}

/* ---- the table of files ---- */

#define NET_TEXT(n, text) {.name = n, .mode = S_IFREG | 0444, .show = show_text, .arg = text}

static const struct proc_node net_nodes[] = {
    NET_TEXT("arp", "IP address       HW type     Flags       HW address            Mask     Device\n"),
    PROC_FILE("dev", 0444, show_dev),
    NET_TEXT("dev_mcast", ""),
    NET_TEXT("fib_trie", ""),
    NET_TEXT("icmp", INET_HEAD " ref pointer drops\n"),
    NET_TEXT("if_inet6", "00000000000000000000000000000001 01 80 10 80       lo\n"),
    NET_TEXT("igmp", "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n"),
    NET_TEXT("ipv6_route", ""),
    NET_TEXT("netlink",
             "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n"),
    NET_TEXT("netstat", ""),
    NET_TEXT("packet", "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n"),
    NET_TEXT("protocols", "protocol  size sockets  memory press maxhdr  slab module     cl co di ac io in de sh ss "
                          "gs se re sp bi br ha uh gp em\n"
                          "UNIX      1024      0      -1   NI       0   yes  kernel      n  n  n  n  n  n  n  n  "
                          "n  n  n  n  n  n  n  n  n  n  n\n"),
    NET_TEXT("raw", INET_HEAD " ref pointer drops\n"),
    NET_TEXT("raw6", INET6_HEAD " ref pointer drops\n"),
    NET_TEXT("route", "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT"
                      "                                                       \n"),
    NET_TEXT("snmp", ""),
    NET_TEXT("sockstat", "sockets: used 0\nTCP: inuse 0 orphan 0 tw 0 alloc 0 mem 0\nUDP: inuse 0 mem 0\n"
                         "UDPLITE: inuse 0\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n"),
    NET_INET("tcp", tcp4_table),
    NET_INET("tcp6", tcp6_table),
    NET_INET("udp", udp4_table),
    NET_INET("udp6", udp6_table),
    PROC_FILE("unix", 0444, show_unix),
};

const struct proc_dir proc_net_dir = PROC_DIR_OF(net_nodes);
