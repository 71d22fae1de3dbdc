/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/sys/net. Source: Documentation/networking/ip-sysctl.rst, Documentation/admin-guide/sysctl/net.rst. */
#include "sentry/fs/proc/proc_sys.h"

static const struct proc_node core_nodes[] = {
    SYSCTL_FIXED_TEXT("default_qdisc", "pfifo_fast"),
    SYSCTL_INT("netdev_max_backlog", 1000, 0, INT32_MAX),
    SYSCTL_INT("optmem_max", 131072, 0, INT32_MAX),
    SYSCTL_INT("rmem_default", 212992, 2304, INT32_MAX),
    SYSCTL_INT("rmem_max", 212992, 2304, INT32_MAX),
    SYSCTL_INT("somaxconn", 4096, 0, INT32_MAX),
    SYSCTL_INT("wmem_default", 212992, 4608, INT32_MAX),
    SYSCTL_INT("wmem_max", 212992, 4608, INT32_MAX),
};
static const struct proc_dir core_dir = PROC_DIR_OF(core_nodes);

#define CONF4_NODES                                                                                \
    {SYSCTL_INT("accept_redirects", 1, 0, 1), SYSCTL_INT("accept_source_route", 0, 0, 1),          \
     SYSCTL_INT("arp_announce", 0, 0, 2),     SYSCTL_INT("arp_ignore", 0, 0, 8),                   \
     SYSCTL_INT("forwarding", 0, 0, 1),       SYSCTL_INT("proxy_arp", 0, 0, 1),                    \
     SYSCTL_INT("route_localnet", 0, 0, 1),   SYSCTL_INT("rp_filter", 0, 0, 2),                    \
     SYSCTL_INT("send_redirects", 1, 0, 1)}
static const struct proc_node conf4_all_nodes[] = CONF4_NODES;
static const struct proc_node conf4_default_nodes[] = CONF4_NODES;
static const struct proc_node conf4_lo_nodes[] = CONF4_NODES;
static const struct proc_dir conf4_all_dir = PROC_DIR_OF(conf4_all_nodes);
static const struct proc_dir conf4_default_dir = PROC_DIR_OF(conf4_default_nodes);
static const struct proc_dir conf4_lo_dir = PROC_DIR_OF(conf4_lo_nodes);
static const struct proc_node conf4_nodes[] = {
    PROC_DIR("all", conf4_all_dir), PROC_DIR("default", conf4_default_dir), PROC_DIR("lo", conf4_lo_dir)};
static const struct proc_dir conf4_dir = PROC_DIR_OF(conf4_nodes);

static const struct proc_node ipv4_nodes[] = {
    PROC_DIR("conf", conf4_dir),
    SYSCTL_INT("icmp_echo_ignore_all", 0, 0, 1),
    SYSCTL_INT("icmp_echo_ignore_broadcasts", 1, 0, 1),
    SYSCTL_INT("ip_default_ttl", 64, 1, 255),
    SYSCTL_INT("ip_forward", 0, 0, 1),
    SYSCTL_INTS("ip_local_port_range", 2, 1, 65535, 32768, 60999),
    SYSCTL_TEXT("ip_local_reserved_ports", ""),
    SYSCTL_INT("ip_nonlocal_bind", 0, 0, 1),
    SYSCTL_INT("ip_unprivileged_port_start", 1024, 0, 65535),
    SYSCTL_INTS("ping_group_range", 2, 0, INT32_MAX, 1, 0),
    SYSCTL_FIXED_TEXT("tcp_allowed_congestion_control", "reno cubic"),
    SYSCTL_FIXED_TEXT("tcp_available_congestion_control", "reno cubic"),
    SYSCTL_TEXT("tcp_congestion_control", "cubic"),
    SYSCTL_INT("tcp_ecn", 2, 0, 2),
    SYSCTL_INT("tcp_fastopen", 1, 0, INT32_MAX),
    SYSCTL_INT("tcp_fin_timeout", 60, 1, INT32_MAX),
    SYSCTL_INT("tcp_keepalive_intvl", 75, 1, 32767),
    SYSCTL_INT("tcp_keepalive_probes", 9, 1, 127),
    SYSCTL_INT("tcp_keepalive_time", 7200, 1, 32767),
    SYSCTL_INT("tcp_max_syn_backlog", 512, 0, INT32_MAX),
    SYSCTL_INT("tcp_max_tw_buckets", 65536, 0, INT32_MAX),
    SYSCTL_INTS("tcp_mem", 3, 0, INT32_MAX, 46383, 61845, 92766),
    SYSCTL_INT("tcp_mtu_probing", 0, 0, 2),
    SYSCTL_INT("tcp_retries1", 3, 1, 255),
    SYSCTL_INT("tcp_retries2", 15, 1, INT32_MAX),
    SYSCTL_INTS("tcp_rmem", 3, 1, INT32_MAX, 4096, 131072, 6291456),
    SYSCTL_INT("tcp_sack", 1, 0, 1),
    SYSCTL_INT("tcp_slow_start_after_idle", 1, 0, 1),
    SYSCTL_INT("tcp_syn_retries", 6, 1, 127),
    SYSCTL_INT("tcp_synack_retries", 5, 0, 255),
    SYSCTL_INT("tcp_syncookies", 1, 0, 2),
    SYSCTL_INT("tcp_timestamps", 1, 0, 2),
    SYSCTL_INT("tcp_tw_reuse", 2, 0, 2),
    SYSCTL_INT("tcp_window_scaling", 1, 0, 1),
    SYSCTL_INTS("tcp_wmem", 3, 1, INT32_MAX, 4096, 16384, 4194304),
    SYSCTL_INTS("udp_mem", 3, 0, INT32_MAX, 92766, 123690, 185532),
    SYSCTL_INT("udp_rmem_min", 4096, 1, INT32_MAX),
    SYSCTL_INT("udp_wmem_min", 4096, 1, INT32_MAX),
};
static const struct proc_dir ipv4_dir = PROC_DIR_OF(ipv4_nodes);

#define CONF6_NODES                                                                                \
    {SYSCTL_INT("accept_ra", 1, 0, 2),  SYSCTL_INT("autoconf", 1, 0, 1),                           \
     SYSCTL_INT("disable_ipv6", 0, 0, 1), SYSCTL_INT("forwarding", 0, 0, 1),                       \
     SYSCTL_INT("hop_limit", 64, 1, 255), SYSCTL_INT("mtu", 1500, 1280, INT32_MAX),                \
     SYSCTL_INT("use_tempaddr", 0, -1, 2)}
static const struct proc_node conf6_all_nodes[] = CONF6_NODES;
static const struct proc_node conf6_default_nodes[] = CONF6_NODES;
static const struct proc_node conf6_lo_nodes[] = CONF6_NODES;
static const struct proc_dir conf6_all_dir = PROC_DIR_OF(conf6_all_nodes);
static const struct proc_dir conf6_default_dir = PROC_DIR_OF(conf6_default_nodes);
static const struct proc_dir conf6_lo_dir = PROC_DIR_OF(conf6_lo_nodes);
static const struct proc_node conf6_nodes[] = {
    PROC_DIR("all", conf6_all_dir), PROC_DIR("default", conf6_default_dir), PROC_DIR("lo", conf6_lo_dir)};
static const struct proc_dir conf6_dir = PROC_DIR_OF(conf6_nodes);
static const struct proc_node ipv6_nodes[] = {
    PROC_DIR("conf", conf6_dir),
    SYSCTL_INT("bindv6only", 0, 0, 1),
    SYSCTL_INT("ip_nonlocal_bind", 0, 0, 1),
};
static const struct proc_dir ipv6_dir = PROC_DIR_OF(ipv6_nodes);

static const struct proc_node unix_nodes[] = {SYSCTL_INT("max_dgram_qlen", 512, 0, INT32_MAX)};
static const struct proc_dir unix_dir = PROC_DIR_OF(unix_nodes);

static const struct proc_node net_nodes[] = {
    PROC_DIR("core", core_dir), PROC_DIR("ipv4", ipv4_dir), PROC_DIR("ipv6", ipv6_dir), PROC_DIR("unix", unix_dir)};

const struct proc_dir proc_sys_net_dir = PROC_DIR_OF(net_nodes);
