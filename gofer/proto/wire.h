/* SPDX-License-Identifier: Apache-2.0 */
/* What sentry and gofer say to each other: messages, operations and their fixed parts.
 *
 * Both run on one machine from one executable, so fields are host-endian and naturally aligned. A
 * payload is one fixed struct followed by the variable parts named in its comment, packed without
 * padding. Strings are a uint16_t size and that many bytes, without a NUL and never containing one.
 */
#pragma once

#include <stdint.h>

/* In the root of the root file system: the runtime's, where the layers of containers are that have it as their lower one. */
#define WIRE_STORE_NAME ".cloister.overlay"

enum {
    WIRE_SLOTS = 32,          /* requests that may be outstanding */
    WIRE_SLOT_SIZE = 1 << 16, /* shared memory of one slot, and so the largest payload */
    WIRE_INLINE_MAX = 1984,   /* payloads up to this travel in the socket message itself */
    WIRE_FDS_MAX = 16,        /* descriptors in one reply */
    WIRE_OPEN_MANY_MAX = 15,  /* files in one OPEN_MANY; the reply still travels in the socket message */
    WIRE_NAME_MAX = 255,
    WIRE_PATH_MAX = 4095, /* also the longest symbolic-link target */
    WIRE_WALK_MAX = 64,   /* components in one WALK */
    WIRE_XATTR_SIZE_MAX = 65536 - 64,
    WIRE_RELEASE_MAX = 4096, /* nodes in one RELEASE */
    WIRE_WATCHES_MAX = 8192, /* watched directories of one gofer */
    WIRE_LANE_MAX = 1 << 15, /* one message on the lane */
    WIRE_LANE_BUFFER = 1 << 18 /* of the lane's socket, asked for */
};

/* Node ids are the server's: opaque, never reused in a session, never 0. */
#define WIRE_NODE_NONE 0ull
/* Bit that no node id has. */
#define WIRE_RELEASE_WATCH 0x80000000ull

enum wire_op {
    WIRE_OP_ATTACH = 1,
    WIRE_OP_WALK,
    WIRE_OP_OPEN,
    WIRE_OP_CREATE,
    WIRE_OP_MKDIR,
    WIRE_OP_SYMLINK,
    WIRE_OP_MKNOD,
    WIRE_OP_TMPFILE,
    WIRE_OP_LINK,
    WIRE_OP_UNLINK,
    WIRE_OP_RENAME,
    WIRE_OP_READLINK,
    WIRE_OP_GETATTR,
    WIRE_OP_SETATTR,
    WIRE_OP_GETXATTR,
    WIRE_OP_SETXATTR,
    WIRE_OP_LISTXATTR,
    WIRE_OP_REMOVEXATTR,
    WIRE_OP_READDIR,
    WIRE_OP_STATFS,
    WIRE_OP_FSYNC,
    WIRE_OP_SYNCFS,
    WIRE_OP_RELEASE,
    WIRE_OP_EXIT,
    WIRE_OP_OPEN_MANY,
    WIRE_OP_CACHESTAT,
    WIRE_OP_FLAGS,
    WIRE_OP_COUNT
};

/* Socket message of a request: this and, when inline_size is not 0, that many bytes of payload.
 *
 * On the lane (ATTACH) a message is one or more of these in a row, of WIRE_LANE_MAX bytes in all, with inline
 * payloads as long as fit. What comes by the lane is done in order, each request after the one before is
 * done. */
struct wire_request {
    uint32_t tag;         /* slot in the low 8 bits, a sequence number above */
    uint16_t op;          /* enum wire_op */
    uint16_t inline_size; /* payload bytes in this message; 0: the payload is in the slot */
    uint32_t slot_size;   /* payload bytes in the slot; 0 when inline */
};

/* Socket message of a reply, likewise; descriptors come as SCM_RIGHTS of the same message. */
struct wire_reply {
    uint32_t tag;
    int32_t error; /* 0 or −errno; a failed request has no payload and no descriptors */
    uint32_t slot_size;
    uint16_t inline_size;
    uint16_t fds_len;
};

#define WIRE_TAG_SLOT(tag) ((tag)&0xffu)
/* Slot of requests on the lane that nobody waits for: only a failure is answered. */
#define WIRE_SLOT_NONE 0xffu

/* Behind the slots in the shared memory. The server writes, the sentry reads. */
struct wire_board {
    uint32_t lane_done; /* requests that came by the lane and are done; what they are answered was sent before */
    uint32_t reserved;
};

/* Attributes of one inode, as statx gives them. */
struct wire_attr {
    uint64_t ino;
    uint64_t size;
    uint64_t blocks; /* of 512 bytes */
    int64_t atime_sec, mtime_sec, ctime_sec, btime_sec;
    uint32_t atime_nsec, mtime_nsec, ctime_nsec, btime_nsec;
    uint32_t mode; /* type and permissions */
    uint32_t nlink;
    uint32_t uid, gid;
    uint32_t rdev_major, rdev_minor;
    uint32_t blksize;
    uint32_t dev;   /* number of the host file system in this session, from 0; not a host number */
    uint32_t flags; /* WIRE_ATTR_* */
    uint32_t watch; /* directories of watched trees: number in the inotify descriptor; 0: none */
};

enum {
    WIRE_ATTR_BTIME = 1 << 0,     /* btime is known */
    WIRE_ATTR_IMMUTABLE = 1 << 1, /* inode flags that change what is permitted */
    WIRE_ATTR_APPEND = 1 << 2
};

/* One inode in a reply. */
struct wire_entry {
    uint64_t node; /* WIRE_NODE_NONE when none was asked for */
    struct wire_attr attr;
};

/* ATTACH. Reply: struct wire_entry of the tree's root, then uint32_t WIRE_TREE_* flags; with
 * WIRE_TREE_WATCHED one descriptor, an inotify instance in which the directories that are handed
 * out are watched (the same one for all trees); with WIRE_TREE_LANE one (the last), the sentry's end of a second
 * SOCK_SEQPACKET pair, the lane. There is one lane in a session: who asks for a second gets none. */
struct wire_attach {
    uint32_t tree;
    uint32_t flags; /* WIRE_ATTACH_* */
};

enum {
    WIRE_ATTACH_WATCH = 1 << 0, /* the tree is shared: watch it if possible */
    WIRE_ATTACH_LANE = 1 << 1
};

enum {
    WIRE_TREE_READ_ONLY = 1 << 0,
    WIRE_TREE_WATCHED = 1 << 1,
    WIRE_TREE_LANE = 1 << 2,
    WIRE_TREE_LOCAL = 1 << 3 /* its file system is the host's own: it refuses no change that the mode bits permit */
};

/* WALK. Follows: string, the path: components separated by single slashes, none of them "." or
 * "..". Reply: struct wire_walk_result, then count entries (for the first component, the second,
 * …), then, when the last of them is a symbolic link, a string with its target. With
 * WIRE_WALK_OPEN, on success one descriptor of the last component. */
struct wire_walk {
    uint64_t node;
    uint32_t flags;      /* WIRE_WALK_* */
    uint32_t open_flags; /* O_RDONLY, O_WRONLY or O_RDWR, with WIRE_WALK_OPEN */
};

enum {
    WIRE_WALK_NODES = 1 << 0, /* give a node also for what is not a directory */
    /* Open the last component too when it is a regular file. When that alone fails, the walk's
     * results stand and open_error says why. */
    WIRE_WALK_OPEN = 1 << 1
};

enum wire_walk_end {
    WIRE_WALK_COMPLETE = 0, /* every component was found */
    WIRE_WALK_MISSING,      /* the component after the last entry does not exist */
    WIRE_WALK_STOPPED,      /* the last entry is no directory (a link, perhaps) but more follows */
    WIRE_WALK_FAILED        /* looking up the component after the last entry gave error */
};

struct wire_walk_result {
    uint32_t count;
    uint32_t end;       /* enum wire_walk_end */
    int32_t error;      /* with WIRE_WALK_FAILED, −errno */
    int32_t open_error; /* with WIRE_WALK_OPEN: 0 and a descriptor, or −errno */
};

/* OPEN: regular files only. Reply: nothing but one descriptor. */
struct wire_open {
    uint64_t node;
    uint32_t flags; /* O_RDONLY, O_WRONLY or O_RDWR */
    uint32_t reserved;
};

/* OPEN_MANY: opens files of one directory O_RDONLY that somebody is about to read. Follows: count
 * strings, their names. Reply: for each of the first so many of them that little time went by (at
 * least one) struct wire_opened, and as many descriptors as opened have no error, in that order. */
struct wire_open_many {
    uint64_t dir;
    uint32_t count; /* 1 to WIRE_OPEN_MANY_MAX */
    uint32_t flags; /* WIRE_OPEN_MANY_NODES or 0 */
};

enum { WIRE_OPEN_MANY_NODES = 1 << 0 /* give a node of each, as well */ };

struct wire_opened {
    int32_t error; /* 0 and a descriptor, or −errno and nothing in entry */
    uint32_t reserved;
    struct wire_entry entry;
};

/* CREATE, MKDIR, SYMLINK, MKNOD, TMPFILE: makes an inode with exactly this mode, owner and group.
 * Follows: string name (empty for TMPFILE); for SYMLINK also string target.
 * Reply: struct wire_entry; for CREATE and TMPFILE also one descriptor. */
struct wire_make {
    uint64_t dir;
    uint32_t mode; /* permission bits; for MKNOD with the type */
    uint32_t uid, gid;
    uint32_t open_flags;             /* CREATE, TMPFILE: O_RDONLY, O_WRONLY or O_RDWR */
    uint32_t rdev_major, rdev_minor; /* MKNOD */
    uint32_t flags;                  /* WIRE_MAKE_* */
    uint32_t reserved;
};

enum { WIRE_MAKE_NODE = 1 << 0 /* give a node (directories always get one) */ };

/* LINK. Follows: string name. Reply: struct wire_attr of the inode. */
struct wire_link {
    uint64_t node;
    uint64_t dir;
};

/* UNLINK. Follows: string name. Reply: nothing. */
struct wire_unlink {
    uint64_t dir;
    uint32_t flags; /* AT_REMOVEDIR or 0 */
    uint32_t reserved;
};

/* RENAME. Follows: string old name, string new name. Reply: nothing. */
struct wire_rename {
    uint64_t old_dir;
    uint64_t new_dir;
    uint32_t flags; /* RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT */
    uint32_t reserved;
};

/* READLINK (reply: string), GETATTR (reply: struct wire_attr), STATFS, FSYNC and SYNCFS (reply:
 * nothing), LISTXATTR (reply: the names, each with its NUL). */
struct wire_node_only {
    uint64_t node;
};

/* SETATTR, done in the order size, owner, mode, times. Reply: struct wire_attr. */
struct wire_setattr {
    uint64_t node;
    uint32_t mask; /* WIRE_SET_* */
    uint32_t mode;
    uint32_t uid, gid;
    uint64_t size;
    int64_t atime_sec, mtime_sec;
    uint32_t atime_nsec, mtime_nsec;
};

enum {
    WIRE_SET_MODE = 1 << 0,
    WIRE_SET_UID = 1 << 1,
    WIRE_SET_GID = 1 << 2,
    WIRE_SET_SIZE = 1 << 3,
    WIRE_SET_ATIME = 1 << 4,
    WIRE_SET_MTIME = 1 << 5,
    WIRE_SET_ATIME_NOW = 1 << 6,
    WIRE_SET_MTIME_NOW = 1 << 7,
    WIRE_SET_ALL = (1 << 8) - 1
};

/* GETXATTR, SETXATTR, REMOVEXATTR. Follows: string name; for SETXATTR then value_size bytes.
 * Reply: GETXATTR the value, else nothing. A GETXATTR whose value does not fit gives −E2BIG. */
struct wire_xattr {
    uint64_t node;
    uint32_t flags; /* SETXATTR: XATTR_CREATE, XATTR_REPLACE */
    uint32_t value_size;
};

/* READDIR: entries after the one with this cookie (0: from the start), "." and ".." left out.
 * Reply: struct wire_readdir_result, then count times: struct wire_dirent, string name, with
 * WIRE_READDIR_ATTRS and WIRE_DIRENT_ATTR set struct wire_attr, and with WIRE_DIRENT_TARGET a
 * string with the target of the symbolic link. */
struct wire_readdir {
    uint64_t node;
    uint64_t cookie;
    uint32_t flags;    /* WIRE_READDIR_* */
    uint32_t max_size; /* of the reply, bytes; at most WIRE_SLOT_SIZE */
};

enum { WIRE_READDIR_ATTRS = 1 << 0 };

struct wire_readdir_result {
    uint32_t count;
    uint32_t end; /* 1: nothing follows */
};

struct wire_dirent {
    uint64_t ino;
    uint64_t cookie; /* continues after this entry */
    uint32_t type;   /* DT_* */
    uint32_t flags;  /* WIRE_DIRENT_* */
};

enum { WIRE_DIRENT_ATTR = 1 << 0, WIRE_DIRENT_TARGET = 1 << 1 };

/* CACHESTAT: what of size bytes at offset (0: to the end) of a regular file is in memory. Reply: struct wire_cached. */
struct wire_cachestat {
    uint64_t node;
    uint64_t offset, size;
};

struct wire_cached {
    uint64_t cached, dirty, writeback, evicted, recently_evicted; /* pages */
};

/* FLAGS: the inode flags that chattr sets (FS_IOC_GETFLAGS) of a regular file or directory, after those in mask were given the
 * values in flags. Reply: uint32_t all flags. */
struct wire_flags {
    uint64_t node;
    uint32_t mask;  /* of WIRE_FLAGS_ALL */
    uint32_t flags; /* likewise */
};

enum {
    WIRE_FLAGS_SYNC = 0x8, WIRE_FLAGS_IMMUTABLE = 0x10, WIRE_FLAGS_APPEND = 0x20, WIRE_FLAGS_NODUMP = 0x40,
    WIRE_FLAGS_NOATIME = 0x80, WIRE_FLAGS_DIRSYNC = 0x10000,
    WIRE_FLAGS_ALL = 0x100f8 /* FS_*_FL of the same names */
};

/* Reply of STATFS. */
struct wire_statfs {
    uint64_t type, bsize, blocks, bfree, bavail, files, ffree, namelen, frsize;
};

/* RELEASE. Follows: count node ids, among them WIRE_RELEASE_WATCH | watch for watches to be ended.
 * Reply: nothing. Unknown ids are ignored. */
struct wire_release {
    uint32_t count;
    uint32_t reserved;
};

/* EXIT: the gofer process ends with this wait status. No reply. */
struct wire_exit {
    int32_t wait_status;
    uint32_t reserved;
};

_Static_assert(sizeof(struct wire_request) == 12, "wire layout");
_Static_assert(sizeof(struct wire_reply) == 16, "wire layout");
_Static_assert(sizeof(struct wire_attr) == 112, "wire layout");
_Static_assert(sizeof(struct wire_entry) == 120, "wire layout");
_Static_assert(sizeof(struct wire_opened) == 128, "wire layout");
_Static_assert(WIRE_OPEN_MANY_MAX * sizeof(struct wire_opened) <= WIRE_INLINE_MAX, "fits a message");
_Static_assert((int)WIRE_OPEN_MANY_MAX <= (int)WIRE_FDS_MAX, "fits a reply");
_Static_assert(sizeof(struct wire_make) == 40, "wire layout");
_Static_assert(sizeof(struct wire_setattr) == 56, "wire layout");
_Static_assert(sizeof(struct wire_dirent) == 24, "wire layout");
