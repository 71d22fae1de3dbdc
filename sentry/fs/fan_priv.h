/* SPDX-License-Identifier: Apache-2.0 */
/* Inside fanotify. */
#pragma once

#include "platform/base/list.h"
#include "platform/base/ref.h"
#include "sentry/abi/abi_fanotify.h"
#include "sentry/core/ucount.h"
#include "sentry/core/waitq.h"
#include "sentry/fs/fan_group.h"
#include "sentry/vfs/handle.h"
#include "sentry/vfs/mount.h"
#include "sentry/vfs/notify.h"

struct pid;
struct uio;

enum { FAN_BUCKETS = 128, FAN_MERGE_MAX = 128 };

/* By which object a mark has to do with an event. The first three are also kinds of marks. */
enum fan_role { FAN_BY_SB, FAN_BY_MOUNT, FAN_BY_INODE, FAN_BY_PARENT, FAN_BY_NEW_DIR, FAN_ROLES };

struct fan_mark {
    struct list set_link;    /* (k) fan_set.marks */
    struct list group_link;  /* (k) fan_group.marks */
    struct fan_group *group; /* (i) not owned: it owns us */
    struct fan_set *set;     /* (k) not owned: it is there while it has marks */
    uint32_t mask, ignore;   /* (k) FAN_* with FAN_ONDIR, FAN_EVENT_ON_CHILD */
    bool survives_modify;    /* (k) ignore is not cleared at a change of the file */
    bool ignore_has_flags;   /* (k) FAN_MARK_IGNORE: ignore's own FAN_ONDIR … count */
    bool evictable;          /* (k) the inode is not referenced */
    int32_t fsid[2];         /* (i) */
};

/* Hangs on an inode, a mount or a superblock while it has marks. */
struct fan_set {
    struct list marks; /* (k) of fan_mark.set_link */
    uint32_t mask;     /* (k) what the marks together want to see */
    enum fan_role kind; /* (i) */
    struct superblock *sb; /* (i) of the object, not owned */
    struct inode *inode;   /* (i) FAN_BY_INODE; each mark that is not evictable has a reference */
    struct mount *mount;   /* (i) FAN_BY_MOUNT; not owned */
};

enum fan_kind { FAN_KIND_PATH, FAN_KIND_FID, FAN_KIND_NAME, FAN_KIND_ASK, FAN_KIND_OVERFLOW };
enum fan_state { FAN_QUEUED, FAN_REPORTED, FAN_ANSWERED, FAN_CANCELLED };

struct fan_event {
    struct list link;      /* (k) fan_group.events or .asked */
    struct list hash_link; /* (k) fan_group.buckets */
    enum fan_kind kind;    /* (i) */
    uint32_t mask;         /* (k) */
    uint32_t hash;         /* (i) */
    struct pid *pid;       /* (i) referenced; NULL: the sentry's own doing */
    struct path path;      /* (i) referenced; PATH, ASK */
    int32_t fsid[2];       /* (i) */
    bool has_object, has_dir, has_new_dir;   /* (i) */
    struct handle object, dir, new_dir;      /* (i) */
    uint16_t name_len, new_name_len;         /* (i) */
    enum fan_state state;  /* (k) of a question */
    int32_t fd;            /* (k) what its reader knows it by */
    uint32_t answer;       /* (k) */
    char *names;           /* (i) behind the object: name, new name; both terminated */
};

struct fan_group {
    struct ref ref;
    struct list all_link;   /* (k) fan_groups */
    uint32_t flags;         /* (i) FAN_* of fanotify_init */
    uint32_t event_flags;   /* (i) O_* of the files that readers get */
    bool unprivileged;      /* (i) */
    unsigned priority;      /* (i) 2 is asked first */
    bool closed;            /* (k) */
    struct waitq wait;      /* readers */
    struct waitq answered;  /* those who asked */
    struct list events;     /* (k) of fan_event.link */
    uint32_t events_len, events_max; /* (k); (i) */
    struct list asked;      /* (k) questions that were read and not answered yet */
    struct fan_event overflow;       /* (k) queued while its link is used */
    struct list buckets[FAN_BUCKETS]; /* (k) events that may be merged with, newest first */
    struct list marks;      /* (k) of fan_mark.group_link */
    struct ucharge charge;  /* (i) */
    /* Only while one event's groups are collected */
    uint64_t pass;
    struct list pass_link;
    struct fan_mark *found[FAN_ROLES];
};

extern struct list fan_groups; /* (k) of fan_group.all_link */

struct fan_group *fan_group_of(const struct file *f);
struct fan_group *fan_group_ref(struct fan_group *g);
void fan_group_unref(struct fan_group *g);

/* fan_mark.c */
void fan_mark_free(struct fan_mark *m);
uint32_t fan_mark_user_flags(const struct fan_mark *m); /* as fdinfo shows them */
void fan_mark_inode_gone(struct inode *inode);
void fan_mark_mount_gone(struct mount *m);
void fan_mark_sb_gone(struct superblock *sb);
void fan_mark_recalc(struct fan_set *s);

/* fan_event.c */
/* What a group is told of an event. */
struct fan_hit {
    struct fan_group *group; /* referenced */
    uint32_t mask;
    unsigned roles; /* 1 << enum fan_role of the marks that matched */
    int32_t fsid[2];
};
/* Return: NULL on no memory. */
MUST_CHECK struct fan_event *fan_event_make(const struct fan_hit *hit, const struct notify_event *ev);
void fan_event_free(struct fan_event *e); /* NULL is fine */
/* Takes e out of the queue and what it is found by. */
void fan_event_unqueue(struct fan_group *g, struct fan_event *e);
void fan_event_overflow(struct fan_group *g);

/* fan_hit.c */
/* The groups that ev is to be told to, those that are asked first before others. *ret_hits is to be freed by fan_hits_free;
 * NULL when there is none. Return: 0 or −ENOMEM. */
MUST_CHECK int fan_hits_find(const struct notify_event *ev, struct fan_hit **ret_hits, unsigned *ret_len);
void fan_hits_free(struct fan_hit *hits, unsigned len);

/* fan_ask.c */
int fan_ask(struct ctx *ctx, const struct notify_event *ev);
/* A question that was read, or could not be, gets its answer. */
void fan_answer(struct fan_group *g, struct fan_event *e, uint32_t answer);
ssize_t fan_write(struct file *f, struct uio *u, int64_t *pos);

/* fan_read.c */
ssize_t fan_read(struct file *f, struct uio *u, int64_t *pos);
