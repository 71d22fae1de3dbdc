/* SPDX-License-Identifier: Apache-2.0 */
/* The linked stub image inside this executable. */
#pragma once

extern const char stub_blob_start[], stub_blob_end[];
