/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read config.json share: one reader per section. */
#pragma once

#include "oci/fields.h"
#include "oci/spec.h"

/* Readers for fields.h; dst is the struct of that name. */
field_read_fn spec_process_read;   /* struct oci_process */
field_read_fn spec_mount_read;     /* struct oci_mount */
field_read_fn spec_hooks_read;     /* struct oci_hooks[OCI_HOOK_KINDS] */
field_read_fn spec_linux_read;     /* struct oci_linux */
field_read_fn spec_resources_read; /* struct oci_resources */
field_read_fn spec_seccomp_read;   /* struct oci_seccomp */
field_read_fn spec_idmap_read;     /* struct oci_idmap */
