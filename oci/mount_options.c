/* SPDX-License-Identifier: Apache-2.0 */
/* Mount option words to flags. */
#include "oci/mount_options.h"

#include <errno.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/mount.h>

#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256
#endif
#ifndef MS_LAZYTIME
#define MS_LAZYTIME (1 << 25)
#endif

enum option_kind {
    OPTION_SET,
    OPTION_CLEAR,
    OPTION_PROPAGATION,
    OPTION_REC_SET,
    OPTION_REC_CLEAR,
    OPTION_TMPCOPYUP,
    OPTION_IDMAP,
    OPTION_RIDMAP,
};

/* In alphabetical order: `features` lists them so. The access-time attributes of mount_setattr(2)
 * are one field, so clearing one of them means clearing the field. */
static const struct option {
    const char *name;
    enum option_kind kind;
    uint64_t flags;
} options[] = {
    {"acl", OPTION_SET, MS_POSIXACL},
    {"async", OPTION_CLEAR, MS_SYNCHRONOUS},
    {"atime", OPTION_CLEAR, MS_NOATIME},
    {"bind", OPTION_SET, MS_BIND},
    {"defaults", OPTION_SET, 0},
    {"dev", OPTION_CLEAR, MS_NODEV},
    {"diratime", OPTION_CLEAR, MS_NODIRATIME},
    {"dirsync", OPTION_SET, MS_DIRSYNC},
    {"exec", OPTION_CLEAR, MS_NOEXEC},
    {"idmap", OPTION_IDMAP, 0},
    {"iversion", OPTION_SET, MS_I_VERSION},
    {"lazytime", OPTION_SET, MS_LAZYTIME},
    {"loud", OPTION_CLEAR, MS_SILENT},
    {"mand", OPTION_SET, MS_MANDLOCK},
    {"noacl", OPTION_CLEAR, MS_POSIXACL},
    {"noatime", OPTION_SET, MS_NOATIME},
    {"nodev", OPTION_SET, MS_NODEV},
    {"nodiratime", OPTION_SET, MS_NODIRATIME},
    {"noexec", OPTION_SET, MS_NOEXEC},
    {"noiversion", OPTION_CLEAR, MS_I_VERSION},
    {"nolazytime", OPTION_CLEAR, MS_LAZYTIME},
    {"nomand", OPTION_CLEAR, MS_MANDLOCK},
    {"norelatime", OPTION_CLEAR, MS_RELATIME},
    {"nostrictatime", OPTION_CLEAR, MS_STRICTATIME},
    {"nosuid", OPTION_SET, MS_NOSUID},
    {"nosymfollow", OPTION_SET, MS_NOSYMFOLLOW},
    {"private", OPTION_PROPAGATION, MS_PRIVATE},
    {"ratime", OPTION_REC_CLEAR, MOUNT_ATTR__ATIME},
    {"rbind", OPTION_SET, MS_BIND | MS_REC},
    {"rdev", OPTION_REC_CLEAR, MOUNT_ATTR_NODEV},
    {"rdiratime", OPTION_REC_CLEAR, MOUNT_ATTR_NODIRATIME},
    {"relatime", OPTION_SET, MS_RELATIME},
    {"remount", OPTION_SET, MS_REMOUNT},
    {"rexec", OPTION_REC_CLEAR, MOUNT_ATTR_NOEXEC},
    {"ridmap", OPTION_RIDMAP, 0},
    {"rnoatime", OPTION_REC_SET, MOUNT_ATTR_NOATIME},
    {"rnodev", OPTION_REC_SET, MOUNT_ATTR_NODEV},
    {"rnodiratime", OPTION_REC_SET, MOUNT_ATTR_NODIRATIME},
    {"rnoexec", OPTION_REC_SET, MOUNT_ATTR_NOEXEC},
    {"rnorelatime", OPTION_REC_CLEAR, MOUNT_ATTR__ATIME},
    {"rnostrictatime", OPTION_REC_CLEAR, MOUNT_ATTR__ATIME},
    {"rnosuid", OPTION_REC_SET, MOUNT_ATTR_NOSUID},
    {"rnosymfollow", OPTION_REC_SET, MOUNT_ATTR_NOSYMFOLLOW},
    {"ro", OPTION_SET, MS_RDONLY},
    {"rprivate", OPTION_PROPAGATION, MS_PRIVATE | MS_REC},
    {"rrelatime", OPTION_REC_SET, MOUNT_ATTR_RELATIME},
    {"rro", OPTION_REC_SET, MOUNT_ATTR_RDONLY},
    {"rrw", OPTION_REC_CLEAR, MOUNT_ATTR_RDONLY},
    {"rshared", OPTION_PROPAGATION, MS_SHARED | MS_REC},
    {"rslave", OPTION_PROPAGATION, MS_SLAVE | MS_REC},
    {"rstrictatime", OPTION_REC_SET, MOUNT_ATTR_STRICTATIME},
    {"rsuid", OPTION_REC_CLEAR, MOUNT_ATTR_NOSUID},
    {"rsymfollow", OPTION_REC_CLEAR, MOUNT_ATTR_NOSYMFOLLOW},
    {"runbindable", OPTION_PROPAGATION, MS_UNBINDABLE | MS_REC},
    {"rw", OPTION_CLEAR, MS_RDONLY},
    {"shared", OPTION_PROPAGATION, MS_SHARED},
    {"silent", OPTION_SET, MS_SILENT},
    {"slave", OPTION_PROPAGATION, MS_SLAVE},
    {"strictatime", OPTION_SET, MS_STRICTATIME},
    {"suid", OPTION_CLEAR, MS_NOSUID},
    {"symfollow", OPTION_CLEAR, MS_NOSYMFOLLOW},
    {"sync", OPTION_SET, MS_SYNCHRONOUS},
    {"tmpcopyup", OPTION_TMPCOPYUP, 0},
    {"unbindable", OPTION_PROPAGATION, MS_UNBINDABLE},
};

static const struct option *mount_options_find(const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(options); i++) {
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    }
    return NULL;
}

static void mount_options_rec_set(struct mount_options *o, uint64_t flags)
{
    /* MOUNT_ATTR_RELATIME is 0: "rrelatime" works through the cleared field alone. */
    bool atime = (flags & (uint64_t)MOUNT_ATTR__ATIME) == flags;
    if (atime) {
        o->rec_set &= ~(uint64_t)MOUNT_ATTR__ATIME;
        o->rec_cleared |= MOUNT_ATTR__ATIME;
    } else {
        o->rec_cleared &= ~flags;
    }
    o->rec_set |= flags;
}

static void mount_options_apply(struct mount_options *o, const struct option *option,
                                unsigned long *propagation)
{
    switch (option->kind) {
    case OPTION_SET:
        o->set |= option->flags;
        o->cleared &= ~option->flags;
        break;
    case OPTION_CLEAR:
        o->set &= ~option->flags;
        o->cleared |= option->flags;
        break;
    case OPTION_PROPAGATION:
        propagation[o->propagation_len++] = option->flags;
        break;
    case OPTION_REC_SET:
        mount_options_rec_set(o, option->flags);
        break;
    case OPTION_REC_CLEAR:
        o->rec_set &= ~option->flags;
        o->rec_cleared |= option->flags;
        break;
    case OPTION_TMPCOPYUP:
        o->tmpcopyup = true;
        break;
    case OPTION_IDMAP:
    case OPTION_RIDMAP:
        o->idmap = true;
        o->idmap_recursive = option->kind == OPTION_RIDMAP;
        break;
    }
}

int mount_options_parse(struct arena *a, const char *const *list, unsigned len,
                        struct mount_options *ret_options)
{
    size_t data_size = 1;
    for (unsigned i = 0; i < len; i++)
        data_size += strlen(list[i]) + 1;
    unsigned long *propagation = arena_calloc(a, len, sizeof(*propagation));
    char *data = arena_alloc(a, data_size);
    if (!propagation || !data)
        return -ENOMEM;
    struct mount_options o = {.propagation = propagation, .data = data};
    char *end = data;
    for (unsigned i = 0; i < len; i++) {
        const struct option *option = mount_options_find(list[i]);
        if (option) {
            mount_options_apply(&o, option, propagation);
            continue;
        }
        if (!list[i][0])
            continue;
        if (end != data)
            *end++ = ',';
        end = stpcpy(end, list[i]);
    }
    *ret_options = o;
    return 0;
}

const char *mount_options_name(unsigned index)
{
    return index < ARRAY_SIZE(options) ? options[index].name : NULL;
}

unsigned long mount_options_propagation(const char *word)
{
    const struct option *option = mount_options_find(word);
    return option && option->kind == OPTION_PROPAGATION ? option->flags : 0;
}
