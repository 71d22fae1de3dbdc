/* SPDX-License-Identifier: Apache-2.0 */
/* fanotify's file identifiers: which records an event has, and that they lead to the file. */
#include "tests/guest/fanotify.h"

static void *record_at; /* the first record that was not looked at */
static char *records_end;
static int place; /* a directory of the file system: opened before anybody watches */

static void expect_fid_event(int fd, uint64_t mask)
{
    struct fanotify_event_metadata *e = next_event(fd);
    if (e->mask != mask)
        FAIL("event %llx instead of %llx", (unsigned long long)e->mask, (unsigned long long)mask);
    EQ(e->fd, FAN_NOFD);
    EQ(e->pid, getpid());
    record_at = e + 1;
    records_end = (char *)e + e->event_len;
}

/* The next record names this file (NULL: not compared) and entry, and its handle opens it. */
static void expect_record(int type, const char *path, const char *name)
{
    struct fanotify_event_info_fid *r = record_at;
    struct file_handle *h = (void *)r->handle;
    union {
        struct file_handle h;
        char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } want = {.h.handle_bytes = MAX_HANDLE_SZ};
    struct statfs st;
    int id;
    CHECK((char *)record_at < records_end);
    EQ(r->hdr.info_type, type);
    EQ(r->hdr.len % 4, 0);
    record_at = (char *)record_at + r->hdr.len;
    if (name)
        STR((char *)h->f_handle + h->handle_bytes, name);
    else
        EQ(r->hdr.len, sizeof(*r) + sizeof(*h) + h->handle_bytes);
    if (!path)
        return;
    OK(statfs(path, &st));
    CHECK(!memcmp(&st.f_fsid, &r->fsid, sizeof(r->fsid)));
    OK(name_to_handle_at(AT_FDCWD, path, &want.h, &id, 0));
    EQ(h->handle_bytes, want.h.handle_bytes);
    EQ(h->handle_type, want.h.handle_type);
    CHECK(!memcmp(h->f_handle, want.h.f_handle, h->handle_bytes));
    int f = open_by_handle_at(place, h, O_PATH);
    struct stat a;
    OK(f);
    OK(fstat(f, &a));
    EQ(a.st_ino, ino_of(path));
    close(f);
}

static void expect_end(void)
{
    EQ((char *)record_at, records_end);
}

TEST(fid_of_inodes)
{
    char path[] = "/dev/shm/guest.XXXXXX";
    CHECK(mkdtemp(path));
    OK(chdir(path));
    place = OK(open(".", O_RDONLY | O_DIRECTORY));
    int fd = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_NONBLOCK, O_RDONLY));
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_CREATE | FAN_DELETE | FAN_MOVE | FAN_ONDIR, AT_FDCWD, "."));
    touch("a");
    touch("b");
    OK(mkdir("d", 0700));
    forget_events();
    expect_fid_event(fd, FAN_CREATE); /* both: only the directory is told */
    expect_record(FAN_EVENT_INFO_TYPE_FID, ".", NULL);
    expect_end();
    expect_fid_event(fd, FAN_CREATE | FAN_ONDIR);
    expect_record(FAN_EVENT_INFO_TYPE_FID, ".", NULL);
    expect_end();
    no_event(fd);
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_ATTRIB | FAN_DELETE_SELF | FAN_MOVE_SELF | FAN_OPEN | FAN_MODIFY, AT_FDCWD, "a"));
    OK(chmod("a", 0644));
    OK(truncate("a", 10));
    OK(rename("a", "c"));
    forget_events();
    expect_fid_event(fd, FAN_ATTRIB | FAN_MODIFY | FAN_MOVE_SELF);
    expect_record(FAN_EVENT_INFO_TYPE_FID, "c", NULL);
    expect_end();
    expect_fid_event(fd, FAN_MOVED_FROM | FAN_MOVED_TO);
    expect_record(FAN_EVENT_INFO_TYPE_FID, ".", NULL);
    no_event(fd);
    OK(unlink("c"));
    forget_events();
    expect_fid_event(fd, FAN_ATTRIB | FAN_DELETE_SELF);
    expect_record(FAN_EVENT_INFO_TYPE_FID, NULL, NULL);
    expect_fid_event(fd, FAN_DELETE);
    no_event(fd);
}

BOTH(fid_with_names)
{
    OK(mkdir("d", 0700));
    OK(mkdir("e", 0700));
    place = OK(open(".", O_RDONLY | O_DIRECTORY));
    int fd = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_REPORT_FID | FAN_NONBLOCK, O_RDONLY));
    OK(fanotify_mark(fd, FAN_MARK_ADD, FAN_CREATE | FAN_DELETE | FAN_MOVE | FAN_OPEN | FAN_CLOSE | FAN_ATTRIB | FAN_RENAME | FAN_EVENT_ON_CHILD | FAN_ONDIR,
                     AT_FDCWD, "d"));
    touch("d/name");
    forget_events();
    expect_fid_event(fd, FAN_CREATE);
    expect_record(FAN_EVENT_INFO_TYPE_DFID_NAME, "d", "name");
    expect_end();
    expect_fid_event(fd, FAN_OPEN | FAN_CLOSE_WRITE);
    expect_record(FAN_EVENT_INFO_TYPE_DFID_NAME, "d", "name");
    expect_record(FAN_EVENT_INFO_TYPE_FID, "d/name", NULL);
    expect_end();
    no_event(fd);
    OK(chmod("d/name", 0644));
    forget_events();
    expect_fid_event(fd, FAN_ATTRIB);
    expect_record(FAN_EVENT_INFO_TYPE_DFID_NAME, "d", "name");
    expect_record(FAN_EVENT_INFO_TYPE_FID, "d/name", NULL);
    OK(rename("d/name", "d/longer-name"));
    forget_events();
    expect_fid_event(fd, FAN_RENAME);
    expect_record(FAN_EVENT_INFO_TYPE_OLD_DFID_NAME, "d", "name");
    expect_record(FAN_EVENT_INFO_TYPE_NEW_DFID_NAME, "d", "longer-name");
    expect_end();
    expect_fid_event(fd, FAN_MOVED_FROM);
    expect_record(FAN_EVENT_INFO_TYPE_DFID_NAME, "d", "name");
    expect_end();
    expect_fid_event(fd, FAN_MOVED_TO);
    expect_record(FAN_EVENT_INFO_TYPE_DFID_NAME, "d", "longer-name");
    OK(rename("d/longer-name", "e/x"));
    forget_events();
    expect_fid_event(fd, FAN_RENAME);
    expect_record(FAN_EVENT_INFO_TYPE_OLD_DFID_NAME, "d", "longer-name");
    expect_end(); /* the other directory is not watched */
    expect_fid_event(fd, FAN_MOVED_FROM);
    OK(rename("e/x", "d/y"));
    forget_events();
    expect_fid_event(fd, FAN_RENAME);
    expect_record(FAN_EVENT_INFO_TYPE_NEW_DFID_NAME, "d", "y");
    expect_end();
    expect_fid_event(fd, FAN_MOVED_TO);
    OK(close(OK(open("d", O_RDONLY))));
    forget_events();
    expect_fid_event(fd, FAN_OPEN | FAN_CLOSE_NOWRITE | FAN_ONDIR);
    expect_record(FAN_EVENT_INFO_TYPE_DFID_NAME, "d", ".");
    expect_end();
    OK(mkdir("d/sub", 0700));
    forget_events();
    expect_fid_event(fd, FAN_CREATE | FAN_ONDIR);
    expect_record(FAN_EVENT_INFO_TYPE_DFID_NAME, "d", "sub");
    OK(rmdir("d/sub"));
    OK(unlink("d/y"));
    forget_events();
    expect_fid_event(fd, FAN_DELETE | FAN_ONDIR);
    expect_record(FAN_EVENT_INFO_TYPE_DFID_NAME, "d", "sub");
    expect_fid_event(fd, FAN_DELETE);
    expect_record(FAN_EVENT_INFO_TYPE_DFID_NAME, "d", "y");
    no_event(fd);
}

TEST(fid_of_targets)
{
    char path[] = "/dev/shm/guest.XXXXXX";
    CHECK(mkdtemp(path));
    OK(chdir(path));
    place = OK(open(".", O_RDONLY | O_DIRECTORY));
    int fd = OK(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_REPORT_FID | FAN_REPORT_TARGET_FID | FAN_NONBLOCK, O_RDONLY));
    touch("w");
    ERR(ENOTDIR, fanotify_mark(fd, FAN_MARK_ADD, FAN_CREATE, AT_FDCWD, "w"));
    OK(fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_CREATE | FAN_RENAME | FAN_ONDIR, AT_FDCWD, "."));
    touch("a");
    forget_events();
    expect_fid_event(fd, FAN_CREATE);
    expect_record(FAN_EVENT_INFO_TYPE_DFID_NAME, ".", "a");
    expect_record(FAN_EVENT_INFO_TYPE_FID, "a", NULL);
    expect_end();
    OK(rename("a", "b"));
    forget_events();
    expect_fid_event(fd, FAN_RENAME);
    expect_record(FAN_EVENT_INFO_TYPE_OLD_DFID_NAME, ".", "a");
    expect_record(FAN_EVENT_INFO_TYPE_NEW_DFID_NAME, ".", "b");
    expect_record(FAN_EVENT_INFO_TYPE_FID, "b", NULL);
    expect_end();
    no_event(fd);
}
