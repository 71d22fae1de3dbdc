/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/net: the loopback interface and the socket tables, in the formats that tools parse. */
#include "sentry/fs/proc/procfs.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/socket/netns.h"
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

#define NET_TEXT(n, text) {.name = n, .mode = S_IFREG | 0444, .show = show_text, .arg = text}

#define INET_HEAD                                                                                  \
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "  \
    "inode"
#define INET6_HEAD                                                                                 \
    "  sl  local_address                         remote_address                        st "        \
    "tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"

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
    NET_TEXT("tcp", INET_HEAD "                                                     \n"),
    NET_TEXT("tcp6", INET6_HEAD "\n"),
    NET_TEXT("udp", INET_HEAD " ref pointer drops             \n"),
    NET_TEXT("udp6", INET6_HEAD " ref pointer drops\n"),
    PROC_FILE("unix", 0444, show_unix),
};

const struct proc_dir proc_net_dir = PROC_DIR_OF(net_nodes);
