/* SPDX-License-Identifier: Apache-2.0 */
/* What exec does: to credentials and capabilities, with hostile files, scripts, arguments, and the auxiliary vector. */
#include "tests/guest/probe.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

extern char **environ;

static void copy_self(const char *path, mode_t mode)
{
    char buf[65536];
    ssize_t n;
    int in = open("/test", O_RDONLY), out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);

    while ((n = read(in, buf, sizeof(buf))) > 0)
        if (write(out, buf, n) != n)
            puts("short write");
    fchmod(out, mode);
    close(in);
    close(out);
}

static void write_file(const char *path, const char *text, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);

    if (write(fd, text, size) != (ssize_t)size)
        puts("short write");
    fchmod(fd, 0755);
    close(fd);
}

static void print_caps(void)
{
    static const char *const keys[] = {"Uid:", "Gid:", "Groups:", "Cap", "NoNewPrivs:"};
    char line[512];
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof(line), f))
        for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
            if (!strncmp(line, keys[i], strlen(keys[i])))
                fputs(line, stdout);
    if (f)
        fclose(f);
    printf("secure %lu bits %d keep %d dumpable %d\n", getauxval(AT_SECURE), prctl(PR_GET_SECUREBITS),
           prctl(PR_GET_KEEPCAPS), prctl(PR_GET_DUMPABLE));
}

static void show(const char *title, const char *path)
{
    char *argv[] = {"x", "caps", NULL};

    printf("[%s]\n", title);
    fflush(stdout);
    execv(path, argv);
    printf("exec: %s\n", strerrorname_np(errno));
}

static void set_caps(uint64_t eff, uint64_t prm, uint64_t inh)
{
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2] = {{(uint32_t)eff, (uint32_t)prm, (uint32_t)inh},
                                          {(uint32_t)(eff >> 32), (uint32_t)(prm >> 32), (uint32_t)(inh >> 32)}};

    if (syscall(SYS_capset, &h, d))
        printf("capset: %s\n", strerrorname_np(errno));
}

static void file_cap(const char *path, uint32_t rev, uint32_t eff, uint64_t prm, uint64_t inh)
{
    struct vfs_ns_cap_data d = {.magic_etc = rev | eff};

    d.data[0].permitted = (uint32_t)prm;
    d.data[1].permitted = (uint32_t)(prm >> 32);
    d.data[0].inheritable = (uint32_t)inh;
    d.data[1].inheritable = (uint32_t)(inh >> 32);
    P(setxattr(path, "security.capability", &d, rev == VFS_CAP_REVISION_3 ? XATTR_CAPS_SZ_3 : XATTR_CAPS_SZ_2, 0));
}

#define CHOWN_ (1ULL << CAP_CHOWN)
#define KILL_ (1ULL << CAP_KILL)
#define FOWNER_ (1ULL << CAP_FOWNER)
#define SETPCAP_ (1ULL << CAP_SETPCAP)

static void plain_exec(void)
{
    CHILD(show("root", "/test"));
    CHILD(P(setresuid(1000, 1000, 1000)); show("uid 1000", "/test"));
    CHILD(P(setresuid(1000, 0, 0)); show("ruid 1000", "/test"));
    CHILD(P(setresuid(0, 1000, 0)); show("euid 1000", "/test"));
    CHILD(P(prctl(PR_SET_KEEPCAPS, 1)); P(setresuid(1000, 1000, 1000)); print_caps(); show("kept", "/test"));
    CHILD(P(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT)); show("noroot", "/test"));
    CHILD(P(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP)); P(setuid(1000)); print_caps(); show("nofixup", "/test"));
    CHILD(set_caps(0, CHOWN_, CHOWN_ | KILL_); print_caps(); show("few caps", "/test"));
    CHILD(P(prctl(PR_CAPBSET_DROP, CAP_CHOWN)); show("bounded", "/test"));
    CHILD(P(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); show("nnp", "/test"));
}

static void ambient(void)
{
    CHILD(P(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0)); set_caps(~0ULL, ~0ULL, CHOWN_);
          set_caps(CHOWN_ | SETPCAP_ | 1ULL << CAP_SETUID, CHOWN_ | SETPCAP_ | 1ULL << CAP_SETUID, CHOWN_);
          P(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0));
          P(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0));
          P(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0)); show("ambient root", "/test"));
    CHILD(P(prctl(PR_SET_KEEPCAPS, 1)); P(setresuid(1000, 1000, 1000)); set_caps(CHOWN_, CHOWN_, CHOWN_);
          P(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0)); show("ambient user", "/test"));
    CHILD(P(prctl(PR_SET_KEEPCAPS, 1)); P(setresuid(1000, 1000, 1000)); set_caps(CHOWN_, CHOWN_, CHOWN_);
          P(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0)); show("ambient user, set-uid", "/tmp/suid"));
    CHILD(P(prctl(PR_SET_KEEPCAPS, 1)); P(setresuid(1000, 1000, 1000)); set_caps(CHOWN_, CHOWN_, CHOWN_);
          P(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0));
          P(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); show("ambient user, nnp", "/test"));
    P(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 1, 0, 0));
    P(prctl(PR_CAP_AMBIENT, 9, 0, 0, 0));
    P(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 64, 0, 0));
}

static void set_id(void)
{
    CHILD(P(setresuid(1000, 1000, 1000)); show("set-uid root", "/tmp/suid"));
    CHILD(P(setresuid(1000, 1000, 1000)); show("set-uid 2000", "/tmp/suid2000"));
    CHILD(P(setresgid(1000, 1000, 1000)); P(setresuid(1000, 1000, 1000)); show("set-gid 2000", "/tmp/sgid2000"));
    CHILD(P(setresgid(1000, 1000, 1000)); P(setresuid(1000, 1000, 1000)); show("set-gid without x", "/tmp/sgidnox"));
    CHILD(show("root runs set-uid 2000", "/tmp/suid2000"));
    CHILD(P(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); P(setresuid(1000, 1000, 1000)); show("nnp set-uid", "/tmp/suid"));
    CHILD(P(setresuid(1000, 1000, 1000)); show("script of a set-uid", "/tmp/suidscript"));
    CHILD(P(setresuid(1000, 1000, 1000)); show("not executable for us", "/tmp/rootonly"));
    CHILD(P(setresuid(1000, 1000, 1000)); show("not readable", "/tmp/noread"));
    CHILD(P(setresuid(1000, 1000, 1000)); set_caps(0, 0, 0); show("no x at all", "/tmp/nox"));
    CHILD(show("root, no x at all", "/tmp/nox"));
}

static void file_caps(void)
{
    CHILD(P(setresuid(1000, 1000, 1000)); show("file p+e", "/tmp/fcap"));
    CHILD(P(setresuid(1000, 1000, 1000)); show("file p", "/tmp/fcapp"));
    CHILD(P(setresuid(1000, 1000, 1000)); show("file i, not ours", "/tmp/fcapi"));
    CHILD(set_caps(~0ULL, ~0ULL, KILL_); P(setresuid(1000, 1000, 1000)); show("file i, ours", "/tmp/fcapi"));
    CHILD(P(setresuid(1000, 1000, 1000)); show("file wants what is not bounded", "/tmp/fcapmore"));
    CHILD(P(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); P(setresuid(1000, 1000, 1000)); show("nnp file p+e", "/tmp/fcap"));
    CHILD(show("root runs file p+e", "/tmp/fcap"));
    CHILD(P(setresuid(1000, 1000, 1000)); show("set-uid root with file caps", "/tmp/fcapsuid"));
    CHILD(P(setresuid(1000, 1000, 1000)); show("version 3", "/tmp/fcap3"));
}

static void make_files(void)
{
    copy_self("/tmp/suid", 04755);
    copy_self("/tmp/suid2000", 0755);
    P(chown("/tmp/suid2000", 2000, 2000));
    P(chmod("/tmp/suid2000", 04755));
    copy_self("/tmp/sgid2000", 0755);
    P(chown("/tmp/sgid2000", 0, 2000));
    P(chmod("/tmp/sgid2000", 02755));
    copy_self("/tmp/sgidnox", 0755);
    P(chown("/tmp/sgidnox", 0, 2000));
    P(chmod("/tmp/sgidnox", 02745));
    copy_self("/tmp/rootonly", 0700);
    copy_self("/tmp/noread", 0711);
    copy_self("/tmp/nox", 0644);
    write_file("/tmp/suidscript", "#!/test caps\n", 13);
    P(chmod("/tmp/suidscript", 04755));
    copy_self("/tmp/fcap", 0755);
    file_cap("/tmp/fcap", VFS_CAP_REVISION_2, VFS_CAP_FLAGS_EFFECTIVE, CHOWN_, 0);
    copy_self("/tmp/fcapp", 0755);
    file_cap("/tmp/fcapp", VFS_CAP_REVISION_2, 0, CHOWN_ | FOWNER_, 0);
    copy_self("/tmp/fcapi", 0755);
    file_cap("/tmp/fcapi", VFS_CAP_REVISION_2, VFS_CAP_FLAGS_EFFECTIVE, 0, KILL_);
    copy_self("/tmp/fcapmore", 0755);
    file_cap("/tmp/fcapmore", VFS_CAP_REVISION_2, VFS_CAP_FLAGS_EFFECTIVE, CHOWN_ | 1ULL << CAP_SYS_ADMIN, 0);
    copy_self("/tmp/fcapsuid", 04755);
    file_cap("/tmp/fcapsuid", VFS_CAP_REVISION_2, VFS_CAP_FLAGS_EFFECTIVE, CHOWN_, 0);
    copy_self("/tmp/fcap3", 0755);
    file_cap("/tmp/fcap3", VFS_CAP_REVISION_3, VFS_CAP_FLAGS_EFFECTIVE, CHOWN_, 0);
}

/* ---- hostile ELF files ---- */

static uint8_t self[4 << 20];
static size_t self_size;

static Elf64_Phdr *phdr(uint8_t *p, unsigned type)
{
    Elf64_Ehdr *h = (Elf64_Ehdr *)p;
    Elf64_Phdr *ph = (Elf64_Phdr *)(p + h->e_phoff);

    for (int i = 0; i < h->e_phnum; i++)
        if (ph[i].p_type == type)
            return &ph[i];
    return NULL;
}

#define MUTANT(name, ...)                                                                          \
    do {                                                                                           \
        uint8_t *p = malloc(self_size);                                                            \
        memcpy(p, self, self_size);                                                                \
        Elf64_Ehdr *h = (Elf64_Ehdr *)p;                                                           \
        Elf64_Phdr *load = phdr(p, PT_LOAD);                                                       \
        size_t size = self_size;                                                                   \
        (void)h;                                                                                   \
        (void)load;                                                                                \
        __VA_ARGS__;                                                                               \
        write_file("/tmp/mutant", (char *)p, size);                                                \
        free(p);                                                                                   \
        printf("[%s] ", name);                                                                     \
        CHILD({                                                                                    \
            char *argv[] = {"x", "ok", NULL};                                                      \
            execv("/tmp/mutant", argv);                                                            \
            printf("%s\n", strerrorname_np(errno));                                                \
        });                                                                                        \
    } while (0)

static void mutants(void)
{
    int fd = open("/test", O_RDONLY);

    self_size = read(fd, self, sizeof(self));
    close(fd);
    MUTANT("unchanged", );
    MUTANT("magic", p[1] = 'X');
    MUTANT("32 bits", p[EI_CLASS] = ELFCLASS32);
    MUTANT("relocatable", h->e_type = ET_REL);
    MUTANT("core", h->e_type = ET_CORE);
    MUTANT("arm", h->e_machine = EM_AARCH64);
    MUTANT("no program headers", h->e_phnum = 0);
    MUTANT("odd header size", h->e_phentsize = 57);
    MUTANT("many headers", h->e_phnum = 65535);
    MUTANT("headers beyond the file", h->e_phoff = 1ULL << 40);
    MUTANT("headers wrap", h->e_phoff = UINT64_MAX - 8);
    MUTANT("cut to the header", size = 64);
    MUTANT("cut inside the header", size = 40);
    MUTANT("one byte", size = 1);
    MUTANT("file size above memory size", load->p_memsz = load->p_filesz - 1);
    MUTANT("memory size huge", load->p_memsz = 1ULL << 62);
    MUTANT("address above user space", load->p_vaddr = 0xffff800000000000ULL);
    MUTANT("interpreter without NUL", Elf64_Phdr *n = phdr(p, PT_NOTE); n->p_type = PT_INTERP; n->p_filesz = 4;
           memcpy(p + n->p_offset, "abcd", 4));
    MUTANT("interpreter of one byte", Elf64_Phdr *n = phdr(p, PT_NOTE); n->p_type = PT_INTERP; n->p_filesz = 1);
    MUTANT("interpreter missing", Elf64_Phdr *n = phdr(p, PT_NOTE); n->p_type = PT_INTERP; n->p_filesz = 3;
           memcpy(p + n->p_offset, "/x", 3));
    MUTANT("interpreter is a directory", Elf64_Phdr *n = phdr(p, PT_NOTE); n->p_type = PT_INTERP; n->p_filesz = 5;
           memcpy(p + n->p_offset, "/tmp", 5));
    MUTANT("interpreter is no program", Elf64_Phdr *n = phdr(p, PT_NOTE); n->p_type = PT_INTERP; n->p_filesz = 12;
           memcpy(p + n->p_offset, "/etc/passwd", 12));
}

/* ---- scripts and arguments ---- */

static void try(const char *path)
{
    CHILD({
        char *argv[] = {"argv0", "a1", NULL};
        execv(path, argv);
        printf("%s: %s\n", path, strerrorname_np(errno));
    });
}

static void scripts(void)
{
    char path[64], text[600];

    write_file("/tmp/s0", "#!/test args\n", 13);
    for (int i = 1; i < 8; i++) {
        snprintf(path, sizeof(path), "/tmp/s%d", i);
        snprintf(text, sizeof(text), "#!/tmp/s%d\n", i - 1);
        write_file(path, text, strlen(text));
        try(path);
    }
    write_file("/tmp/q", "#! /test   args  with blanks  \n", 31);
    try("/tmp/q");
    write_file("/tmp/q", "#!/test args", 12);
    try("/tmp/q");
    write_file("/tmp/q", "#!\n", 3);
    try("/tmp/q");
    write_file("/tmp/q", "#!", 2);
    try("/tmp/q");
    write_file("/tmp/q", "#!/test\targs\n", 13);
    try("/tmp/q");
    write_file("/tmp/q", "#!test args\n", 12);
    try("/tmp/q");
    write_file("/tmp/q", "#!/test args\0junk\n", 18);
    try("/tmp/q");
    memset(text, 'x', sizeof(text));
    memcpy(text, "#!/test args", 12);
    write_file("/tmp/q", text, sizeof(text));
    try("/tmp/q");
    memcpy(text, "#!/test_____", 12);
    write_file("/tmp/q", text, sizeof(text));
    try("/tmp/q");
    P(syscall(SYS_execveat, -1, "", NULL, NULL, 0));
    P(syscall(SYS_execveat, AT_FDCWD, "", NULL, NULL, AT_EMPTY_PATH));
    P(syscall(SYS_execveat, AT_FDCWD, "/test", NULL, NULL, 1));
    P(symlink("/test", "/tmp/link"));
    P(syscall(SYS_execveat, AT_FDCWD, "/tmp/link", NULL, NULL, AT_SYMLINK_NOFOLLOW));
    char *argv[] = {"fd", "args", NULL};
    write_file("/tmp/q", "#!/test args\n", 13);
    CHILD(int fd = open("/test", O_RDONLY | O_CLOEXEC);
          syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH); P(-1));
    CHILD(int fd = open("/tmp/q", O_RDONLY); syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH); P(-1));
    CHILD(int fd = open("/tmp/q", O_RDONLY | O_CLOEXEC);
          syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH); P(syscall(SYS_close, -1)));
    CHILD(int fd = open("/tmp", O_RDONLY); syscall(SYS_execveat, fd, "q", argv, environ, 0); P(-1));
    CHILD(int fd = open("/test", O_PATH); syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH); P(-1));
    CHILD(int fd = open("/test", O_RDONLY); close(fd); char *none[] = {NULL}; execve("/test", none, none); P(-1));
}

/* Grows one argument until the kernel refuses: prints the first size refused. */
static void find_limit(const char *title, rlim_t stack)
{
    CHILD({
        struct rlimit r = {stack, RLIM_INFINITY};
        static char *argv[20000];
        char *text = malloc(130000);
        int low = 1, high = 19000;

        setrlimit(RLIMIT_STACK, &r);
        memset(text, 'a', 1023);
        text[1023] = 0;
        while (low < high) {
            int mid = (low + high) / 2, status;
            pid_t p;

            argv[0] = "x";
            argv[1] = "ok";
            for (int i = 2; i < mid + 2; i++)
                argv[i] = text;
            argv[mid + 2] = NULL;
            p = fork();
            if (!p) {
                char *env[] = {NULL};
                close(1);
                execve("/test", argv, env);
                _exit(errno == E2BIG ? 7 : 8);
            }
            waitpid(p, &status, 0);
            if (WIFEXITED(status) && WEXITSTATUS(status) == 7)
                high = mid;
            else
                low = mid + 1;
        }
        printf("%s: about %d KiB\n", title, low / 16 * 16);
    });
}

static void arguments(void)
{
    char *argv[] = {"x", NULL, NULL}, *env[] = {NULL};

    argv[1] = malloc(140000);
    memset(argv[1], 'a', 131071);
    argv[1][131071] = 0;
    CHILD(execve("/test", argv, env); printf("131071: %s\n", strerrorname_np(errno)));
    argv[1][131071] = 'a';
    argv[1][131072] = 0;
    CHILD(execve("/test", argv, env); printf("131072: %s\n", strerrorname_np(errno)));
    CHILD(execve("/test", (char **)16, env); printf("bad argv: %s\n", strerrorname_np(errno)));
    argv[1] = (char *)16;
    CHILD(execve("/test", argv, env); printf("bad string: %s\n", strerrorname_np(errno)));
    CHILD(execve((char *)16, argv, env); printf("bad path: %s\n", strerrorname_np(errno)));
    find_limit("8 MiB stack", 8 << 20);
    find_limit("1 MiB stack", 1 << 20);
    find_limit("64 KiB stack", 64 << 10);
    find_limit("unlimited stack", RLIM_INFINITY);
}

static void busy_text(void)
{
    int fd, status;
    pid_t p;

    copy_self("/tmp/busy", 0755);
    fd = open("/tmp/busy", O_WRONLY);
    CHILD(char *argv[] = {"x", "ok", NULL}; execv("/tmp/busy", argv); P(execv("/tmp/busy", argv)));
    close(fd);
    p = fork();
    if (!p) {
        char *argv[] = {"x", "sleep", NULL};
        execv("/tmp/busy", argv);
        _exit(1);
    }
    usleep(300000);
    PF(open("/tmp/busy", O_WRONLY));
    PF(open("/tmp/busy", O_RDWR));
    P(truncate("/tmp/busy", 0));
    PF(open("/tmp/busy", O_RDONLY));
    P(unlink("/tmp/busy"));
    kill(p, SIGKILL);
    waitpid(p, &status, 0);
}

static int print_auxv(void)
{
    uint64_t *p = (uint64_t *)environ;

    while (*p++)
        ;
    for (; p[0]; p += 2) {
        switch (p[0]) {
        case AT_SYSINFO_EHDR: case AT_PHDR: case AT_ENTRY: case AT_RANDOM: case AT_EXECFN: case AT_PLATFORM:
            printf("aux %lu %s\n", p[0], p[1] ? "set" : "0");
            break;
        case AT_HWCAP2: case 27: case 28:
            break; /* rseq, FSGSBASE: not what the host has */
        default:
            printf("aux %lu %lx\n", p[0], p[1]);
        }
    }
    printf("execfn %s platform %s align %lu\n", (char *)getauxval(AT_EXECFN), (char *)getauxval(AT_PLATFORM),
           (unsigned long)((uintptr_t)environ & 7));
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (argc > 1 && !strcmp(argv[1], "caps")) {
        print_caps();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "ok")) {
        puts("ok");
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "sleep")) {
        sleep(20);
        return 0;
    }
    if (argc > 1 && !strncmp(argv[1], "args", 4)) {
        char comm[16] = "";

        prctl(PR_GET_NAME, comm);
        printf("args of %s (%s):", comm, (char *)getauxval(AT_EXECFN));
        for (int i = 0; i < argc; i++)
            printf(" \"%.20s\"", argv[i]);
        puts("");
        return 0;
    }
    if (argc > 1 || argc == 0 || !argv[0][0]) {
        printf("argc %d argv0 \"%s\"\n", argc, argc ? argv[0] : "(none)");
        return 0;
    }
    umask(0);
    print_auxv();
    PROBE(make_files);
    PROBE(plain_exec);
    PROBE(ambient);
    PROBE(set_id);
    PROBE(file_caps);
    PROBE(mutants);
    PROBE(scripts);
    PROBE(arguments);
    PROBE(busy_text);
    return 0;
}
