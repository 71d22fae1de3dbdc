/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments that the socket calls have in common. */
#pragma once

#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"

struct file;
struct socket;
struct socket_addr;
struct task;

/* Return: 0 with a referenced file and its socket; −EBADF, −ENOTSOCK. */
MUST_CHECK int sock_arg_get(struct task *t, int fd, struct file **ret_file, struct socket **ret_socket);
/* Return: 0, −EINVAL (size), −EFAULT. */
MUST_CHECK int sock_arg_addr_in(struct task *t, uaddr_t addr, int32_t size, struct socket_addr *ret_addr);
/* Writes as much as the guest has room for, and the true size. */
MUST_CHECK int sock_arg_addr_out(struct task *t, uaddr_t addr, uaddr_t size_addr, const struct socket_addr *a);
