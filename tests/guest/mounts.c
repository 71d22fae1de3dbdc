/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts, file handles and file attributes, by a caller who may administer the container. */
#include "tests/guest/guest.h"

#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID 0x200
#endif
enum { HANDLE_MNT_ID_UNIQUE = 1, STATX_UNIQUE = 0x4000 };

union mounts_handle {
    struct file_handle head;
    char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
};

static void mounts_handle_of(int dirfd, const char *path, union mounts_handle *h)
{
    int id;
    h->head.handle_bytes = MAX_HANDLE_SZ;
    OK(name_to_handle_at(dirfd, path, &h->head, &id, *path ? 0 : AT_EMPTY_PATH));
}

BOTH(handles)
{
    union mounts_handle h, h2;
    struct stat st, st2;
    int fd, id = 0;

    guest_write_file("f", "text");
    OK(mkdir("d", 0755));
    guest_write_file("d/g", "in d");
    OK(symlink("f", "l"));

    memset(&h, 0, sizeof(h));
    ERR(EOVERFLOW, name_to_handle_at(AT_FDCWD, "f", &h.head, &id, 0));
    CHECK(h.head.handle_bytes > 0 && h.head.handle_bytes <= MAX_HANDLE_SZ);
    CHECK(id > 0);
    h.head.handle_bytes = MAX_HANDLE_SZ + 1;
    ERR(EINVAL, name_to_handle_at(AT_FDCWD, "f", &h.head, &id, 0));
    ERR(EINVAL, name_to_handle_at(AT_FDCWD, "f", &h.head, &id, 0x4000));
    ERR(ENOENT, name_to_handle_at(AT_FDCWD, "", &h.head, &id, 0));

    mounts_handle_of(AT_FDCWD, "f", &h);
    fd = OK(open_by_handle_at(AT_FDCWD, &h.head, O_RDWR));
    OK(fstat(fd, &st));
    OK(stat("f", &st2));
    EQ(st.st_ino, st2.st_ino);
    mounts_handle_of(fd, "", &h2);
    EQ(h.head.handle_bytes, h2.head.handle_bytes);
    EQ(memcmp(&h, &h2, sizeof(h.head) + h.head.handle_bytes), 0);
    OK(close(fd));
    /* It follows the file, not the name. */
    OK(rename("f", "d/f"));
    fd = OK(open_by_handle_at(AT_FDCWD, &h.head, O_RDONLY));
    OK(fstat(fd, &st));
    EQ(st.st_ino, st2.st_ino);
    OK(close(fd));
    OK(link("d/f", "second"));
    OK(unlink("d/f"));
    OK(close(OK(open_by_handle_at(AT_FDCWD, &h.head, O_RDONLY))));
    OK(unlink("second"));
    ERR(ESTALE, open_by_handle_at(AT_FDCWD, &h.head, O_RDONLY));

    /* A directory keeps its place in the tree. */
    mounts_handle_of(AT_FDCWD, "d", &h);
    fd = OK(open_by_handle_at(AT_FDCWD, &h.head, O_RDONLY | O_DIRECTORY));
    OK(close(OK(openat(fd, "g", O_RDONLY))));
    OK(fstatat(fd, "..", &st, 0));
    OK(stat(".", &st2));
    EQ(st.st_ino, st2.st_ino);
    ERR(EISDIR, open_by_handle_at(AT_FDCWD, &h.head, O_RDWR));
    mounts_handle_of(AT_FDCWD, "l", &h2);
    ERR(ELOOP, open_by_handle_at(AT_FDCWD, &h2.head, O_RDONLY));
    ERR(EBADF, open_by_handle_at(-1, &h.head, O_RDONLY));
    h2 = h;
    h2.head.handle_bytes = 0;
    ERR(EINVAL, open_by_handle_at(AT_FDCWD, &h2.head, O_RDONLY));
    /* Of another file system, and made-up ones. */
    int proc = OK(open("/proc/self", O_RDONLY));
    ERR(ESTALE, open_by_handle_at(proc, &h.head, O_RDONLY));
    for (unsigned i = 0; i < 4; i++) {
        h2 = h;
        h2.head.f_handle[i] ^= 0x55;
        ERR(ESTALE, open_by_handle_at(AT_FDCWD, &h2.head, O_RDONLY));
    }
}

TEST(handles_of_file_systems_without)
{
    union mounts_handle h;
    int id;
    h.head.handle_bytes = MAX_HANDLE_SZ;
    ERR(EOPNOTSUPP, name_to_handle_at(AT_FDCWD, "/proc/filesystems", &h.head, &id, 0));
    OK(name_to_handle_at(AT_FDCWD, "/proc/filesystems", &h.head, &id, AT_HANDLE_FID));
    EQ(h.head.handle_bytes, 12);
    EQ(h.head.handle_type, 0x81);
}

TEST(handles_need_the_capability)
{
    union mounts_handle h;
    guest_tmpdir();
    guest_write_file("f", "");
    mounts_handle_of(AT_FDCWD, "f", &h);
    EXITED(IN_CHILD(OK(setuid(1000)); ERR(EPERM, open_by_handle_at(AT_FDCWD, &h.head, O_RDONLY))),
           0);
}

TEST(mount_ids_agree)
{
    union mounts_handle h;
    struct statx sx, sx2;
    uint64_t unique = 0;
    int id = 0;
    OK(statx(AT_FDCWD, "/proc", 0, STATX_MNT_ID, &sx));
    OK(statx(AT_FDCWD, "/proc", 0, STATX_UNIQUE, &sx2));
    CHECK(sx.stx_mask & STATX_MNT_ID);
    CHECK(sx2.stx_mask & STATX_UNIQUE);
    CHECK(sx2.stx_mnt_id > 1ULL << 31);
    h.head.handle_bytes = MAX_HANDLE_SZ;
    OK(name_to_handle_at(AT_FDCWD, "/proc", &h.head, &id, AT_HANDLE_FID));
    EQ((unsigned)id, sx.stx_mnt_id);
    OK(name_to_handle_at(AT_FDCWD, "/proc", &h.head, (int *)&unique,
                         AT_HANDLE_FID | HANDLE_MNT_ID_UNIQUE));
    EQ(unique, sx2.stx_mnt_id);
}

TEST(mounts_watched_until_the_last_is_gone)
{
    char events[256];
    struct inotify_event *e = (struct inotify_event *)events;
    guest_tmpdir();
    OK(mkdir("m", 0700));
    OK(mkdir("again", 0700));
    OK(mount("none", "m", "tmpfs", 0, NULL));
    guest_write_file("m/file", "x");
    int fd = OK(inotify_init1(IN_NONBLOCK)), wd = OK(inotify_add_watch(fd, "m/file", IN_ALL_EVENTS));
    OK(mount("m", "again", NULL, MS_BIND, NULL));
    OK(umount2("m", 0));
    ERR(EAGAIN, read(fd, events, sizeof(events)));
    OK(umount2("again", 0));
    EQ(read(fd, events, sizeof(events)), 2 * (ssize_t)sizeof(*e));
    EQ(e[0].wd, wd);
    EQ(e[0].mask, IN_UNMOUNT);
    EQ(e[1].wd, wd);
    EQ(e[1].mask, IN_IGNORED);
    ERR(EINVAL, inotify_rm_watch(fd, wd));
}
