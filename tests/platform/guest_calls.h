/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest image of these tests and the harness agree on. */
#pragma once

enum {
    K_EXIT = 60,
    K_EXIT_GROUP = 231,
    K_FORK = 2000,
    K_THREAD,    /* entry, stack, argument, word to clear */
    K_WAIT,      /* microseconds after which the children are killed, 0 = never. Return: status of one that has ended */
    K_SUM,       /* pointer, size. Return: sum of the bytes, or −EFAULT */
    K_FILL,      /* pointer, size, byte */
    K_MAP_FILE,  /* prot, flags: a page of a file, through the backend's injection */
    K_SLEEP,     /* microseconds */
    K_HOSTCALLS, /* maps and unmaps a page. Return: 0 or −errno */
    K_GETPID,    /* argument back plus one: checks that no answer goes astray */
    K_KILL_SELF, /* ends the process as SIGKILL does, a little later */
    K_END,
};

/* Start modes. */
enum {
    G_IDLE,         /* one call, exit 0 */
    G_WORK,         /* all sorts of calls, forks and threads; arg: rounds */
    G_SPIN,         /* endless loop without calls */
    G_RING,         /* arg: operation. Rings for itself, from the stub's instruction */
    G_RING_STORM,   /* every operation with old, new and wild numbers */
    G_POST_STORM,   /* posts of all sorts, its own and a sibling's */
    G_BIRTH_FORGED, /* BIRTH with guessed tokens */
    G_CLONE_RAW,    /* clone at the stub's site without leave, with all sorts of flags */
    G_HIDE,         /* fork with a patched stub; arg: enum hide */
    G_UNDEAD,       /* a thread that is told to end rings on; arg: 0 or 1 */
    G_INTRUDE,      /* the thread rings a call while the kernel waits for its host calls */
    G_HOARD,        /* never closes what is injected */
    G_VANISH,       /* a thread leaves by the host's exit without a word */
    G_VANISH_LEADER,
    G_UNMAP,        /* arg: which part of the zone goes */
    G_JUMP,         /* arg: first offset; forks a child for each of some offsets of the stub */
    G_ABI,          /* int 0x80, x32 and sysenter at the stub's addresses */
    G_MASK,         /* blocks all host signals through the stub's sigreturn, then spins */
    G_REMAP,        /* mremap, mprotect, madvise and futex on the mailbox and the text */
    G_THREADS,      /* arg: how many */
    G_FORKERS,      /* arg: threads that fork at once */
    G_STEAL,        /* a thread takes over the birth token of a fork */
    G_FLOOD,        /* rings old numbers as fast as it can */
    G_FD_LEAK,      /* exit status 0 if a forked child has no descriptors while siblings map files */
    G_SILENT_FORKS, /* forks for ever */
    G_END,
};

enum hide {
    HIDE_CHILD,       /* the child never rings, the parent tells the truth */
    HIDE_REFUSED,     /* the parent says that clone failed */
    HIDE_OTHER_PID,   /* the parent names another process */
    HIDE_OWN_PID,     /* the parent names itself */
    HIDE_PARENT_GONE, /* neither rings again */
    HIDE_TWICE,       /* the parent clones twice */
    HIDE_OTHER_OP,    /* the parent rings a call instead */
    HIDE_EXIT,        /* the parent ends its process right after the clone */
    HIDE_THREAD,      /* the same with threads: a thread that never rings */
    HIDE_THREAD_TWICE,
    HIDE_END,
};
