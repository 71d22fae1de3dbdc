/* SPDX-License-Identifier: Apache-2.0 */
/* The state document that `state` prints and hooks read. */
#pragma once

#include <sys/types.h>
#include <time.h>

#include "oci/spec.h"
#include "platform/base/buf.h"

/* The version of the runtime specification that documents from here follow. */
#define OCI_SPEC_VERSION "1.2.0"

enum ocistate_status {
    OCISTATE_CREATING,
    OCISTATE_CREATED,
    OCISTATE_RUNNING,
    OCISTATE_PAUSED,
    OCISTATE_STOPPED,
};

struct ocistate {
    const char *oci_version; /* NULL: OCI_SPEC_VERSION */
    const char *id;
    pid_t pid; /* 0 when stopped */
    enum ocistate_status status;
    const char *bundle; /* absolute */
    struct oci_pairs annotations;
    /* Beyond the specification, as runc prints them for `state` and `list`. */
    const char *rootfs;      /* absolute; NULL: left out */
    struct timespec created; /* wall clock; 0: left out */
    const char *owner;       /* user name; NULL: left out */
};

/* "running", … */
const char *ocistate_status_name(enum ocistate_status status);

/* Appends the document; no newline follows. indent as for json_writer_init: "  " for `state`, NULL
 * for one line (`list --format json`, hooks). Errors stick to out. */
void ocistate_write(struct buf *out, const struct ocistate *state, const char *indent);

/* Appends a time as Go prints it: 2026-01-02T03:04:05.678Z, without trailing zeros. */
void ocistate_write_time(struct buf *out, struct timespec t);
