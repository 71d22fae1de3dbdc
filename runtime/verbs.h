/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs: one file cmd_NAME.c each. */
#pragma once

#include "runtime/cli.h"

extern const struct cli_verb cmd_create_verb, cmd_start_verb, cmd_state_verb, cmd_kill_verb,
    cmd_delete_verb, cmd_run_verb, cmd_list_verb, cmd_spec_verb, cmd_features_verb, cmd_ps_verb,
    cmd_exec_verb, cmd_pause_verb, cmd_resume_verb, cmd_do_verb, cmd_doctor_verb, cmd_events_verb, cmd_export_layer_verb,
    cmd_update_verb;
