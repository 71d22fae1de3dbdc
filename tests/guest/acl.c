/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX ACLs: what they grant, what is inherited, how they agree with mode bits, and who may change them. */
#include "tests/guest/guest.h"

#include <grp.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#define ACCESS "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"
#define NONE ((uint32_t)ACL_UNDEFINED_ID)

struct list {
    struct posix_acl_xattr_header head;
    struct posix_acl_xattr_entry e[8];
};

/* Text as "u::6,u:1002:4,g::4,g:5:7,m::6,o::0". Return: the value's size. */
static size_t parse(const char *text, struct list *l)
{
    size_t n = 0;
    memset(l, 0, sizeof(*l));
    l->head.a_version = POSIX_ACL_XATTR_VERSION;
    for (const char *p = text; *p; n++) {
        char kind = *p;
        char *end;
        p += 2;
        uint32_t id = NONE;
        if (*p != ':') {
            id = (uint32_t)strtoul(p, &end, 10);
            p = end;
        }
        uint16_t perm = (uint16_t)strtoul(p + 1, &end, 8);
        p = end + (*end == ',');
        bool named = id != NONE;
        uint16_t tag = kind == 'u' ? (named ? ACL_USER : ACL_USER_OBJ) : kind == 'g' ? (named ? ACL_GROUP : ACL_GROUP_OBJ)
                       : kind == 'm' ? ACL_MASK : ACL_OTHER;
        l->e[n] = (struct posix_acl_xattr_entry){.e_tag = tag, .e_perm = perm, .e_id = id};
    }
    return sizeof(l->head) + n * sizeof(l->e[0]);
}

static int set_acl(const char *path, const char *name, const char *text)
{
    struct list l;
    size_t size = parse(text, &l);
    return setxattr(path, name, &l, size, 0);
}

static const char *acl_of(const char *path, const char *name)
{
    static char text[256];
    struct list l;
    ssize_t n = getxattr(path, name, &l, sizeof(l));
    if (n < 0)
        return errno == ENODATA ? "none" : strerror(errno);
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < (n - sizeof(l.head)) / sizeof(l.e[0]); i++) {
        const struct posix_acl_xattr_entry *e = &l.e[i];
        char kind = e->e_tag == ACL_USER || e->e_tag == ACL_USER_OBJ ? 'u' : e->e_tag == ACL_GROUP || e->e_tag == ACL_GROUP_OBJ ? 'g'
                    : e->e_tag == ACL_MASK ? 'm' : 'o';
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%c:", i ? "," : "", kind);
        if (e->e_id != NONE)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%u", e->e_id);
        at += (size_t)snprintf(text + at, sizeof(text) - at, ":%o", e->e_perm);
    }
    return text;
}

static void become(uid_t uid, gid_t gid, gid_t group)
{
    OK(setgroups(1, &group));
    OK(setresgid(gid, gid, gid));
    OK(setresuid(uid, uid, uid));
}

#define AS2(uid, gid, group, ...) EXITED(IN_CHILD(become((uid), (gid), (group)); __VA_ARGS__), 0)
#define AS(uid, gid, ...) AS2(uid, gid, gid, __VA_ARGS__)

static int try_open(const char *path, int flags)
{
    int fd = open(path, flags, 0666);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* A mount may refuse execution whatever the rights are. */
static bool can_run(const char *path)
{
    struct statvfs st;
    OK(statvfs(path, &st));
    return !(st.f_flag & ST_NOEXEC);
}

static unsigned rights(const char *path)
{
    return (access(path, R_OK) ? 0U : 4U) | (access(path, W_OK) ? 0U : 2U) | (access(path, X_OK) ? 0U : 1U);
}
#define RIGHTS(path, want) EQ(rights(path), (want) & (can_run(path) ? 7U : 6U))

static void make(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
    int fd = OK(open(path, O_CREAT | O_EXCL | O_RDWR, 0600));
    OK(fchown(fd, uid, gid));
    OK(fchmod(fd, mode));
    OK(close(fd));
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    OK(stat(path, &st));
    return st.st_mode & 07777;
}

static void start(void)
{
    umask(022);
    OK(chmod(".", 0777));
}

BOTH(grants)
{
    start();
    make("f", 0640, 1001, 1005);
    STR(acl_of("f", ACCESS), "none");
    OK(set_acl("f", ACCESS, "u::6,u:1002:7,u:1003:0,g::4,g:1006:2,g:1007:5,m::6,o::1"));
    EQ(mode_of("f"), 0661); /* the mask shows as the group's bits */
    STR(acl_of("f", ACCESS), "u::6,u:1002:7,u:1003:0,g::4,g:1006:2,g:1007:5,m::6,o::1");
    AS(1001, 1001, RIGHTS("f", 6));
    AS(1002, 1002, RIGHTS("f", 6); EQ(try_open("f", O_RDWR), 0)); /* clipped by the mask */
    AS(1003, 1005, RIGHTS("f", 0); EQ(try_open("f", O_RDONLY), EACCES)); /* a named user is no group member */
    AS(1004, 1005, RIGHTS("f", 4));
    AS2(1004, 1004, 1006, RIGHTS("f", 2); EQ(try_open("f", O_WRONLY), 0); EQ(try_open("f", O_RDONLY), EACCES));
    AS2(1004, 1004, 1007, RIGHTS("f", 4));
    /* Rights of several groups are not added up. */
    AS2(1004, 1005, 1006, RIGHTS("f", 6); EQ(try_open("f", O_RDWR), EACCES));
    AS(1004, 1004, RIGHTS("f", 1));
    /* A mode without rights for the group class hides the list, and others have theirs. */
    OK(chmod("f", 0601));
    STR(acl_of("f", ACCESS), "u::6,u:1002:7,u:1003:0,g::4,g:1006:2,g:1007:5,m::0,o::1");
    AS(1002, 1002, EQ(rights("f") & 6, 0));
    AS(1004, 1004, RIGHTS("f", 1));
    OK(chmod("f", 0751));
    STR(acl_of("f", ACCESS), "u::7,u:1002:7,u:1003:0,g::4,g:1006:2,g:1007:5,m::5,o::1");
    AS(1002, 1002, RIGHTS("f", 5));
    AS2(1004, 1004, 1006, RIGHTS("f", 0));
    OK(removexattr("f", ACCESS));
    STR(acl_of("f", ACCESS), "none");
    EQ(mode_of("f"), 0751);
    AS(1002, 1002, RIGHTS("f", 1));
    AS(1004, 1005, RIGHTS("f", 5));
}

BOTH(directory_rights)
{
    start();
    OK(mkdir("d", 0700));
    make("d/f", 0644, 0, 0);
    AS(1002, 1002, EQ(try_open("d/f", O_RDONLY), EACCES));
    OK(set_acl("d", ACCESS, "u::7,u:1002:5,u:1003:7,g::0,m::7,o::0"));
    AS(1002, 1002, EQ(try_open("d/f", O_RDONLY), 0); EQ(try_open("d/g", O_CREAT | O_WRONLY), EACCES); ERR(EACCES, unlink("d/f")));
    AS(1003, 1003, EQ(try_open("d/g", O_CREAT | O_WRONLY), 0); OK(unlink("d/g")); OK(rename("d/f", "d/h")));
    AS(1004, 1004, EQ(try_open("d/h", O_RDONLY), EACCES));
    OK(set_acl("d", ACCESS, "u::7,u:1002:0,g::5,m::5,o::5"));
    AS(1002, 1002, EQ(try_open("d/h", O_RDONLY), EACCES));
    AS(1004, 1004, EQ(try_open("d/h", O_RDONLY), 0));
}

BOTH(modes)
{
    start();
    make("f", 0600, 0, 0);
    /* What mode bits can say is kept as these alone. */
    OK(set_acl("f", ACCESS, "u::7,g::5,o::4"));
    EQ(mode_of("f"), 0754);
    STR(acl_of("f", ACCESS), "none");
    OK(set_acl("f", ACCESS, "u::7,g::5,m::4,o::4"));
    EQ(mode_of("f"), 0744);
    STR(acl_of("f", ACCESS), "u::7,g::5,m::4,o::4");
    int fd = OK(open("f", O_RDONLY));
    OK(fchmod(fd, 0660));
    STR(acl_of("f", ACCESS), "u::6,g::5,m::6,o::0");
    char names[64];
    ssize_t n = OK(listxattr("f", names, sizeof(names)));
    EQ(n, sizeof(ACCESS));
    STR(names, ACCESS);
    char small[4];
    ERR(ERANGE, getxattr("f", ACCESS, small, sizeof(small)));
    EQ(getxattr("f", ACCESS, NULL, 0), 4 + 4 * 8);
    OK(setxattr("f", ACCESS, NULL, 0, 0)); /* an empty value removes */
    STR(acl_of("f", ACCESS), "none");
    /* An owner outside the group can't keep set-group-id this way either. */
    OK(chown("f", 1001, 1005));
    OK(chmod("f", 02770));
    AS(1001, 1001, OK(set_acl("f", ACCESS, "u::7,u:1002:7,g::7,m::7,o::0")));
    EQ(mode_of("f"), 0770);
    OK(chmod("f", 02770));
    AS2(1001, 1001, 1005, OK(set_acl("f", ACCESS, "u::7,u:1002:7,g::7,m::5,o::0")));
    EQ(mode_of("f"), 02750);
}

BOTH(refused)
{
    start();
    make("f", 0666, 1001, 1001);
    OK(mkdir("d", 0700));
    AS(1002, 1002, ERR(EPERM, set_acl("f", ACCESS, "u::7,g::5,o::4")); ERR(EPERM, removexattr("f", ACCESS)));
    AS(1001, 1001, OK(set_acl("f", ACCESS, "u::7,g::5,o::4")));
    ERR(EACCES, set_acl("f", DEFAULT, "u::7,g::5,o::4"));
    OK(removexattr("f", DEFAULT));
    ERR(ENODATA, getxattr("f", DEFAULT, NULL, 0));
    static const char *const wrong[] = {
        "u::7,g::5", "u::7,o::5", "g::5,o::4", "u::7,u:5:7,g::5,o::4", "u::7,g::5,g:5:5,o::4", "u::7,g::5,o::4,o::4",
        "u::7,u::7,g::5,o::4", "u::7,g::5,g::5,o::4", "g::5,u::7,o::4", "u::7,g::5,m::7,m::7,o::4", "u::7,g::5,o::4,m::7", "u::10,g::5,o::4",
        "u:5:7,u::7,g::5,m::7,o::4", "u::7,g:4:4,g::5,m::7,o::4",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        errno = 0;
        if (!set_acl("f", ACCESS, wrong[i]) || errno != EINVAL)
            FAIL("\"%s\" gives errno %d", wrong[i], errno);
    }
    struct list l;
    size_t size = parse("u::7,g::5,o::4", &l);
    ERR(EINVAL, setxattr("f", ACCESS, &l, size - 1, 0));
    ERR(EINVAL, setxattr("f", ACCESS, &l, 3, 0));
    l.e[1].e_tag = 0x33;
    ERR(EINVAL, setxattr("f", ACCESS, &l, size, 0));
    l.e[1].e_tag = ACL_USER; /* without an id */
    ERR(EINVAL, setxattr("f", ACCESS, &l, size, 0));
    size = parse("u::7,g::5,o::4", &l);
    l.head.a_version = 3;
    ERR(EOPNOTSUPP, setxattr("f", ACCESS, &l, size, 0));
    OK(symlink("f", "l"));
    l.head.a_version = POSIX_ACL_XATTR_VERSION;
    ERR(EOPNOTSUPP, lsetxattr("l", ACCESS, &l, size, 0));
    ERR(EOPNOTSUPP, lgetxattr("l", ACCESS, &l, size));
    ERR(EOPNOTSUPP, setxattr("f", "system.other", &l, size, 0));
    OK(setxattr("l", ACCESS, &l, size, 0));
    /* Where there are no lists: */
    ERR(EOPNOTSUPP, getxattr("/proc/self/status", ACCESS, NULL, 0));
    ERR(EOPNOTSUPP, setxattr("/proc/self/status", ACCESS, &l, size, 0));
}

BOTH(inherited)
{
    start();
    OK(mkdir("d", 0777));
    OK(set_acl("d", DEFAULT, "u::7,u:1002:7,g::5,m::7,o::5"));
    EQ(mode_of("d"), 0755);
    STR(acl_of("d", ACCESS), "none");
    STR(acl_of("d", DEFAULT), "u::7,u:1002:7,g::5,m::7,o::5");
    umask(077); /* has no say here */
    close(OK(open("d/f", O_CREAT | O_WRONLY, 0666)));
    EQ(mode_of("d/f"), 0664);
    STR(acl_of("d/f", ACCESS), "u::6,u:1002:7,g::5,m::6,o::4");
    STR(acl_of("d/f", DEFAULT), "none");
    AS(1002, 1002, RIGHTS("d/f", 6));
    AS(1003, 1003, RIGHTS("d/f", 4));
    close(OK(open("d/g", O_CREAT | O_WRONLY, 0600)));
    EQ(mode_of("d/g"), 0600);
    STR(acl_of("d/g", ACCESS), "u::6,u:1002:7,g::5,m::0,o::0");
    OK(mkdir("d/s", 0770));
    EQ(mode_of("d/s"), 0770);
    STR(acl_of("d/s", ACCESS), "u::7,u:1002:7,g::5,m::7,o::0");
    STR(acl_of("d/s", DEFAULT), "u::7,u:1002:7,g::5,m::7,o::5");
    OK(mknod("d/p", S_IFIFO | 0644, 0));
    STR(acl_of("d/p", ACCESS), "u::6,u:1002:7,g::5,m::4,o::4");
    OK(symlink("f", "d/l"));
    close(OK(open("d/s/f", O_CREAT | O_WRONLY, 0660)));
    STR(acl_of("d/s/f", ACCESS), "u::6,u:1002:7,g::5,m::6,o::0");
    int fd = OK(open("d", O_TMPFILE | O_RDWR, 0640));
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    STR(acl_of(path, ACCESS), "u::6,u:1002:7,g::5,m::4,o::0");
    OK(linkat(AT_FDCWD, path, AT_FDCWD, "d/t", AT_SYMLINK_FOLLOW));
    STR(acl_of("d/t", ACCESS), "u::6,u:1002:7,g::5,m::4,o::0");
    close(fd);
    /* By somebody else, with an owner to be changed. */
    OK(chmod("d", 0777));
    AS(1003, 1003, umask(077); close(OK(open("d/by", O_CREAT | O_WRONLY, 0666))); OK(mkdir("d/byd", 0777)));
    STR(acl_of("d/by", ACCESS), "u::6,u:1002:7,g::5,m::6,o::4");
    STR(acl_of("d/byd", ACCESS), "u::7,u:1002:7,g::5,m::7,o::5");
    /* A list that is no more than mode bits decides these instead of the umask. */
    OK(set_acl("d", DEFAULT, "u::7,g::7,o::1"));
    close(OK(open("d/h", O_CREAT | O_WRONLY, 0666)));
    EQ(mode_of("d/h"), 0660);
    STR(acl_of("d/h", ACCESS), "none");
    OK(mkdir("d/u", 0777));
    EQ(mode_of("d/u"), 0771);
    STR(acl_of("d/u", DEFAULT), "u::7,g::7,o::1");
    OK(removexattr("d", DEFAULT));
    close(OK(open("d/i", O_CREAT | O_WRONLY, 0666)));
    EQ(mode_of("d/i"), 0600);
    /* Moving in inherits nothing. */
    make("out", 0644, 0, 0);
    OK(set_acl("d", DEFAULT, "u::7,u:1002:7,g::5,m::7,o::5"));
    OK(rename("out", "d/in"));
    STR(acl_of("d/in", ACCESS), "none");
}

BOTH(own_namespace)
{
    /* Ids are those of who looks. */
    start();
    make("f", 0644, 1001, 1001);
    OK(set_acl("f", ACCESS, "u::6,u:1002:4,g::4,m::4,o::4"));
    int p[2], q[2];
    OK(pipe(p));
    OK(pipe(q));
    pid_t pid = OK(fork());
    if (!pid) {
        char c;
        OK(unshare(CLONE_NEWUSER));
        EQ(write(p[1], "", 1), 1);
        EQ(read(q[0], &c, 1), 1);
        STR(acl_of("f", ACCESS), "u::6,u:2:4,g::4,m::4,o::4");
        OK(set_acl("f", ACCESS, "u::6,u:3:4,g::4,m::4,o::4"));
        ERR(EINVAL, set_acl("f", ACCESS, "u::6,u:1002:4,g::4,m::4,o::4"));
        _exit(0);
    }
    char c, path[64];
    EQ(read(p[0], &c, 1), 1);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "/proc/%d/%cid_map", pid, i ? 'g' : 'u');
        int fd = OK(open(path, O_WRONLY));
        EQ(write(fd, "0 1000 100", 10), 10);
        close(fd);
    }
    EQ(write(q[1], "", 1), 1);
    int status;
    EQ(OK(waitpid(pid, &status, 0)), pid);
    EXITED(status, 0);
    STR(acl_of("f", ACCESS), "u::6,u:1003:4,g::4,m::4,o::4");
}
