/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive circular doubly linked list. */
#pragma once

#include <stdbool.h>

#include "platform/base/compiler.h"

struct list {
    struct list *next, *prev;
};

#define LIST_INIT(name) {&(name), &(name)}

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_insert_(struct list *n, struct list *prev, struct list *next)
{
    n->prev = prev;
    n->next = next;
    prev->next = n;
    next->prev = n;
}

/* Inserts n at the head of l. */
static inline void list_add(struct list *l, struct list *n)
{
    list_insert_(n, l, l->next);
}

/* Inserts n at the tail of l. */
static inline void list_add_tail(struct list *l, struct list *n)
{
    list_insert_(n, l->prev, l);
}

/* Unlinks n and leaves it a valid empty list, so that a second list_del is harmless. */
static inline void list_del(struct list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    list_init(n);
}

/* Moves all entries of from to the tail of to; from is left empty. */
static inline void list_splice_tail(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#define list_entry(ptr, type, member) container_of(ptr, type, member)
#define list_first(l, type, member) list_entry((l)->next, type, member)
#define list_last(l, type, member) list_entry((l)->prev, type, member)
#define list_first_or_null(l, type, member)                                                        \
    (list_empty(l) ? NULL : list_first(l, type, member))
#define list_for_each_entry(pos, l, member)                                                        \
    for (pos = list_entry((l)->next, __typeof__(*pos), member); &pos->member != (l);               \
         pos = list_entry(pos->member.next, __typeof__(*pos), member))
/* Allows removal of pos (but of no other entry) inside the loop. */
#define list_for_each_entry_safe(pos, tmp, l, member)                                              \
    for (pos = list_entry((l)->next, __typeof__(*pos), member),                                    \
        tmp = list_entry(pos->member.next, __typeof__(*pos), member);                              \
         &pos->member != (l);                                                                      \
         pos = tmp, tmp = list_entry(tmp->member.next, __typeof__(*tmp), member))
