/* SPDX-License-Identifier: Apache-2.0 */
/* Keyrings: add_key, request_key, keyctl. */
#include "tests/guest/guest.h"

#include <linux/keyctl.h>
#include <pthread.h>
#include <sys/fsuid.h>

enum {
    RING_THREAD = -1, RING_PROCESS = -2, RING_SESSION = -3, RING_USER = -4, RING_USER_SESSION = -5,
};

static int add(const char *type, const char *desc, const char *payload, int ring)
{
    return (int)syscall(SYS_add_key, type, desc, payload, payload ? strlen(payload) : 0, ring);
}

static int ctl(int op, long a, long b, long c, long d)
{
    return (int)syscall(SYS_keyctl, op, a, b, c, d);
}

static int request(const char *type, const char *desc, const char *callout, int ring)
{
    return (int)syscall(SYS_request_key, type, desc, callout, ring);
}

static int new_session(void)
{
    return OK(ctl(KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0));
}

static const char *describe(int id)
{
    static char text[4200];
    int n = OK(ctl(KEYCTL_DESCRIBE, id, (long)text, sizeof(text), 0));

    EQ(n, strlen(text) + 1);
    return text;
}

/* Number of keys in a ring; fills list. */
static int list(int ring, int *serials, int max)
{
    return OK(ctl(KEYCTL_READ, ring, (long)serials, max * 4, 0)) / 4;
}

TEST(add_read_update)
{
    char buf[64] = "";
    int s = new_session(), k = OK(add("user", "one", "payload", RING_SESSION)), serials[4];

    STR(describe(k), "user;0;0;3f010000;one");
    EQ(ctl(KEYCTL_READ, k, 0, 0, 0), 7);
    memset(buf, 'x', sizeof(buf));
    EQ(ctl(KEYCTL_READ, k, (long)buf, sizeof(buf), 0), 7);
    CHECK(!memcmp(buf, "payloadx", 8));
    EQ(add("user", "one", "other", RING_SESSION), k);
    EQ(ctl(KEYCTL_READ, k, (long)buf, sizeof(buf), 0), 5);
    CHECK(!memcmp(buf, "other", 5));
    OK(ctl(KEYCTL_UPDATE, k, (long)"third", 5, 0));
    EQ(ctl(KEYCTL_READ, k, (long)buf, sizeof(buf), 0), 5);
    CHECK(!memcmp(buf, "third", 5));
    EQ(list(RING_SESSION, serials, 4), 1);
    EQ(serials[0], k);
    EQ(list(s, serials, 4), 1);
    OK(add("user", "two", "x", RING_SESSION));
    serials[1] = 77;
    EQ(ctl(KEYCTL_READ, s, (long)serials, 4, 0), 8);
    EQ(serials[1], 77);
    STR(describe(s), "keyring;0;0;3f030000;_ses");
    ERR(EFAULT, ctl(KEYCTL_READ, k, (long)guest_unmapped(), 64, 0));
}

TEST(bad_arguments)
{
    char long_type[40], *long_desc = malloc(5000);

    new_session();
    memset(long_type, 'a', 39);
    long_type[39] = 0;
    memset(long_desc, 'd', 4999);
    long_desc[4999] = 0;
    ERR(ENODEV, add("nosuch", "x", "y", RING_SESSION));
    ERR(ENOKEY, request("nosuch", "x", NULL, 0));
    ERR(EINVAL, add("", "x", "y", RING_SESSION));
    ERR(EINVAL, add(long_type, "x", "y", RING_SESSION));
    ERR(EPERM, add(".hidden", "x", "y", RING_SESSION));
    ERR(EPERM, add("keyring", ".x", NULL, RING_SESSION));
    ERR(EINVAL, add("user", "", "y", RING_SESSION));
    ERR(EINVAL, add("user", NULL, "y", RING_SESSION));
    ERR(EINVAL, add("user", long_desc, "y", RING_SESSION));
    ERR(EINVAL, add("user", "x", NULL, RING_SESSION));
    ERR(EINVAL, add("keyring", "x", "y", RING_SESSION));
    ERR(EINVAL, add("logon", "noservice", "y", RING_SESSION));
    ERR(EINVAL, add("logon", ":x", "y", RING_SESSION));
    ERR(EINVAL, add("user", "x", "y", -6));
    ERR(EINVAL, add("user", "x", "y", 0));
    ERR(ENOKEY, add("user", "x", "y", 1));
    ERR(EFAULT, syscall(SYS_add_key, "user", "x", NULL, 10, RING_SESSION));
    ERR(EINVAL, syscall(SYS_add_key, "user", "x", "y", 1 << 20, RING_SESSION));
    ERR(EFAULT, syscall(SYS_add_key, guest_unmapped(), "x", "y", 1, RING_SESSION));
    ERR(EFAULT, request("user", NULL, NULL, 0));
    ERR(ENOTDIR, add("user", "x", "y", OK(add("user", "k", "p", RING_SESSION))));
    ERR(EOPNOTSUPP, ctl(1000, 0, 0, 0, 0));
    ERR(EINVAL, ctl(KEYCTL_SETPERM, RING_SESSION, 0x40000000, 0, 0));
    ERR(EPERM, ctl(KEYCTL_JOIN_SESSION_KEYRING, (long)".builtin", 0, 0, 0));
    ERR(EINVAL, ctl(KEYCTL_SET_REQKEY_KEYRING, 6, 0, 0, 0));
    ERR(EPERM, ctl(KEYCTL_NEGATE, 1, 1, 0, 0));
    ERR(EPERM, ctl(KEYCTL_INSTANTIATE, 1, (long)"x", 1, 0));
    EQ(ctl(KEYCTL_ASSUME_AUTHORITY, 0, 0, 0, 0), 0);
    ERR(ENOKEY, ctl(KEYCTL_ASSUME_AUTHORITY, 5, 0, 0, 0));
    ERR(EINVAL, ctl(KEYCTL_ASSUME_AUTHORITY, -5, 0, 0, 0));
}

TEST(logon_keys_are_not_read)
{
    int k;

    new_session();
    k = OK(add("logon", "svc:x", "secret", RING_SESSION));
    STR(describe(k), "logon;0;0;3d010000;svc:x");
    ERR(EOPNOTSUPP, ctl(KEYCTL_READ, k, 0, 0, 0));
    EQ(ctl(KEYCTL_SEARCH, RING_SESSION, (long)"logon", (long)"svc:x", 0), k);
}

TEST(links_and_moves)
{
    int serials[8], a, b, k, k2, s = new_session();

    a = OK(add("keyring", "a", NULL, RING_SESSION));
    b = OK(add("keyring", "b", NULL, a));
    k = OK(add("user", "k", "1", a));
    EQ(list(a, serials, 8), 2);
    OK(ctl(KEYCTL_LINK, k, b, 0, 0));
    EQ(list(b, serials, 8), 1);
    OK(ctl(KEYCTL_LINK, k, b, 0, 0));
    EQ(list(b, serials, 8), 1);
    ERR(ENOTDIR, ctl(KEYCTL_LINK, k, k, 0, 0));
    ERR(EDEADLK, ctl(KEYCTL_LINK, a, b, 0, 0));
    ERR(EDEADLK, ctl(KEYCTL_LINK, s, b, 0, 0));
    ERR(EDEADLK, ctl(KEYCTL_LINK, a, a, 0, 0));
    OK(ctl(KEYCTL_UNLINK, k, b, 0, 0));
    ERR(ENOENT, ctl(KEYCTL_UNLINK, k, b, 0, 0));
    OK(ctl(KEYCTL_MOVE, k, a, b, KEYCTL_MOVE_EXCL));
    ERR(ENOENT, ctl(KEYCTL_MOVE, k, a, b, 0));
    k2 = OK(add("user", "k", "2", a));
    ERR(EEXIST, ctl(KEYCTL_MOVE, k2, a, b, KEYCTL_MOVE_EXCL));
    ERR(EINVAL, ctl(KEYCTL_MOVE, k2, a, b, 2));
    OK(ctl(KEYCTL_MOVE, k2, a, b, 0));
    EQ(list(b, serials, 8), 1);
    EQ(serials[0], k2);
    /* A keyring of the same name takes the place of the older one. */
    k = OK(add("keyring", "b", NULL, a));
    CHECK(k != b);
    EQ(list(a, serials, 8), 1);
    OK(ctl(KEYCTL_CLEAR, RING_SESSION, 0, 0, 0));
    EQ(list(s, serials, 8), 0);
    sleep_ms(100); /* Linux collects keys in its own time */
    ERR(ENOKEY, ctl(KEYCTL_DESCRIBE, k2, 0, 0, 0));
    ERR(ENOTDIR, ctl(KEYCTL_CLEAR, OK(add("user", "x", "y", s)), 0, 0, 0));
}

TEST(nesting_has_a_limit)
{
    int ring[12], name = 'a';

    new_session();
    for (int i = 0; i < 12; i++, name++)
        ring[i] = OK(add("keyring", (char[]){(char)name, 0}, NULL, RING_SESSION));
    /* From the top down there is none. */
    for (int i = 0; i < 9; i++)
        OK(ctl(KEYCTL_LINK, ring[i + 1], ring[i], 0, 0));
    /* A tree of seven levels may be linked, one of eight not. */
    OK(ctl(KEYCTL_LINK, ring[3], ring[10], 0, 0));
    ERR(ELOOP, ctl(KEYCTL_LINK, ring[2], ring[11], 0, 0));
    OK(add("user", "deep", "x", ring[6]));
    OK(add("user", "deeper", "x", ring[7]));
    OK(ctl(KEYCTL_SEARCH, ring[0], (long)"user", (long)"deep", 0));
    ERR(ENOKEY, ctl(KEYCTL_SEARCH, ring[0], (long)"user", (long)"deeper", 0));
}

TEST(searches_and_rights)
{
    int a, k, d, s = new_session();

    a = OK(add("keyring", "a", NULL, s));
    d = OK(add("keyring", "dest", NULL, s));
    k = OK(add("user", "k", "1", a));
    EQ(ctl(KEYCTL_SEARCH, s, (long)"user", (long)"k", d), k);
    OK(ctl(KEYCTL_UNLINK, k, d, 0, 0));
    ERR(ENOKEY, ctl(KEYCTL_SEARCH, s, (long)"user", (long)"other", 0));
    ERR(ENOKEY, ctl(KEYCTL_SEARCH, s, (long)"nosuch", (long)"k", 0));
    ERR(ENOTDIR, ctl(KEYCTL_SEARCH, k, (long)"user", (long)"k", 0));
    EQ(request("user", "k", NULL, 0), k);
    EQ(request("user", "k", NULL, d), k);
    ERR(ENOKEY, request("user", "other", NULL, 0));
    OK(ctl(KEYCTL_SETPERM, a, 0x37010000, 0, 0)); /* no search by the possessor */
    OK(ctl(KEYCTL_UNLINK, k, d, 0, 0));
    ERR(ENOKEY, ctl(KEYCTL_SEARCH, s, (long)"user", (long)"k", 0));
    ERR(ENOKEY, request("user", "k", NULL, 0));
    ERR(EACCES, ctl(KEYCTL_READ, k, 0, 0, 0)); /* not possessed any more */
    ERR(EACCES, ctl(KEYCTL_SETPERM, a, 0x3f010000, 0, 0));
}

TEST(rights_of_others)
{
    int k, s = new_session();

    k = OK(add("user", "k", "1", s));
    OK(ctl(KEYCTL_SETPERM, k, 0x3f010001, 0, 0));
    OK(ctl(KEYCTL_SETPERM, s, 0x3f030000, 0, 0));
    EXITED(IN_CHILD({
               OK(setresuid(1000, 1000, 1000));
               OK(ctl(KEYCTL_DESCRIBE, k, 0, 0, 0)); /* still possessed: the session stays */
               OK(ctl(KEYCTL_READ, k, 0, 0, 0));
               new_session();
               OK(ctl(KEYCTL_DESCRIBE, k, 0, 0, 0));
               ERR(EACCES, ctl(KEYCTL_READ, k, 0, 0, 0));
               ERR(EACCES, ctl(KEYCTL_REVOKE, k, 0, 0, 0));
               ERR(EACCES, ctl(KEYCTL_LINK, k, RING_SESSION, 0, 0));
               ERR(EACCES, ctl(KEYCTL_CHOWN, k, 1000, -1, 0));
               ERR(EACCES, ctl(KEYCTL_SETPERM, k, 0x3f3f3f3f, 0, 0));
           }),
           0);
    ERR(EACCES, ctl(KEYCTL_CHOWN, k, -1, 100, 0)); /* not a group of ours */
    OK(ctl(KEYCTL_CHOWN, k, -1, -1, 0));
    STR(describe(k), "user;0;0;3f010001;k");
    ERR(EACCES, ctl(KEYCTL_CHOWN, k, 1000, -1, 0)); /* no CAP_SYS_ADMIN */
}

TEST(revoked_expired_invalidated)
{
    int k, s = new_session(), e, serials[4];

    k = OK(add("user", "k", "1", s));
    OK(ctl(KEYCTL_REVOKE, k, 0, 0, 0));
    ERR(EKEYREVOKED, ctl(KEYCTL_DESCRIBE, k, 0, 0, 0));
    ERR(EKEYREVOKED, ctl(KEYCTL_READ, k, 0, 0, 0));
    ERR(EKEYREVOKED, request("user", "k", NULL, 0));
    ERR(EKEYREVOKED, ctl(KEYCTL_SEARCH, s, (long)"user", (long)"k", 0));
    e = OK(add("user", "k", "2", s));
    CHECK(e != k);
    OK(ctl(KEYCTL_SET_TIMEOUT, e, 1, 0, 0));
    OK(ctl(KEYCTL_READ, e, 0, 0, 0));
    sleep_ms(1200);
    ERR(EKEYEXPIRED, ctl(KEYCTL_READ, e, 0, 0, 0));
    ERR(EKEYEXPIRED, ctl(KEYCTL_DESCRIBE, e, 0, 0, 0));
    ERR(ENOKEY, request("user", "k", NULL, 0));
    OK(ctl(KEYCTL_UNLINK, e, s, 0, 0));
    k = OK(add("user", "k", "3", s));
    OK(ctl(KEYCTL_SET_TIMEOUT, k, 100, 0, 0));
    OK(ctl(KEYCTL_SET_TIMEOUT, k, 0, 0, 0));
    OK(ctl(KEYCTL_INVALIDATE, k, 0, 0, 0));
    ERR(ENOKEY, ctl(KEYCTL_DESCRIBE, k, 0, 0, 0));
    sleep_ms(100);
    EQ(list(s, serials, 4), 0);
    OK(ctl(KEYCTL_REVOKE, s, 0, 0, 0));
    ERR(EKEYREVOKED, add("user", "k", "3", RING_SESSION));
}

TEST(negative_keys)
{
    int serials[4], r;

    new_session();
    r = request("user", "wanted", "please", RING_PROCESS);
    CHECK(r == -1 && (errno == ENOKEY || errno == ENOENT)); /* ENOENT: no /sbin/request-key */
    EQ(list(RING_PROCESS, serials, 4), 1);
    ERR(ENOKEY, ctl(KEYCTL_READ, serials[0], 0, 0, 0));
    STR(describe(serials[0]), "user;0;0;3f010000;wanted");
    ERR(ENOKEY, request("user", "wanted", NULL, 0));
    EQ(add("user", "wanted", "now", RING_PROCESS), serials[0]);
    EQ(request("user", "wanted", NULL, 0), serials[0]);
}

static void *look_at_rings(void *arg)
{
    CHECK(OK(ctl(KEYCTL_GET_KEYRING_ID, RING_THREAD, 0, 0, 0)) != *(int *)arg); /* like its maker, it has one */
    EQ(ctl(KEYCTL_GET_KEYRING_ID, RING_PROCESS, 0, 0, 0), ((int *)arg)[1]);
    EQ(ctl(KEYCTL_GET_KEYRING_ID, RING_SESSION, 0, 0, 0), ((int *)arg)[2]);
    return NULL;
}

MODE(rings_after_exec)
{
    ERR(ENOKEY, ctl(KEYCTL_GET_KEYRING_ID, RING_THREAD, 0, 0, 0));
    ERR(ENOKEY, ctl(KEYCTL_GET_KEYRING_ID, RING_PROCESS, 0, 0, 0));
    EQ(ctl(KEYCTL_GET_KEYRING_ID, RING_SESSION, 0, 0, 0), atoi(argv[2]));
    return 0;
}

TEST(inheritance)
{
    int ids[3];
    char text[16];
    pthread_t thread;

    ids[2] = new_session();
    ERR(ENOKEY, ctl(KEYCTL_GET_KEYRING_ID, RING_THREAD, 0, 0, 0));
    ERR(ENOKEY, ctl(KEYCTL_GET_KEYRING_ID, RING_PROCESS, 0, 0, 0));
    ids[0] = OK(ctl(KEYCTL_GET_KEYRING_ID, RING_THREAD, 1, 0, 0));
    ids[1] = OK(ctl(KEYCTL_GET_KEYRING_ID, RING_PROCESS, 1, 0, 0));
    STR(describe(ids[0]), "keyring;0;0;3f010000;_tid");
    STR(describe(ids[1]), "keyring;0;0;3f010000;_pid");
    EQ(ctl(KEYCTL_GET_KEYRING_ID, RING_SESSION, 0, 0, 0), ids[2]);
    CHECK(!pthread_create(&thread, NULL, look_at_rings, ids));
    CHECK(!pthread_join(thread, NULL));
    EXITED(IN_CHILD({
               ERR(ENOKEY, ctl(KEYCTL_GET_KEYRING_ID, RING_THREAD, 0, 0, 0));
               ERR(ENOKEY, ctl(KEYCTL_GET_KEYRING_ID, RING_PROCESS, 0, 0, 0));
               EQ(ctl(KEYCTL_GET_KEYRING_ID, RING_SESSION, 0, 0, 0), ids[2]);
           }),
           0);
    snprintf(text, sizeof(text), "%d", ids[2]);
    EXITED(IN_CHILD(execl("/proc/self/exe", "test", "@rings_after_exec", text, NULL)), 0);
    EQ(setfsuid(55), 0);
    STR(describe(ids[0]), "keyring;55;0;3f010000;_tid");
}

TEST(user_keyrings)
{
    int u, us, serials[8], n, found = 0;

    OK(setresuid(4242, 4242, 4242));
    new_session();
    u = OK(ctl(KEYCTL_GET_KEYRING_ID, RING_USER, 0, 0, 0));
    us = OK(ctl(KEYCTL_GET_KEYRING_ID, RING_USER_SESSION, 0, 0, 0));
    STR(describe(u), "keyring;4242;65534;1f3f0000;_uid.4242"); /* no group */
    STR(describe(us), "keyring;4242;65534;1f3f0000;_uid_ses.4242");
    n = list(us, serials, 8);
    for (int i = 0; i < n; i++)
        found += serials[i] == u;
    EQ(found, 1);
    OK(ctl(KEYCTL_SETPERM, us, 0x1f3f0000, 0, 0));
    EXITED(IN_CHILD(EQ(ctl(KEYCTL_GET_KEYRING_ID, RING_USER, 0, 0, 0), u)), 0);
    OK(ctl(KEYCTL_CLEAR, u, 0, 0, 0));
}

TEST(named_sessions)
{
    int a = OK(ctl(KEYCTL_JOIN_SESSION_KEYRING, (long)"guest-named", 0, 0, 0));

    STR(describe(a), "keyring;0;0;3f130000;guest-named");
    EXITED(IN_CHILD({
               new_session();
               /* Only who may search it without possessing it may join; else there is a second one. */
               CHECK(OK(ctl(KEYCTL_JOIN_SESSION_KEYRING, (long)"guest-named", 0, 0, 0)) != a);
           }),
           0);
    OK(ctl(KEYCTL_SETPERM, a, 0x3f1b0000, 0, 0));
    EXITED(IN_CHILD({
               new_session();
               EQ(ctl(KEYCTL_JOIN_SESSION_KEYRING, (long)"guest-named", 0, 0, 0), a);
           }),
           0);
}

TEST(session_to_parent)
{
    int before = new_session(), fds[2], now;

    OK(pipe(fds));
    EXITED(IN_CHILD({
               int s = new_session();

               OK(ctl(KEYCTL_SESSION_TO_PARENT, 0, 0, 0, 0));
               EQ(write(fds[1], &s, sizeof(s)), sizeof(s));
           }),
           0);
    EQ(read(fds[0], &now, sizeof(now)), sizeof(now));
    CHECK(now != before);
    EQ(ctl(KEYCTL_GET_KEYRING_ID, RING_SESSION, 0, 0, 0), now);
    EXITED(IN_CHILD({
               OK(setresuid(1000, 1000, 1000));
               new_session();
               ERR(EPERM, ctl(KEYCTL_SESSION_TO_PARENT, 0, 0, 0, 0));
           }),
           0);
}

TEST(restricted_keyrings)
{
    int k, r, s = new_session();

    r = OK(add("keyring", "r", NULL, s));
    k = OK(add("user", "k", "1", s));
    OK(add("user", "inside", "1", r));
    ERR(EINVAL, ctl(KEYCTL_RESTRICT_KEYRING, r, 0, (long)"x", 0));
    ERR(ENOENT, ctl(KEYCTL_RESTRICT_KEYRING, r, (long)"user", (long)"x", 0));
    ERR(ENOTDIR, ctl(KEYCTL_RESTRICT_KEYRING, k, 0, 0, 0));
    OK(ctl(KEYCTL_RESTRICT_KEYRING, r, 0, 0, 0));
    ERR(EEXIST, ctl(KEYCTL_RESTRICT_KEYRING, r, 0, 0, 0));
    ERR(EPERM, ctl(KEYCTL_LINK, k, r, 0, 0));
    ERR(EPERM, add("user", "new", "1", r));
    EQ(list(r, &k, 1), 1);
}

TEST(quota_of_a_user)
{
    char text[16], big[20001];
    int n = 0;

    OK(setresuid(4343, 4343, 4343));
    new_session();
    memset(big, 'x', 20000);
    big[20000] = 0;
    ERR(EDQUOT, add("user", "big", big, RING_SESSION));
    for (; n < 300; n++) {
        snprintf(text, sizeof(text), "k%d", n);
        if (add("user", text, "x", RING_SESSION) == -1)
            break;
    }
    EQ(errno, EDQUOT);
    CHECK(n > 190 && n < 200);
    OK(ctl(KEYCTL_CLEAR, RING_SESSION, 0, 0, 0));
    sleep_ms(200);
    OK(add("user", "again", "x", RING_SESSION));
}

TEST(default_destination)
{
    int serials[4], t;

    new_session();
    EQ(ctl(KEYCTL_SET_REQKEY_KEYRING, -1, 0, 0, 0), 0);
    EQ(ctl(KEYCTL_SET_REQKEY_KEYRING, KEY_REQKEY_DEFL_THREAD_KEYRING, 0, 0, 0), 0);
    t = OK(ctl(KEYCTL_GET_KEYRING_ID, RING_THREAD, 0, 0, 0));
    EQ(ctl(KEYCTL_SET_REQKEY_KEYRING, KEY_REQKEY_DEFL_THREAD_KEYRING, 0, 0, 0), KEY_REQKEY_DEFL_THREAD_KEYRING);
    EQ(ctl(KEYCTL_GET_KEYRING_ID, RING_THREAD, 0, 0, 0), t);
    CHECK(request("user", "wanted", "please", 0) == -1);
    EQ(list(t, serials, 4), 1);
    OK(ctl(KEYCTL_SETPERM, RING_SESSION, 0x0b000000, 0, 0));
    OK(ctl(KEYCTL_SET_REQKEY_KEYRING, KEY_REQKEY_DEFL_SESSION_KEYRING, 0, 0, 0));
    ERR(EACCES, request("user", "other", "please", 0));
}

TEST(keys_in_proc)
{
    char *text, want[64];
    int k, ring;

    ring = new_session();
    k = OK(add("user", "shown", "12345", RING_SESSION));
    text = guest_read_file("/proc/keys");
    snprintf(want, sizeof(want), "%08x I--Q---", k);
    CHECK(strstr(text, want));
    CHECK(strstr(text, "perm 3f010000     0     0 user      shown: 5\n"));
    snprintf(want, sizeof(want), "%08x I--Q---", ring);
    CHECK(strstr(text, want));
    CHECK(strstr(text, "keyring   _ses: 1\n"));
    text = guest_read_file("/proc/key-users");
    CHECK(strstr(text, "    0: "));
    CHECK(atoi(guest_read_file("/proc/sys/kernel/keys/maxkeys")) == 200);
    OK(setresuid(1000, 1000, 1000));
    new_session();
    snprintf(want, sizeof(want), "%08x ", k);
    CHECK(!strstr(guest_read_file("/proc/keys"), want));
}

TEST(capability_bytes)
{
    unsigned char caps[6] = {9, 9, 9, 9, 9, 9};

    EQ(ctl(KEYCTL_CAPABILITIES, (long)caps, 5, 0, 0), 2);
    CHECK(caps[0] & KEYCTL_CAPS0_INVALIDATE && caps[0] & KEYCTL_CAPS0_MOVE && caps[0] & KEYCTL_CAPS0_RESTRICT_KEYRING);
    EQ(caps[4], 0);
    EQ(caps[5], 9);
}
