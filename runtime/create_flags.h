/* SPDX-License-Identifier: Apache-2.0 */
/* The flags that create and run have in common. */
#pragma once

#include "runtime/cli.h"
#include "runtime/ctr.h"

#define OVERLAY_FLAGS                                                                               \
    {"overlay", 0, true, "none",                                                                    \
     "root: changes to the root file system stay in memory and end with the container; none: they " \
     "reach the tree"},                                                                             \
    {                                                                                               \
        "overlay-size", 0, true, NULL, "bytes that such changes may take, with K, M or G"           \
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
        .overlay = cli_value(args, "overlay"),
        .overlay_size = cli_value(args, "overlay-size"),
    };
    if (ret_how->console_socket && !*ret_how->console_socket)
        ret_how->console_socket = NULL;
    if (ret_how->pid_file && !*ret_how->pid_file)
        ret_how->pid_file = NULL;
    return 0;
}
