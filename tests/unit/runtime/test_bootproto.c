/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters survive the way into the sandbox's processes; damaged ones are refused. */
#include "runtime/bootproto.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"

static const struct boot_params sample = {
    .strace = true,
    .foreground = true,
    .terminal = true,
    .overlay_root = true,
    .overlay_memory = true,
    .overlay_size = 1ULL << 40,
    .log_level = 3,
    .console_rows = 40,
    .console_cols = 100,
    .stdio_mask = 5,
    .preserved_len = 3,
    .doors_len = 9,
    .listen_fds = 1,
    .id = "id",
    .home = "/root",
    .cgroup_path = "/a/b",
    .config = "{\"x\": 1}",
    .config_size = 8,
};

Test(bootproto, parameters)
{
    struct boot_params got;
    char *memory;
    CLEANUP_CLOSE int fd = boot_params_write(&sample);
    cr_assert_geq(fd, 0);
    cr_assert_eq(boot_params_read(fd, &got, &memory), 0);
    cr_assert(got.strace && got.foreground && got.terminal && !got.log_json && !got.have_log);
    cr_assert(got.overlay_root && got.overlay_memory && !got.overlay_all && got.overlay_size == 1ULL << 40);
    cr_assert_eq(got.log_level, 3);
    cr_assert(got.console_rows == 40 && got.console_cols == 100);
    cr_assert(got.stdio_mask == 5 && got.preserved_len == 3 && got.doors_len == 9 && got.listen_fds == 1);
    cr_assert_str_eq(got.id, "id");
    cr_assert_str_eq(got.home, "/root");
    cr_assert_str_eq(got.cgroup_path, "/a/b");
    cr_assert_eq(got.config_size, 8);
    cr_assert_eq(memcmp(got.config, sample.config, 8), 0);
    mem_free(memory);
    cr_assert_lt(write(fd, "x", 1), 0, "the file is sealed");
}

Test(bootproto, damaged_parameters)
{
    char whole[4096];
    CLEANUP_CLOSE int fd = boot_params_write(&sample);
    ssize_t size = pread(fd, whole, sizeof(whole), 0);
    cr_assert_gt(size, 0);
    /* Cut short anywhere, or with a byte changed in the fixed part: an error or a harmless reading. */
    for (ssize_t cut = 0; cut < size; cut++) {
        struct boot_params got;
        char *memory;
        CLEANUP_CLOSE int part = memfd_create("part", MFD_CLOEXEC);
        cr_assert_eq(host_write_all(part, whole, (size_t)cut), 0);
        cr_assert_lt(boot_params_read(part, &got, &memory), 0);
    }
    for (ssize_t at = 0; at < MIN(size, (ssize_t)64); at++) {
        struct boot_params got;
        char *memory, copy[4096];
        memcpy(copy, whole, (size_t)size);
        copy[at] = (char)(copy[at] ^ 0xff);
        CLEANUP_CLOSE int changed = memfd_create("changed", MFD_CLOEXEC);
        cr_assert_eq(host_write_all(changed, copy, (size_t)size), 0);
        if (boot_params_read(changed, &got, &memory) == 0)
            mem_free(memory);
    }
}

Test(bootproto, messages)
{
    int socks[2];
    struct boot_message m;
    int fd = -1;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
    cr_assert_eq(boot_send(socks[0], BOOT_ERROR, -ENOENT, "no such thing", 0), 0);
    cr_assert_eq(boot_recv(socks[1], &m, &fd), 0);
    cr_assert(m.type == BOOT_ERROR && m.error == -ENOENT && fd >= 0);
    cr_assert_str_eq(m.text, "no such thing");
    close(fd);
    cr_assert_eq(send(socks[0], "x", 1, 0), 1);
    cr_assert_eq(boot_recv(socks[1], &m, &fd), -EPROTO);
    close(socks[0]);
    cr_assert_eq(boot_recv(socks[1], &m, &fd), -EPIPE);
    close(socks[1]);
}
