/* SPDX-License-Identifier: Apache-2.0 */
/* fanotify's numbers and records, also those that are newer than the headers of the build machine. */
#pragma once

#include <linux/fanotify.h>
#include <stdint.h>

#ifndef FAN_REPORT_FD_ERROR
#define FAN_REPORT_FD_ERROR 0x2000
#endif
#ifndef FAN_REPORT_TARGET_FID
#define FAN_REPORT_TARGET_FID 0x1000
#endif
#ifndef FAN_MARK_EVICTABLE
#define FAN_MARK_EVICTABLE 0x200
#endif
#ifndef FAN_MARK_IGNORE
#define FAN_MARK_IGNORE 0x400
#endif
#ifndef FAN_INFO
#define FAN_INFO 0x20
#endif

#define FAN_ABI_JUDGES ((uint32_t)(FAN_CLASS_CONTENT | FAN_CLASS_PRE_CONTENT))
#define FAN_ABI_FID ((uint32_t)(FAN_REPORT_FID | FAN_REPORT_DIR_FID | FAN_REPORT_NAME | FAN_REPORT_TARGET_FID))
#define FAN_ABI_INFO (FAN_ABI_FID | (uint32_t)FAN_REPORT_PIDFD)
/* What takes CAP_SYS_ADMIN, and what else there is. */
#define FAN_ABI_INIT_ADMIN                                                                         \
    (FAN_ABI_JUDGES | (uint32_t)(FAN_REPORT_TID | FAN_REPORT_PIDFD | FAN_REPORT_FD_ERROR |         \
                                 FAN_UNLIMITED_QUEUE | FAN_UNLIMITED_MARKS))
#define FAN_ABI_INIT                                                                               \
    (FAN_ABI_INIT_ADMIN | FAN_ABI_FID | (uint32_t)(FAN_CLOEXEC | FAN_NONBLOCK | FAN_ENABLE_AUDIT))

#define FAN_ABI_PATH_EVENTS                                                                        \
    ((uint32_t)(FAN_ACCESS | FAN_MODIFY | FAN_CLOSE | FAN_OPEN | FAN_OPEN_EXEC))
#define FAN_ABI_PERM_EVENTS ((uint32_t)(FAN_OPEN_PERM | FAN_ACCESS_PERM | FAN_OPEN_EXEC_PERM))
#define FAN_ABI_ENTRY_EVENTS ((uint32_t)(FAN_MOVE | FAN_CREATE | FAN_DELETE | FAN_RENAME))
#define FAN_ABI_EVENTS                                                                             \
    (FAN_ABI_PATH_EVENTS | FAN_ABI_ENTRY_EVENTS |                                                  \
     (uint32_t)(FAN_ATTRIB | FAN_MOVE_SELF | FAN_DELETE_SELF | FAN_FS_ERROR))
#define FAN_ABI_EVENT_FLAGS ((uint32_t)(FAN_EVENT_ON_CHILD | FAN_ONDIR))
/* What a reader may see. */
#define FAN_ABI_OUTGOING (FAN_ABI_EVENTS | FAN_ABI_PERM_EVENTS | (uint32_t)(FAN_Q_OVERFLOW | FAN_ONDIR))
/* What a directory may be told of what is in it. */
#define FAN_ABI_CHILD_EVENTS (FAN_ABI_PATH_EVENTS | FAN_ABI_PERM_EVENTS | (uint32_t)FAN_ATTRIB)

#define FAN_ABI_MARK_TYPES ((uint32_t)(FAN_MARK_MOUNT | FAN_MARK_FILESYSTEM))
#define FAN_ABI_MARK_COMMANDS ((uint32_t)(FAN_MARK_ADD | FAN_MARK_REMOVE | FAN_MARK_FLUSH))
#define FAN_ABI_MARK_IGNORES ((uint32_t)(FAN_MARK_IGNORED_MASK | FAN_MARK_IGNORE))
#define FAN_ABI_MARK                                                                               \
    (FAN_ABI_MARK_TYPES | FAN_ABI_MARK_COMMANDS | FAN_ABI_MARK_IGNORES |                           \
     (uint32_t)(FAN_MARK_DONT_FOLLOW | FAN_MARK_ONLYDIR | FAN_MARK_IGNORED_SURV_MODIFY | FAN_MARK_EVICTABLE))

/* Beside an answer: which rule it was made by. */
struct fan_abi_audit_rule {
    uint8_t type, pad; /* 1; 0 */
    uint16_t size;     /* of all of it */
    uint32_t rule_number, subject_trust, object_trust;
};
_Static_assert(sizeof(struct fan_abi_audit_rule) == 16, "as user space has it");
