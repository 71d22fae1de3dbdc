/* SPDX-License-Identifier: Apache-2.0 */
/* System V objects and POSIX message queues. */
#include "tests/guest/guest.h"

#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

TEST(shm_is_shared_and_counted)
{
    struct shmid_ds ds;
    int id = OK(shmget(0x4711, 10000, IPC_CREAT | IPC_EXCL | 0600));
    ERR(EEXIST, shmget(0x4711, 10000, IPC_CREAT | IPC_EXCL | 0600));
    ERR(EINVAL, shmget(0x4711, 20000, 0));
    EQ(shmget(0x4711, 100, 0), id);
    char *p = shmat(id, NULL, 0);
    CHECK(p != (void *)-1);
    strcpy(p, "parent");
    if (!OK(fork())) {
        CHECK(!strcmp(p, "parent"));
        strcpy(p + 9000, "child");
        char *ro = shmat(id, NULL, SHM_RDONLY);
        CHECK(ro != (void *)-1 && !strcmp(ro + 9000, "child"));
        _exit(0);
    }
    int status;
    OK(wait(&status));
    EQ(status, 0);
    CHECK(!strcmp(p + 9000, "child"));
    OK(shmctl(id, IPC_STAT, &ds));
    EQ(ds.shm_nattch, 1);
    EQ(ds.shm_segsz, 10000);
    EQ(ds.shm_cpid, getpid());
    OK(shmctl(id, IPC_RMID, NULL));
    ERR(ENOENT, shmget(0x4711, 100, 0));
    OK(shmctl(id, IPC_STAT, &ds)); /* lives until the last one lets go */
    CHECK(ds.shm_perm.mode & SHM_DEST);
    OK(shmdt(p));
    ERR(EINVAL, shmdt(p));
    ERR(EINVAL, shmctl(id, IPC_STAT, &ds));
}

TEST(shm_at_an_address)
{
    int id = OK(shmget(IPC_PRIVATE, 8192, 0600));
    char *hole = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EQ((long)shmat(id, hole + 4096, 0), -1);
    EQ(errno, EINVAL);
    CHECK(shmat(id, hole + 4096, SHM_REMAP) == hole + 4096);
    hole[4096 + 8191] = 1;
    OK(shmdt(hole + 4096));
    OK(munmap(hole, 65536));
    EQ((long)shmat(id, hole + 1, 0), -1);
    EQ(errno, EINVAL);
    CHECK(shmat(id, hole + 1, SHM_RND) == hole);
    OK(shmctl(id, IPC_RMID, NULL));
    OK(shmdt(hole));
}

static int sem_do(int id, int num, int op, int flags)
{
    struct sembuf b = {(unsigned short)num, (short)op, (short)flags};
    return semop(id, &b, 1);
}

TEST(sem_all_or_none)
{
    int id = OK(semget(IPC_PRIVATE, 3, 0600));
    unsigned short v[3] = {2, 0, 5};
    OK(semctl(id, 0, SETALL, v));
    struct sembuf both[2] = {{0, -1, IPC_NOWAIT}, {1, -1, IPC_NOWAIT}};
    ERR(EAGAIN, semop(id, both, 2));
    EQ(semctl(id, 0, GETVAL), 2);
    both[1].sem_op = 1;
    OK(semop(id, both, 2));
    OK(semctl(id, 0, GETALL, v));
    CHECK(v[0] == 1 && v[1] == 1 && v[2] == 5);
    EQ(semctl(id, 0, GETPID), getpid());
    ERR(EFBIG, sem_do(id, 3, 1, 0));
    ERR(ERANGE, sem_do(id, 2, 32767, 0));
    struct timespec soon = {0, 20000000};
    struct sembuf wait_zero = {0, 0, 0};
    ERR(EAGAIN, semtimedop(id, &wait_zero, 1, &soon));
    OK(semctl(id, 0, IPC_RMID));
    ERR(EINVAL, sem_do(id, 0, 1, 0));
}

TEST(sem_undo_at_exit_and_sleepers)
{
    int id = OK(semget(IPC_PRIVATE, 1, 0600));
    OK(semctl(id, 0, SETVAL, 1));
    if (!OK(fork())) {
        OK(sem_do(id, 0, -1, SEM_UNDO));
        sleep_ms(100);
        _exit(0);
    }
    while (semctl(id, 0, GETVAL))
        sleep_ms(5);
    OK(sem_do(id, 0, -1, 0)); /* until the child is gone */
    wait(NULL);
    if (!OK(fork())) {
        ERR(EIDRM, sem_do(id, 0, -1, 0));
        _exit(0);
    }
    while (semctl(id, 0, GETNCNT) != 1)
        sleep_ms(5);
    OK(semctl(id, 0, IPC_RMID));
    int status;
    OK(wait(&status));
    EQ(status, 0);
}

struct text {
    long type;
    char text[64];
};

TEST(msg_types_and_limits)
{
    struct text m = {3, "three"};
    struct msqid_ds ds;
    int id = OK(msgget(IPC_PRIVATE, 0600));
    OK(msgsnd(id, &m, 6, 0));
    m = (struct text){1, "one"};
    OK(msgsnd(id, &m, 4, 0));
    m = (struct text){2, "two"};
    OK(msgsnd(id, &m, 4, 0));
    OK(msgctl(id, IPC_STAT, &ds));
    EQ(ds.msg_qnum, 3);
    EQ(ds.__msg_cbytes, 14);
    EQ(msgrcv(id, &m, 64, -2, 0), 4);
    EQ(m.type, 1);
    EQ(msgrcv(id, &m, 64, 3, MSG_EXCEPT), 4);
    EQ(m.type, 2);
    ERR(E2BIG, msgrcv(id, &m, 2, 0, 0));
    EQ(msgrcv(id, &m, 2, 0, MSG_NOERROR), 2);
    ERR(ENOMSG, msgrcv(id, &m, 64, 0, IPC_NOWAIT));
    m.type = 0;
    ERR(EINVAL, msgsnd(id, &m, 1, 0));
    m.type = 1;
    ERR(EINVAL, msgsnd(id, &m, 100000, 0));
    int n = 0;
    while (!msgsnd(id, &m, 64, IPC_NOWAIT))
        n++;
    EQ(errno, EAGAIN);
    EQ(n, 16384 / 64);
    if (!OK(fork())) {
        OK(msgsnd(id, &m, 64, 0));
        _exit(0);
    }
    sleep_ms(30);
    EQ(msgrcv(id, &m, 64, 0, 0), 64);
    int status;
    OK(wait(&status));
    EQ(status, 0);
    OK(msgctl(id, IPC_RMID, NULL));
    ERR(EINVAL, msgrcv(id, &m, 64, 0, 0));
}

static volatile int notified;

static void on_notify(int sig, siginfo_t *info, void *uc)
{
    notified = info->si_code == SI_MESGQ ? info->si_value.sival_int : -1;
}

TEST(mq_priorities_and_notification)
{
    struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 32}, got;
    char buf[32];
    unsigned prio;
    mq_unlink("/cloister-test");
    ERR(ENOENT, mq_open("/cloister-test", O_RDWR));
    mqd_t q = OK(mq_open("/cloister-test", O_RDWR | O_CREAT | O_EXCL, 0600, &attr));
    ERR(EEXIST, mq_open("/cloister-test", O_RDWR | O_CREAT | O_EXCL, 0600, &attr));
    OK(mq_getattr(q, &got));
    CHECK(got.mq_maxmsg == 4 && got.mq_msgsize == 32 && got.mq_curmsgs == 0);
    struct sigaction sa = {.sa_sigaction = on_notify, .sa_flags = SA_SIGINFO};
    OK(sigaction(SIGUSR1, &sa, NULL));
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 77};
    OK(mq_notify(q, &ev));
    ERR(EBUSY, mq_notify(q, &ev));
    OK(mq_send(q, "low", 4, 1));
    EQ(notified, 77);
    OK(mq_notify(q, &ev)); /* once only */
    OK(mq_notify(q, NULL));
    OK(mq_send(q, "high", 5, 9));
    OK(mq_send(q, "low2", 5, 1));
    EQ(mq_receive(q, buf, 32, &prio), 5);
    CHECK(prio == 9 && !strcmp(buf, "high"));
    EQ(mq_receive(q, buf, 32, &prio), 4);
    CHECK(!strcmp(buf, "low"));
    EQ(mq_receive(q, buf, 32, NULL), 5);
    ERR(EMSGSIZE, mq_receive(q, buf, 31, NULL));
    ERR(EMSGSIZE, mq_send(q, buf, 33, 0));
    struct timespec past = {1, 0};
    ERR(ETIMEDOUT, mq_timedreceive(q, buf, 32, NULL, &past));
    mqd_t nb = OK(mq_open("/cloister-test", O_RDONLY | O_NONBLOCK));
    ERR(EAGAIN, mq_receive(nb, buf, 32, NULL));
    ERR(EBADF, mq_send(nb, "x", 1, 0));
    OK(mq_unlink("/cloister-test"));
    ERR(ENOENT, mq_unlink("/cloister-test"));
    OK(mq_send(q, "still", 6, 0));
    EQ(mq_receive(nb, buf, 32, NULL), 6);
}

TEST(mq_between_processes)
{
    char buf[8192];
    mqd_t q = OK(mq_open("/cloister-test2", O_RDWR | O_CREAT, 0600, NULL));
    if (!OK(fork())) {
        for (int i = 0; i < 100; i++)
            OK(mq_send(q, (char *)&i, sizeof(i), 0)); /* waits whenever ten are there */
        _exit(0);
    }
    sleep_ms(50);
    for (int i = 0; i < 100; i++) {
        EQ(mq_receive(q, buf, sizeof(buf), NULL), sizeof(i));
        EQ(*(int *)buf, i);
    }
    wait(NULL);
    OK(mq_unlink("/cloister-test2"));
}

TEST(mq_notify_without_signal)
{
    mq_unlink("/cloister-none");
    mqd_t q = OK(mq_open("/cloister-none", O_RDWR | O_CREAT | O_EXCL, 0600, NULL));
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 65};
    ERR(EINVAL, mq_notify(q, &ev));
    ev.sigev_signo = -1;
    ERR(EINVAL, mq_notify(q, &ev));
    ev.sigev_signo = 0; /* registers, as for any signal, and nothing is sent */
    OK(mq_notify(q, &ev));
    ERR(EBUSY, mq_notify(q, &ev));
    OK(mq_send(q, "x", 1, 0));
    OK(mq_notify(q, &ev));
    OK(mq_close(q));
    OK(mq_unlink("/cloister-none"));
}

TEST(mq_files_make_queues)
{
    struct stat st;
    struct mq_attr attr;
    char text[200];
    unlink("/dev/mqueue/cloister-file");
    umask(022);
    int fd = OK(open("/dev/mqueue/cloister-file", O_RDWR | O_CREAT | O_EXCL, 0666));
    OK(fstat(fd, &st));
    CHECK(S_ISREG(st.st_mode));
    EQ(st.st_mode & 0777, 0644);
    CHECK(read(fd, text, sizeof(text)) > 0 && !strncmp(text, "QSIZE:0 ", 8));
    OK(close(fd));
    ERR(EEXIST, mq_open("/cloister-file", O_RDWR | O_CREAT | O_EXCL, 0600, NULL));
    mqd_t q = OK(mq_open("/cloister-file", O_RDWR));
    OK(mq_getattr(q, &attr));
    EQ(attr.mq_maxmsg, 10);
    EQ(attr.mq_msgsize, 8192);
    OK(unlink("/dev/mqueue/cloister-file"));
    ERR(ENOENT, mq_unlink("/cloister-file"));
    ERR(ENOENT, access("/dev/mqueue/cloister-file", F_OK));
    OK(mq_send(q, "x", 1, 0));
    ERR(EPERM, mkdir("/dev/mqueue/d", 0777));
}
