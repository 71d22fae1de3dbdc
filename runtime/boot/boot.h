/* SPDX-License-Identifier: Apache-2.0 */
/* `cloister boot`: the sentry's process. */
#pragma once

/* Runs the sentry until its container's end. Return: exit status. */
int boot_main(void);
