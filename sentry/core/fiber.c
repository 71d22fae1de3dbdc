/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: the context switch, the pool of stacks and the queue of those that are ready. */
#include "sentry/core/fiber.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "platform/base/list.h"

#ifdef __SANITIZE_ADDRESS__
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum fiber_state { FIBER_RUNNING, FIBER_PARKED, FIBER_QUEUED, FIBER_ENDED };

/* Lives at the top of its own stack, so that starting one touches a single warm page. */
struct fiber {
    void *sp;
    struct list link; /* ready queue or idle pool */
    void (*fn)(void *arg);
    void *arg;
    void *owner;
    enum fiber_state state;
    bool token;   /* a ready came while it ran */
    void *fake_stack;
};

enum {
    IDLE_WARM = 8,             /* idle stacks kept as they are */
    IDLE_MAX = 64,             /* idle stacks kept at all */
    WARM_BYTES = 8 * 1024,     /* what a trimmed stack keeps */
    RUN_BATCH = 256,           /* fibers run before descriptors are looked at */
    MAPPING = FIBER_STACK_SIZE + 4096,
};

/* All owned by the kernel thread. */
static struct list ready = LIST_INIT(ready);
static struct list idle = LIST_INIT(idle);
static unsigned idle_len;
static struct fiber *current;
static void *main_sp;

/* Saves the callee-saved registers and the stack pointer, and takes up another stack. */
void fiber_switch_(void **save_sp, void *load_sp);
void fiber_entry_(void);
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".globl fiber_switch_\n"
        ".hidden fiber_switch_\n"
        ".type fiber_switch_, @function\n"
        "fiber_switch_:\n"
        "    endbr64\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size fiber_switch_, .-fiber_switch_\n"
        /* First return address of a fresh stack: a frame that ends the backtrace. */
        ".p2align 4\n"
        ".globl fiber_entry_\n"
        ".hidden fiber_entry_\n"
        ".type fiber_entry_, @function\n"
        "fiber_entry_:\n"
        "    .cfi_startproc\n"
        "    .cfi_undefined rip\n"
        "    endbr64\n"
        "    xorl %ebp, %ebp\n"
        "    call fiber_main_\n"
        "    ud2\n"
        "    .cfi_endproc\n"
        ".size fiber_entry_, .-fiber_entry_\n"
        ".popsection\n");

static char *stack_base(const struct fiber *f)
{
    return (char *)(f + 1) - FIBER_STACK_SIZE;
}

#ifdef __SANITIZE_ADDRESS__
static void *main_fake, *main_bottom;
static size_t main_size;

static void asan_learn_main(void)
{
    pthread_attr_t attr;

    if (main_bottom || pthread_getattr_np(pthread_self(), &attr))
        return;
    pthread_attr_getstack(&attr, &main_bottom, &main_size);
    pthread_attr_destroy(&attr);
}
#endif

/* From the kernel thread's own stack into f; comes back when f parks or ends. */
static void enter(struct fiber *f)
{
    f->state = FIBER_RUNNING;
    current = f;
#ifdef __SANITIZE_ADDRESS__
    asan_learn_main();
    __sanitizer_start_switch_fiber(&main_fake, stack_base(f), FIBER_STACK_SIZE);
#endif
    fiber_switch_(&main_sp, f->sp);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(main_fake, NULL, NULL);
#endif
    current = NULL;
}

/* From the running fiber back to the kernel thread's own stack. */
static void leave(struct fiber *f)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(f->state == FIBER_ENDED ? NULL : &f->fake_stack, main_bottom,
                                   main_size);
#endif
    fiber_switch_(&f->sp, main_sp);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(f->fake_stack, NULL, NULL);
#endif
}

void fiber_main_(void);
__attribute__((used)) void fiber_main_(void)
{
    struct fiber *f = current;

#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
    f->fn(f->arg);
    f->state = FIBER_ENDED;
    leave(f);
    BUG_ON(true);
}

static struct fiber *stack_take(void)
{
    struct fiber *f = list_first_or_null(&idle, struct fiber, link);
    char *p;

    if (f) {
        list_del(&f->link);
        idle_len--;
        return f;
    }
    p = mmap(NULL, MAPPING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    /* Without its guard page a fiber would be a hazard: refuse rather than run unguarded. */
    if (mprotect(p, 4096, PROT_NONE)) {
        munmap(p, MAPPING);
        return NULL;
    }
    f = (struct fiber *)(p + MAPPING) - 1;
    list_init(&f->link);
    return f;
}

static void stack_give(struct fiber *f)
{
    char *base = stack_base(f);

    if (idle_len >= IDLE_MAX) {
        munmap(base - 4096, MAPPING);
        return;
    }
    /* Many at once means a burst is ending: what its deep calls touched goes back to the host. */
    if (idle_len >= IDLE_WARM)
        madvise(base, FIBER_STACK_SIZE - WARM_BYTES, MADV_DONTNEED);
    list_add(&idle, &f->link);
    idle_len++;
}

static struct fiber *make(void (*fn)(void *arg), void *arg)
{
    struct fiber *f = stack_take();
    uint64_t *sp;

    if (!f)
        return NULL;
    f->fn = fn;
    f->arg = arg;
    f->owner = NULL;
    f->token = false;
    f->fake_stack = NULL;
    /* Six popped registers and the entry point, which finds an aligned stack. */
    sp = (uint64_t *)ALIGN_DOWN((uintptr_t)f, 16UL) - 7;
    sp[0] = sp[1] = sp[2] = sp[3] = sp[4] = sp[5] = 0;
    sp[6] = (uint64_t)(uintptr_t)fiber_entry_;
    f->sp = sp;
    return f;
}

static void run(struct fiber *f)
{
    enter(f);
    if (f->state == FIBER_ENDED)
        stack_give(f);
}

int fiber_spawn(void (*fn)(void *arg), void *arg)
{
    struct fiber *f = make(fn, arg);

    if (!f)
        return -ENOMEM;
    f->state = FIBER_QUEUED;
    list_add_tail(&ready, &f->link);
    return 0;
}

int fiber_start(void (*fn)(void *arg), void *arg)
{
    struct fiber *f;

    if (current)
        return fiber_spawn(fn, arg);
    f = make(fn, arg);
    if (!f)
        return -ENOMEM;
    run(f);
    return 0;
}

struct fiber *fiber_current(void)
{
    return current;
}

void *fiber_owner(void)
{
    return current ? current->owner : NULL;
}

void fiber_set_owner(void *owner)
{
    if (current)
        current->owner = owner;
}

void fiber_park(void)
{
    struct fiber *f = current;

    BUG_ON(!f);
    if (f->token) {
        f->token = false;
        return;
    }
    f->state = FIBER_PARKED;
    leave(f);
}

void fiber_ready(struct fiber *f)
{
    if (f->state == FIBER_PARKED) {
        f->state = FIBER_QUEUED;
        list_add_tail(&ready, &f->link);
    } else if (f->state == FIBER_RUNNING) {
        f->token = true;
    }
}

void fiber_run_ready(void)
{
    struct fiber *f;

    for (unsigned n = 0; n < RUN_BATCH; n++) {
        f = list_first_or_null(&ready, struct fiber, link);
        if (!f)
            return;
        list_del(&f->link);
        run(f);
    }
}

bool fiber_any_ready(void)
{
    return !list_empty(&ready);
}

void fiber_yield(void)
{
    struct fiber *f = current;

    BUG_ON(!f);
    f->state = FIBER_QUEUED;
    list_add_tail(&ready, &f->link);
    leave(f);
}
