/* SPDX-License-Identifier: Apache-2.0 */
/* Host calls with errno turned into −errno and EINTR retried: the only place where errno is read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "platform/base/compiler.h"

/* Return: result (≥ 0), or −errno taken from errno when result is −1. */
long host_ret(long result);

/* Writes or reads all size bytes, retrying short transfers and EINTR.
 * Return: 0, or −errno; host_read_all gives −EPIPE on an early end of file. */
MUST_CHECK int host_write_all(int fd, const void *p, size_t size);
MUST_CHECK int host_read_all(int fd, void *p, size_t size);

/* Reads a whole file (at most max bytes, else −EFBIG) relative to dirfd; ret_data is NUL-terminated.
 * Owns: caller frees *ret_data with mem_free. */
MUST_CHECK int host_read_file(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_size);
/* Writes size bytes into an existing file (cgroup and proc files): one open, one write. */
MUST_CHECK int host_write_file(int dirfd, const char *path, const void *p, size_t size);

/* Sends or receives one message with up to len descriptors (SCM_RIGHTS, close-on-exec on receipt).
 * Return: bytes received / sent, or −errno; 0 from host_recv_fds means the peer is gone. Receiving
 * more descriptors than *inout_len closes the extra ones and fails with −EMSGSIZE. */
MUST_CHECK ssize_t host_send_fds(int sock, const void *p, size_t size, const int *fds, size_t len);
MUST_CHECK ssize_t host_recv_fds(int sock, void *p, size_t size, int *ret_fds, size_t *inout_len, int flags);

/* Sealed-size memfd of size bytes. Return: fd (close-on-exec) or −errno. */
MUST_CHECK int host_memfd(const char *name, uint64_t size);

/* Directory descriptor of this process's own /proc/self/fd (borrowed, stays open), through which host_reopen works where
 * there is no /proc. −1: the path is used. */
void host_set_fd_dir(int fd);
/* Opens fd's file anew with other flags (O_RDONLY of a memfd that was made O_RDWR). Return: fd (close-on-exec) or −errno. */
MUST_CHECK int host_reopen(int fd, int flags);

/* Return: AT_HWCAP as the kernel gave it to this process: CPUID's word less what the kernel doesn't use. In a static program the
 * C library's getauxval gives something else under this name. */
unsigned long host_hwcap(void);

/* What of a file is in the host's page cache, in pages; the layout is that of the host's call. */
struct host_cachestat {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};
enum { HOST_NR_CACHESTAT = 451 };
/* cachestat(2) of size bytes at offset (0: to the end). Return: 0, −ENOSYS (hosts before 6.5), −EPERM (fd is not for writing,
 * and the caller may not write either), −EOPNOTSUPP. */
MUST_CHECK int host_cachestat(int fd, uint64_t offset, uint64_t size, struct host_cachestat *ret_stat);

void host_close(int fd); /* ignores −1; EINTR counts as closed */
static inline void host_closep_(int *fd)
{
    host_close(*fd);
}
/* Closes the descriptor at the end of its scope. */
#define CLEANUP_CLOSE __attribute__((cleanup(host_closep_)))

/* Return: random bytes in p. Never fails on a running kernel (BUG_ON otherwise). */
void host_random(void *p, size_t size);
/* Return: CLOCK_MONOTONIC / CLOCK_REALTIME in nanoseconds. */
uint64_t host_monotonic_ns(void);
uint64_t host_realtime_ns(void);
