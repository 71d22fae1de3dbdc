/* SPDX-License-Identifier: Apache-2.0 */
/* Core dumps: when there is one, where, and what is in it. Where the machine has core_pattern name a program or another place
 * (natively), only the wait status is looked at. */
#include "tests/guest/guest.h"

#include <elf.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/procfs.h>
#include <sys/resource.h>

static void allow_core(rlim_t limit)
{
    struct rlimit r;

    guest_tmpdir();
    OK(getrlimit(RLIMIT_CORE, &r));
    r.rlim_cur = limit < r.rlim_max ? limit : r.rlim_max;
    OK(setrlimit(RLIMIT_CORE, &r));
}

static bool names_core(void)
{
    return !strcmp(guest_read_file("/proc/sys/kernel/core_pattern"), "core\n");
}

static bool dumped(int status, int sig)
{
    CHECK(WIFSIGNALED(status));
    EQ(WTERMSIG(status), sig);
    return WCOREDUMP(status);
}

static unsigned char *map_core(size_t *ret_size)
{
    struct stat st;
    int fd = OK(open("core", O_RDONLY));
    void *p;

    OK(fstat(fd, &st));
    EQ(st.st_mode & 0777, 0600);
    *ret_size = (size_t)st.st_size;
    p = mmap(NULL, *ret_size, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

static const Elf64_Nhdr *next_note(const Elf64_Nhdr *n, const unsigned char *end)
{
    const unsigned char *p = (const unsigned char *)(n + 1) + ((n->n_namesz + 3) & ~3u) + ((n->n_descsz + 3) & ~3u);

    return p < end ? (const Elf64_Nhdr *)p : NULL;
}

static const void *note_data(const Elf64_Nhdr *n)
{
    return (const unsigned char *)(n + 1) + ((n->n_namesz + 3) & ~3u);
}

/* The nth note of a type (from 0), or NULL. */
static const Elf64_Nhdr *find_note(const unsigned char *core, unsigned type, int nth)
{
    const Elf64_Ehdr *e = (const void *)core;
    const Elf64_Phdr *p = (const void *)(core + e->e_phoff);

    CHECK(!memcmp(core, ELFMAG, SELFMAG));
    EQ(e->e_type, ET_CORE);
    EQ(p->p_type, PT_NOTE);
    for (const Elf64_Nhdr *n = (const void *)(core + p->p_offset); n; n = next_note(n, core + p->p_offset + p->p_filesz)) {
        if (n->n_type == type && nth-- == 0)
            return n;
    }
    return NULL;
}

/* What the core has at an address; NULL: nothing. */
static const void *at_address(const unsigned char *core, const void *addr)
{
    const Elf64_Ehdr *e = (const void *)core;
    const Elf64_Phdr *p = (const void *)(core + e->e_phoff);
    uint64_t a = (uint64_t)addr;

    for (int i = 1; i < e->e_phnum; i++) {
        if (a >= p[i].p_vaddr && a < p[i].p_vaddr + p[i].p_filesz)
            return core + p[i].p_offset + (a - p[i].p_vaddr);
    }
    return NULL;
}

static int variable = 1;
static volatile int threads_up;

static void *sleeper(void *arg)
{
    __atomic_add_fetch(&threads_up, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
    return NULL;
}

static void *spinner(void *arg)
{
    __atomic_add_fetch(&threads_up, 1, __ATOMIC_SEQ_CST);
    for (;;)
        ;
    return NULL;
}

TEST(contents)
{
    size_t size;
    char *sparse = mmap(NULL, 1 << 26, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct elf_prstatus *s;
    const struct elf_prpsinfo *info;
    const unsigned char *core;
    struct stat st;
    pid_t pid;
    int status;

    allow_core(RLIM_INFINITY);
    pid = OK(fork());
    if (!pid) {
        pthread_t t[2];

        CHECK(!pthread_create(&t[0], NULL, sleeper, NULL) && !pthread_create(&t[1], NULL, spinner, NULL));
        while (threads_up < 2)
            sleep_ms(1);
        variable = 4711;
        memcpy(sparse + (1 << 25), "needle", 6);
        prctl(PR_SET_NAME, "dumper");
        abort();
    }
    OK(waitpid(pid, &status, 0));
    if (!names_core()) {
        dumped(status, SIGABRT);
        return;
    }
    CHECK(dumped(status, SIGABRT));
    core = map_core(&size);
    s = note_data(find_note(core, NT_PRSTATUS, 0));
    EQ(s->pr_pid, pid);
    EQ(s->pr_cursig, SIGABRT);
    EQ(s->pr_ppid, getpid());
    CHECK(s->pr_reg[16]); /* rip */
    CHECK(find_note(core, NT_PRSTATUS, 2) && !find_note(core, NT_PRSTATUS, 3));
    s = note_data(find_note(core, NT_PRSTATUS, 2));
    CHECK(s->pr_reg[16] && s->pr_pid != pid);
    info = note_data(find_note(core, NT_PRPSINFO, 0));
    EQ(info->pr_pid, pid);
    STR(info->pr_fname, "dumper");
    EQ(((const siginfo_t *)note_data(find_note(core, NT_SIGINFO, 0)))->si_signo, SIGABRT);
    CHECK(find_note(core, NT_AUXV, 0));
    CHECK(find_note(core, NT_FILE, 0));
    EQ(*(const int *)at_address(core, &variable), 4711);
    CHECK(!memcmp(at_address(core, sparse + (1 << 25)), "needle", 6));
    EQ(*(const int *)at_address(core, sparse), 0);
    OK(stat("core", &st));
    CHECK(st.st_size > 1 << 26 && st.st_blocks * 512 < 1 << 24); /* what was never touched is a hole */
}

TEST(no_room_no_core)
{
    struct stat st;

    allow_core(0);
    CHECK(!dumped(IN_CHILD(abort()), SIGABRT) || !names_core());
    ERR(ENOENT, stat("core", &st));
}

TEST(not_every_death)
{
    struct stat st;

    allow_core(1 << 20);
    CHECK(!dumped(IN_CHILD(raise(SIGTERM)), SIGTERM));
    CHECK(!dumped(IN_CHILD(raise(SIGKILL)), SIGKILL));
    CHECK(!dumped(IN_CHILD({
                      prctl(PR_SET_DUMPABLE, 0);
                      abort();
                  }),
                  SIGABRT) || !names_core());
    ERR(ENOENT, stat("core", &st));
    if (!names_core())
        return;
    /* What has the name goes; other names of it keep what they have. */
    guest_write_file("core", "mine");
    OK(link("core", "other"));
    CHECK(dumped(IN_CHILD(raise(SIGQUIT)), SIGQUIT));
    STR(guest_read_file("other"), "mine");
    OK(lstat("core", &st));
    CHECK(st.st_size > 4096);
    OK(unlink("core"));
    OK(symlink("target", "core"));
    CHECK(dumped(IN_CHILD(raise(SIGSEGV)), SIGSEGV));
    ERR(ENOENT, stat("target", &st));
    OK(unlink("core"));
    OK(mkdir("core", 0700));
    CHECK(!dumped(IN_CHILD(raise(SIGSEGV)), SIGSEGV));
}

TEST(cut_by_the_limit)
{
    struct stat st;

    allow_core(8192);
    if (!names_core())
        return;
    CHECK(dumped(IN_CHILD(*(volatile int *)8 = 1), SIGSEGV));
    OK(stat("core", &st));
    CHECK(st.st_size > 0 && st.st_size <= 8192);
}

TEST(waitid_tells)
{
    siginfo_t info;
    pid_t pid;

    allow_core(RLIM_INFINITY);
    pid = OK(fork());
    if (!pid)
        abort();
    OK(waitid(P_PID, (id_t)pid, &info, WEXITED));
    EQ(info.si_status, SIGABRT);
    if (names_core())
        EQ(info.si_code, CLD_DUMPED);
}

TEST(filter)
{
    char *text = guest_read_file("/proc/self/coredump_filter");

    STR(text, "00000033\n");
    guest_write_file("/proc/self/coredump_filter", "0x11");
    STR(guest_read_file("/proc/self/coredump_filter"), "00000011\n");
    EXITED(IN_CHILD(STR(guest_read_file("/proc/self/coredump_filter"), "00000011\n")), 0);
}
