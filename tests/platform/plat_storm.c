/* SPDX-License-Identifier: Apache-2.0 */
/* Honest guests on the bare platform while processes are stopped, frozen, kicked and killed from outside. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "sentry/core/fiber.h"
#include "tests/platform/guest_calls.h"
#include "tests/platform/harness.h"

static unsigned fds_idle;
static bool storming;
static unsigned storms_running;

static bool back_to_idle(void)
{
    if (!harness_settled(10000))
        return false;
    for (int i = 0; i < 2000 && harness_count_fds() != fds_idle; i++)
        harness_sleep_us(1000);
    return harness_count_fds() == fds_idle;
}

/* ---- what shakes ---- */

static void shake_stop(void *arg)
{
    while (storming) {
        int pid = harness_random_pid();
        if (pid) {
            kill(pid, SIGSTOP);
            harness_sleep_us(harness_random() % 500);
            kill(pid, SIGCONT);
        }
        harness_sleep_us(harness_random() % 300);
    }
    storms_running--;
}

static void shake_kick(void *arg)
{
    while (storming) {
        int pid = harness_random_pid();
        if (pid)
            kill(pid, SIGUSR1);
        harness_sleep_us(harness_random() % 100);
    }
    storms_running--;
}

static void shake_kill(void *arg)
{
    while (storming) {
        int pid = harness_random_pid();
        if (pid)
            kill(pid, SIGKILL);
        harness_sleep_us(harness_random() % 3000);
    }
    storms_running--;
}

/* The processes of the pool and newborn ones too: any but the sentry and the zygote. */
static void shake_kill_any(void *arg)
{
    while (storming) {
        int pid = harness_random_host_pid();
        if (pid > 1 && pid != harness_zygote())
            kill(pid, SIGKILL);
        harness_sleep_us(harness_random() % 1000);
    }
    storms_running--;
}

static char freezer[128];
static bool freezer_v2;

static bool freezer_write(const char *file, const char *text)
{
    char path[192];
    snprintf(path, sizeof(path), "%s/%s", freezer, file);
    return host_write_file(AT_FDCWD, path, text, strlen(text)) == 0;
}

static bool freezer_make(void)
{
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", harness_zygote());
    snprintf(freezer, sizeof(freezer), "/sys/fs/cgroup/freezer/cloister-storm-%lx", harness_random() ^ host_monotonic_ns());
    if (mkdir(freezer, 0755) < 0) {
        freezer_v2 = true;
        snprintf(freezer, sizeof(freezer), "/sys/fs/cgroup/cloister-storm-%lx", host_monotonic_ns());
        if (mkdir(freezer, 0755) < 0)
            return false;
    }
    return freezer_write("cgroup.procs", pid);
}

static void freezer_remove(void)
{
    char pid[16];
    for (int i = 0; i < 1000 && rmdir(freezer) < 0; i++) {
        snprintf(pid, sizeof(pid), "%d", harness_random_host_pid());
        freezer_write("../cgroup.procs", pid);
    }
}

static void shake_freeze(void *arg)
{
    while (storming) {
        freezer_write(freezer_v2 ? "cgroup.freeze" : "freezer.state", freezer_v2 ? "1" : "FROZEN");
        harness_sleep_us(harness_random() % 3000);
        freezer_write(freezer_v2 ? "cgroup.freeze" : "freezer.state", freezer_v2 ? "0" : "THAWED");
        harness_sleep_us(harness_random() % 2000);
    }
    storms_running--;
}

/* ---- what is shaken ---- */

struct load {
    unsigned mode;
    uint64_t arg;
    bool may_die;
};

static unsigned loads_running, loads_died;

static void load_run(void *arg)
{
    const struct load *l = arg;
    int status = harness_wait(harness_start(l->mode, l->arg), 120000);
    if (status && !l->may_die) {
        fprintf(stderr, "mode %u ended with %d\n", l->mode, status);
        _Exit(1);
    }
    loads_died += status != 0;
    loads_running--;
}

static void storm(const char *name, void (*shake)(void *arg), bool may_die, unsigned rounds)
{
    const struct load loads[] = {
        {G_WORK, 10, may_die}, {G_WORK, 10, may_die}, {G_FORKERS, 4, may_die},
        {G_THREADS, 50, may_die}, {G_WORK, 10, may_die},
    };
    uint64_t t0 = host_monotonic_ns();
    loads_died = 0;
    storming = true;
    storms_running = shake ? 1 : 0;
    if (shake)
        CHECK(fiber_spawn(shake, NULL) == 0);
    for (unsigned r = 0; r < rounds; r++) {
        loads_running = ARRAY_SIZE(loads);
        for (unsigned i = 0; i < ARRAY_SIZE(loads); i++)
            CHECK(fiber_spawn(load_run, (void *)&loads[i]) == 0);
        while (loads_running)
            harness_sleep_us(1000);
    }
    storming = false;
    while (storms_running)
        harness_sleep_us(1000);
    CHECK(back_to_idle());
    printf("%s: %u rounds, %u of %zu loads died, %lu ms\n", name, rounds, loads_died, rounds * ARRAY_SIZE(loads),
           (unsigned long)((host_monotonic_ns() - t0) / 1000000));
    fflush(stdout);
}

static void storm_threads(unsigned n)
{
    uint64_t t0 = host_monotonic_ns();
    CHECK(harness_wait(harness_start(G_THREADS, n), 120000) == 0);
    CHECK(back_to_idle());
    printf("%u threads: %lu ms\n", n, (unsigned long)((host_monotonic_ns() - t0) / 1000000));
}

/* So few numbers that the host gives them away again at once. */
static void storm_small_pids(void)
{
    if (!harness_set_pid_max("400")) {
        puts("small pid_max: not on this host");
        return;
    }
    storm("small pid_max", NULL, false, 20);
    storm("small pid_max, killed", shake_kill, true, 20);
    harness_set_pid_max("32768");
}

static void storm_zygote(void)
{
    struct hproc *p = harness_start(G_SPIN, 0), *q = harness_start(G_SILENT_FORKS, 0);
    harness_sleep_us(50000);
    kill(harness_zygote(), SIGKILL);
    CHECK(harness_wait(p, 5000) == 256 + SIGKILL);
    CHECK(harness_wait(q, 5000) == 256 + SIGKILL);
    struct plat_thread *t;
    CHECK(plat_aspace_new(harness_platform, &t) < 0 || (plat_thread_end(t, 0), true));
    CHECK(plat_aspace_new(harness_platform, &t) < 0 || (plat_thread_end(t, 0), true));
    CHECK(plat_aspace_new(harness_platform, &t) < 0);
    for (int i = 0; i < 2000 && harness_count_pids() > 1; i++)
        harness_sleep_us(1000);
    CHECK(harness_count_pids() == 1);
    puts("zygote killed: all ended");
}

static int test(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 5;
    bool all = !*only;
    CHECK(harness_wait(harness_start(G_WORK, 2), 20000) == 0);
    CHECK(harness_settled(3000));
    harness_slow_sends(1U << 31); /* starts the I/O threads */
    CHECK(harness_wait(harness_start(G_WORK, 2), 20000) == 0);
    harness_slow_sends(0);
    CHECK(harness_settled(3000));
    harness_sleep_us(100000);
    fds_idle = harness_count_fds();
    if (all || !strcmp(only, "calm"))
        storm("calm", NULL, false, rounds);
    if (all || !strcmp(only, "stop"))
        storm("stops", shake_stop, false, rounds);
    if (all || !strcmp(only, "kick"))
        storm("kicks", shake_kick, false, rounds);
    if ((all || !strcmp(only, "freeze")) && freezer_make()) {
        storm("freezes", shake_freeze, false, rounds);
        freezer_remove();
    }
    if ((all || !strcmp(only, "slow")) && freezer_make()) {
        harness_slow_sends(1U << 31);
        storm("slow hand-over, freezes", shake_freeze, false, rounds);
        storm("slow hand-over, stops", shake_stop, false, rounds);
        storm("slow hand-over, kicks", shake_kick, false, rounds);
        storm("slow hand-over, kills", shake_kill, true, rounds);
        storm("slow hand-over, kills of any", shake_kill_any, true, rounds);
        harness_slow_sends(0);
        harness_sleep_us(100000);
        freezer_remove();
    }
    if (all || !strcmp(only, "kill")) {
        storm("kills", shake_kill, true, rounds);
        storm("kills of any", shake_kill_any, true, rounds);
        harness_sleep_us(100000); /* the last one may have hit the pool */
    }
    if (all || !strcmp(only, "threads")) {
        storm_threads(1000);
        storm_threads(4000);
    }
    if (all || !strcmp(only, "pids"))
        storm_small_pids();
    CHECK(harness_wait(harness_start(G_WORK, 2), 20000) == 0);
    CHECK(back_to_idle());
    if (all || !strcmp(only, "zygote"))
        storm_zygote();
    puts("ok");
    return 0;
}

int main(int argc, char **argv)
{
    return harness_main(test, argc, argv);
}
