/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile guests on the bare platform: whatever they do, the sentry lives on, serves others, and keeps nothing of them. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "platform/seccomp/stub_abi.h"
#include "platform/seccomp/stub_blob.h"
#include "tests/platform/guest_calls.h"
#include "tests/platform/harness.h"

static const char marker[] = "/tmp/cloister-attack-marker";

enum { ANY = -1000 };

static unsigned fds_idle;

/* The pool is refilled in the background, so it may take a moment. */
static bool fds_are_back(void)
{
    unsigned want = fds_idle;
    for (int i = 0; i < 1000 && harness_count_fds() != want; i++)
        harness_sleep_us(1000);
    return harness_count_fds() == want;
}

/* Runs one attack; want: the status that it must end with, ANY: whatever it is. */
static void attack(const char *name, unsigned mode, uint64_t arg, int want, unsigned limit_ms)
{
    struct hproc *p = harness_start(mode, arg);
    int status = harness_wait(p, limit_ms);
    printf("%s %#lx: %d\n", name, (unsigned long)arg, status);
    fflush(stdout);
    CHECK(want == ANY || status == want);
    CHECK(harness_settled(3000));
    CHECK(fds_are_back());
    /* Another guest does well. */
    CHECK(harness_wait(harness_start(G_IDLE, 0), 3000) == 0);
    CHECK(harness_settled(3000));
}

static void attack_rings(void)
{
    for (unsigned op = 0; op < 14; op++)
        attack("ring", G_RING, op, ANY, 300);
    attack("ring storm", G_RING_STORM, 0, ANY, 20000);
    attack("post storm", G_POST_STORM, 0, 0, 20000);
    attack("forged birth", G_BIRTH_FORGED, 0, 265, 3000);
    for (int i = 0; i < 10; i++)
        attack("stolen birth", G_STEAL, (uint64_t)i & 1, ANY, 3000);
}

static void attack_threads(void)
{
    attack("undead", G_UNDEAD, 0, ANY, 1000);
    attack("undead", G_UNDEAD, 1, ANY, 1000);
    attack("intrude", G_INTRUDE, 0, ANY, 1000);
    for (unsigned seed = 1; seed < 40; seed++)
        attack("scribble", G_INTRUDE, seed, ANY, 100);
    attack("vanish", G_VANISH, 0, ANY, 3000);
    attack("vanish leader", G_VANISH_LEADER, 0, ANY, 3000);
    attack("mask", G_MASK, 0, -1, 200);
    attack("mask thread", G_MASK, 1, 0, 3000);
}

static void attack_memory(void)
{
    for (unsigned what = 0; what < 9; what++)
        attack("unmap", G_UNMAP, what, ANY, 1000);
    attack("remap", G_REMAP, 0, 0, 20000);
    attack("hoard", G_HOARD, 0, 0, 20000);
    attack("descriptors of siblings", G_FD_LEAK, 0, 0, 60000);
}

static void attack_other_calls(void)
{
    int fd = open(marker, O_CREAT | O_RDWR, 0666);
    CHECK(fd >= 0);
    close(fd);
    attack("other entries", G_ABI, 0, 0, 10000);
    CHECK(access(marker, F_OK) == 0);
    unlink(marker);
    attack("clone flags", G_CLONE_RAW, 0, 0, 3000);
}

static void attack_hide(void)
{
    for (unsigned how = 0; how < HIDE_END; how++)
        attack("hide", G_HIDE, how, ANY, 500);
}

/* Floods of rings do not starve another guest. */
static void attack_flood(void)
{
    struct hproc *flood[4];
    for (int i = 0; i < 4; i++)
        flood[i] = harness_start(G_FLOOD, 0);
    uint64_t t0 = host_monotonic_ns();
    CHECK(harness_wait(harness_start(G_WORK, 20), 60000) == 0);
    printf("flood: 20 rounds of work in %lu ms\n", (unsigned long)((host_monotonic_ns() - t0) / 1000000));
    for (int i = 0; i < 4; i++)
        harness_wait(flood[i], 1);
    CHECK(harness_settled(3000));
}

/* Every byte of the stub's text is jumped to. */
static void attack_jumps(uint64_t rounds)
{
    uint64_t size = (uint64_t)(stub_blob_end - stub_blob_start) + 64;
    for (uint64_t r = 0; r < rounds; r++)
        for (uint64_t at = 0; at < size; at += 512) {
            /* The upper half of the number varies the registers. */
            struct hproc *p = harness_start(G_JUMP, at | 512ULL << 32 | r << 48);
            int status = harness_wait(p, 120000);
            if (status)
                fprintf(stderr, "jumps at %#lx: %d\n", (unsigned long)at, status);
            CHECK(harness_settled(5000));
        }
    printf("jumps: %lu\n", (unsigned long)(rounds * size));
}

static int test(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    bool all = !*only;
    CHECK(harness_wait(harness_start(G_WORK, 5), 20000) == 0);
    CHECK(harness_settled(3000));
    harness_sleep_us(100000);
    fds_idle = harness_count_fds();
    if (all || !strcmp(only, "rings"))
        attack_rings();
    if (all || !strcmp(only, "threads"))
        attack_threads();
    if (all || !strcmp(only, "memory"))
        attack_memory();
    if (all || !strcmp(only, "calls"))
        attack_other_calls();
    if (all || !strcmp(only, "hide"))
        attack_hide();
    if (all || !strcmp(only, "flood"))
        attack_flood();
    if (!strcmp(only, "jumps"))
        attack_jumps(argc > 2 ? strtoul(argv[2], NULL, 0) : 1);
    CHECK(harness_wait(harness_start(G_WORK, 5), 20000) == 0);
    CHECK(harness_settled(3000));
    CHECK(fds_are_back());
    puts("ok");
    return 0;
}

int main(int argc, char **argv)
{
    return harness_main(test, argc, argv);
}
