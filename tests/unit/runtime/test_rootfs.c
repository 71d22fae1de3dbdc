/* SPDX-License-Identifier: Apache-2.0 */
/* The home directory comes from the image's own passwd file, whatever that file is. */
#include "runtime/rootfs.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"

static char root[64];
static int root_fd;

static void make_root(void)
{
    strcpy(root, "/tmp/test_rootfs.XXXXXX");
    cr_assert_not_null(mkdtemp(root));
    root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    cr_assert_eq(mkdirat(root_fd, "etc", 0755), 0);
}

static void remove_root(void)
{
    unlinkat(root_fd, "etc/passwd", 0);
    unlinkat(root_fd, "etc", AT_REMOVEDIR);
    rmdir(root);
    close(root_fd);
}

TestSuite(rootfs, .init = make_root, .fini = remove_root);

static void check(uint32_t uid, const char *want)
{
    CLEANUP_FREE char *home = NULL;
    cr_assert_eq(rootfs_home(-1, root_fd, uid, &home), 0);
    cr_assert_str_eq(home, want);
}

static void write_passwd(const char *text)
{
    CLEANUP_CLOSE int fd = openat(root_fd, "etc/passwd", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    cr_assert_eq(host_write_all(fd, text, strlen(text)), 0);
}

Test(rootfs, home)
{
    check(0, "/");
    write_passwd("root:x:0:0:root:/root:/bin/sh\nweb:x:33:33::/srv/web:\nshort:x:5\nodd:x:7x:7::/odd:\n"
                 "empty:x:8:8:::\nlast:x:9:9::/last");
    check(0, "/root");
    check(33, "/srv/web");
    check(5, "/");
    check(7, "/");
    check(8, "/");
    check(9, "/last");
    check(1234, "/");
}

Test(rootfs, hostile_passwd)
{
    /* A link out of the image is followed inside it; a fifo does not block; garbage is garbage. */
    cr_assert_eq(symlinkat("/etc/shadow-of-the-host", root_fd, "etc/passwd"), 0);
    check(0, "/");
    unlinkat(root_fd, "etc/passwd", 0);
    cr_assert_eq(mkfifoat(root_fd, "etc/passwd", 0644), 0);
    check(0, "/");
    unlinkat(root_fd, "etc/passwd", 0);
    write_passwd("::::::::\n\n:\nroot:x:0\xff:0:::\n");
    check(0, "/");
}
