/* SPDX-License-Identifier: Apache-2.0 */
/* The flags that create and run have in common. */
#pragma once

#include "runtime/cli.h"
#include "runtime/ctr.h"

#define OVERLAY_FLAGS                                                                               \
    {"overlay", 0, true, NULL,                                                                      \
     "root: changes to the root file system stay in a layer of the container's own; all: those to " \
     "bind mounts as well; none: they reach the tree"},                                             \
        {"overlay-medium", 0, true, NULL,                                                           \
         "disk or memory, where the layer is; in memory it ends with the container's processes"},   \
        {"overlay-size", 0, true, NULL, "bytes that the layer may take, with K, M or G"},           \
    {                                                                                               \
        "overlay-dir", 0, true, NULL,                                                               \
            "directory for layers on disk; by default they are kept with the root file system"      \
    }

#define CREATE_FLAGS                                                                                \
    {"bundle", 'b', true, NULL,                                                                     \
     "path to the root of the bundle directory, defaults to the current directory"},                \
        {"console-socket", 0, true, NULL,                                                           \
         "path to an AF_UNIX socket which will receive a file descriptor referencing the master "   \
         "end of the console's pseudoterminal"},                                                    \
        {"pid-file", 0, true, NULL, "specify the file to write the process id to"},                 \
        {"no-pivot", 0, false, NULL, "accepted for compatibility; the sandbox needs no pivot_root"}, \
        {"no-new-keyring", 0, false, NULL,                                                          \
         "accepted for compatibility; host keyrings are out of the container's reach"},             \
        OVERLAY_FLAGS,                                                                              \
    {                                                                                               \
        "preserve-fds", 0, true, "0",                                                               \
            "pass N additional file descriptors to the container (stdio + $LISTEN_FDS + N in total)" \
    }

static inline struct overlay_flags overlay_flags_read(const struct cli_args *args)
{
    return (struct overlay_flags){
        .overlay = cli_value(args, "overlay"),
        .medium = cli_value(args, "overlay-medium"),
        .size = cli_value(args, "overlay-size"),
        .dir = cli_value(args, "overlay-dir"),
    };
}

/* Fills in what the flags say. Return: 0, −EINVAL with a message. */
static inline MUST_CHECK int create_flags_read(const struct cli_args *args, struct ctr_create *ret_how,
                                               struct errmsg *e)
{
    const char *bundle = cli_value(args, "bundle");
    long preserve;
    int r = cli_number(args, "preserve-fds", 0, 1024, &preserve, e);
    if (r < 0)
        return r;
    *ret_how = (struct ctr_create){
        .id = args->argv[0],
        .bundle = bundle && *bundle ? bundle : ".",
        .console_socket = cli_value(args, "console-socket"),
        .pid_file = cli_value(args, "pid-file"),
        .preserve_fds = (unsigned)preserve,
        .overlay = overlay_flags_read(args),
    };
    if (ret_how->console_socket && !*ret_how->console_socket)
        ret_how->console_socket = NULL;
    if (ret_how->pid_file && !*ret_how->pid_file)
        ret_how->pid_file = NULL;
    return 0;
}
