/* SPDX-License-Identifier: Apache-2.0 */
/* The question about one mapping that /proc/PID/maps answers. */
#include "tests/guest/guest.h"

#include <elf.h>
#include <link.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

struct query {
    uint64_t size, flags, addr;
    uint64_t start, end, vma_flags, page_size, offset, inode;
    uint32_t dev_major, dev_minor, name_size, build_id_size;
    uint64_t name_addr, build_id_addr;
};
#define QUERY _IOWR('f', 17, struct query)
enum { READABLE = 1, WRITABLE = 2, EXECUTABLE = 4, SHARED = 8, OR_NEXT = 16, FILE_BACKED = 32 };

static int maps;

static long ask(struct query *q, const void *addr, uint64_t flags)
{
    *q = (struct query){.size = sizeof(*q), .addr = (uint64_t)addr, .flags = flags};
    return ioctl(maps, QUERY, q);
}

/* Three pages: readable, writable, none; of a file. */
static char *mapping(int *ret_fd)
{
    char *p;

    maps = OK(open("/proc/self/maps", O_RDONLY));
    guest_tmpdir();
    *ret_fd = OK(open("mapped", O_RDWR | O_CREAT, 0600));
    OK(ftruncate(*ret_fd, 16384));
    p = OK(mmap(NULL, 5 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    OK(mmap(p + 4096, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, *ret_fd, 4096));
    OK(mmap(p + 8192, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0));
    OK(munmap(p + 12288, 4096));
    return p;
}

TEST(mapping_at_an_address)
{
    struct query q;
    struct stat st;
    int fd;
    char *p = mapping(&fd);

    OK(fstat(fd, &st));
    OK(ask(&q, p + 4096 + 5, 0));
    EQ(q.start, p + 4096);
    EQ(q.end, p + 8192);
    EQ(q.vma_flags, READABLE | SHARED);
    EQ(q.page_size, 4096);
    EQ(q.offset, 4096);
    EQ(q.inode, st.st_ino);
    EQ(makedev(q.dev_major, q.dev_minor), st.st_dev);
    EQ(q.name_size, 0);
    OK(ask(&q, p + 8192, 0));
    EQ(q.vma_flags, READABLE | WRITABLE);
    EQ(q.offset, 0);
    EQ(q.inode, 0);
    ERR(ENOENT, ask(&q, p + 12288, 0));
    EQ(q.start, 0);
    OK(ask(&q, p + 12288, OR_NEXT));
    EQ(q.start, p + 16384);
    EQ(q.vma_flags, 0);
    ERR(ENOENT, ask(&q, (void *)-4096L, OR_NEXT | WRITABLE));
    ERR(ENOENT, ask(&q, p, READABLE));
    ERR(ENOENT, ask(&q, p + 8192, FILE_BACKED));
    OK(ask(&q, p, READABLE | OR_NEXT));
    EQ(q.start, p + 4096);
    OK(ask(&q, p, WRITABLE | OR_NEXT));
    EQ(q.start, p + 8192);
    OK(ask(&q, p, SHARED | FILE_BACKED | OR_NEXT));
    EQ(q.start, p + 4096);
}

TEST(mapping_names)
{
    char name[64], cwd[64];
    struct query q;
    int fd;
    char *p = mapping(&fd);

    CHECK(getcwd(cwd, sizeof(cwd)));
    q = (struct query){.size = sizeof(q), .addr = (uint64_t)p + 4096, .name_addr = (uint64_t)name, .name_size = sizeof(name)};
    OK(ioctl(maps, QUERY, &q));
    EQ(q.name_size, strlen(cwd) + strlen("/mapped") + 1);
    CHECK(!strncmp(name, cwd, strlen(cwd)) && !strcmp(name + strlen(cwd), "/mapped"));
    q.name_size--;
    ERR(ENAMETOOLONG, ioctl(maps, QUERY, &q));
    q.name_addr = (uint64_t)guest_unmapped();
    q.name_size = 64;
    ERR(EFAULT, ioctl(maps, QUERY, &q));
    q.name_addr = (uint64_t)name;
    q.addr = (uint64_t)&q;
    OK(ioctl(maps, QUERY, &q));
    STR(name, "[stack]");
    EQ(q.name_size, 8);
    q.addr = (uint64_t)p + 8192;
    q.name_size = 64;
    OK(ioctl(maps, QUERY, &q));
    EQ(q.name_size, 0);
}

extern const ElfW(Ehdr) __ehdr_start;

/* This program's build id, as it lies in its memory. */
static const uint8_t *own_build_id(unsigned *ret_size)
{
    const ElfW(Phdr) *ph = (const void *)((const char *)&__ehdr_start + __ehdr_start.e_phoff);

    *ret_size = 0;
    for (int i = 0; i < __ehdr_start.e_phnum; i++) {
        const char *at = (const char *)ph[i].p_vaddr, *end = at + ph[i].p_memsz;
        while (ph[i].p_type == PT_NOTE && at < end) {
            const ElfW(Nhdr) *n = (const void *)at;
            const char *desc = at + sizeof(*n) + (n->n_namesz + 3) / 4 * 4;
            if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4) {
                *ret_size = n->n_descsz;
                return (const uint8_t *)desc;
            }
            at = desc + (n->n_descsz + 3) / 4 * 4;
        }
    }
    return NULL;
}

TEST(mapping_build_id)
{
    uint8_t id[32];
    unsigned size;
    const uint8_t *own = own_build_id(&size);
    struct query q = {.size = sizeof(q), .addr = (uint64_t)&__ehdr_start, .build_id_addr = (uint64_t)id, .build_id_size = sizeof(id)};
    int fd;
    char *p = mapping(&fd);

    CHECK(own);
    OK(ioctl(maps, QUERY, &q));
    EQ(q.build_id_size, size);
    CHECK(!memcmp(id, own, size));
    q.build_id_size = size - 1;
    ERR(ENAMETOOLONG, ioctl(maps, QUERY, &q));
    q.build_id_size = sizeof(id);
    q.addr = (uint64_t)p + 4096;
    OK(ioctl(maps, QUERY, &q));
    EQ(q.build_id_size, 0);
}

TEST(mapping_bad_questions)
{
    struct {
        struct query q;
        uint64_t more;
    } q = {.q = {.size = sizeof(q), .addr = (uint64_t)&q}};
    struct query n;
    int fd;

    (void)mapping(&fd);
    ERR(EFAULT, ioctl(maps, QUERY, guest_unmapped()));
    OK(ioctl(maps, QUERY, &q));
    q.more = 1;
    ERR(E2BIG, ioctl(maps, QUERY, &q));
    q.q.size = 5000;
    ERR(E2BIG, ioctl(maps, QUERY, &q));
    q.q.size = 23;
    ERR(EINVAL, ioctl(maps, QUERY, &q));
    q.q.size = 24; /* room for no answer */
    q.q.start = 77;
    OK(ioctl(maps, QUERY, &q));
    EQ(q.q.start, 77);
    ERR(EINVAL, ask(&n, &q, 64));
    n = (struct query){.size = sizeof(n), .addr = (uint64_t)&q, .name_size = 5};
    ERR(EINVAL, ioctl(maps, QUERY, &n));
    n = (struct query){.size = sizeof(n), .addr = (uint64_t)&q, .build_id_addr = (uint64_t)&q};
    ERR(EINVAL, ioctl(maps, QUERY, &n));
    ERR(ENOTTY, ioctl(maps, QUERY + 1, &q));
    ERR(ENOTTY, ioctl(OK(open("/proc/self/smaps", O_RDONLY)), QUERY, &q));
}

TEST(mapping_of_another_process)
{
    struct query q;
    char path[64];
    int fd, status;
    char *p = mapping(&fd);
    pid_t pid = OK(fork());

    if (!pid) {
        pause();
        _exit(0);
    }
    OK(munmap(p + 4096, 4096));
    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    ERR(ENOENT, ask(&q, p + 4096, 0));
    maps = OK(open(path, O_RDONLY));
    OK(ask(&q, p + 4096, 0));
    EQ(q.vma_flags, READABLE | SHARED);
    OK(kill(pid, SIGKILL));
    OK(waitpid(pid, &status, 0));
    ERR(ESRCH, ask(&q, p + 4096, 0));
}
