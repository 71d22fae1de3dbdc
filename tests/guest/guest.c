/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tests of one guest program. Usage: PROGRAM [TEST…]; status 0 when all passed. */
#include "tests/guest/guest.h"

#include <stdarg.h>
#include <sys/resource.h>

struct guest_test *guest_tests;
struct guest_mode *guest_modes;

void guest_fail(const char *file, int line, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    const char *base = strrchr(file, '/');

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    dprintf(1, "    %s:%d: %s\n", base ? base + 1 : file, line, text);
    _exit(99);
}

enum { SKIPPED = 77 };

void guest_skip(const char *why)
{
    dprintf(1, "    %s\n", why);
    _exit(SKIPPED);
}

void guest_status(const char *file, int line, int status, int code, int sig)
{
    /* 99 is a failed check in the child, which has said so. */
    if (sig && (!WIFSIGNALED(status) || WTERMSIG(status) != sig))
        guest_fail(file, line, "wait status %#x, expected death by signal %d", (unsigned)status, sig);
    if (!sig && (!WIFEXITED(status) || WEXITSTATUS(status) != code))
        guest_fail(file, line, "wait status %#x, expected exit %d", (unsigned)status, code);
}

void guest_tmpdir(void)
{
    char path[] = "/tmp/guest.XXXXXX";

    CHECK(mkdtemp(path));
    OK(chdir(path));
}

void guest_write_file(const char *path, const char *content)
{
    int fd = OK(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644));

    EQ(write(fd, content, strlen(content)), strlen(content));
    OK(close(fd));
}

char *guest_read_file(const char *path)
{
    static char data[1 << 20];
    int fd = OK(open(path, O_RDONLY | O_CLOEXEC));
    size_t size = 0;
    ssize_t n;

    while ((n = OK(read(fd, data + size, sizeof(data) - 1 - size))) > 0)
        size += (size_t)n;
    data[size] = 0;
    close(fd);
    return data;
}

void *guest_unmapped(void)
{
    char *p = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    OK(munmap(p + 4096, 2 * 4096));
    return p + 4096;
}

char *guest_page_end(void)
{
    return (char *)guest_unmapped() - 1;
}

static bool run(const struct guest_test *t)
{
    int status;
    pid_t pid, w;
    uint64_t begin = now_ms();

    pid = fork();
    if (pid < 0) {
        printf("not ok - %s: fork: %s\n", t->name, strerror(errno));
        return false;
    }
    if (!pid) {
        alarm(t->seconds);
        t->fn();
        fflush(stdout);
        _exit(0);
    }
    do {
        w = waitpid(pid, &status, 0);
    } while (w < 0 && errno == EINTR);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        printf("skipped - %s\n", t->name);
        status = 0;
    } else if (status)
        printf("not ok - %s: wait status %#x%s\n", t->name, status, status == SIGALRM ? " (too slow)" : "");
    else
        printf("ok - %s (%d ms)\n", t->name, (int)(now_ms() - begin));
    fflush(stdout);
    return !status;
}

int main(int argc, char **argv)
{
    struct rlimit no_core;
    bool wanted, good = true;

    getrlimit(RLIMIT_CORE, &no_core);
    no_core.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &no_core);
    if (argc > 1 && argv[1][0] == '@') {
        for (struct guest_mode *m = guest_modes; m; m = m->next) {
            if (!strcmp(m->name, argv[1] + 1))
                return m->fn(argc, argv);
        }
        return 98;
    }
    for (struct guest_test *t = guest_tests; t; t = t->next) {
        wanted = argc < 2;
        for (int i = 1; i < argc; i++)
            wanted = wanted || !strcmp(argv[i], t->name);
        if (wanted && !run(t))
            good = false;
    }
    return good ? 0 : 1;
}
