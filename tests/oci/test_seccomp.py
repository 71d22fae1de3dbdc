#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# linux.seccomp of config.json: what it does to the container's processes, compared with runc.
import pathlib

import ocilib

TABLE = pathlib.Path(__file__).parents[2] / 'sentry/syscalls/syscalls.tbl'


def all_calls():
    rows = (line.split() for line in TABLE.read_text().splitlines())
    return {r[1] for r in rows if len(r) > 2 and r[0].isdigit()}


class Seccomp(ocilib.OciTest):

    def profile(self, default, *rules, **more):
        self.config['linux']['seccomp'] = {
            'defaultAction': default, 'architectures': ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86', 'SCMP_ARCH_X32'],
            'syscalls': [dict(zip(('names', 'action', 'args', 'errnoRet'), r)) for r in rules], **more}

    def docker_like(self):
        """A list of what is allowed, with conditions, as engines have by default."""
        allowed = all_calls() - {'mount', 'umount2', 'unshare', 'setns', 'personality', 'mkdir', 'mkdirat', 'clone3'}
        self.profile('SCMP_ACT_ERRNO', (sorted(allowed) + ['no_such_call_at_all'], 'SCMP_ACT_ALLOW'),
                     (['personality'], 'SCMP_ACT_ALLOW', [{'index': 0, 'value': 0, 'op': 'SCMP_CMP_EQ'}]),
                     (['personality'], 'SCMP_ACT_ALLOW', [{'index': 0, 'value': 0xffffffff, 'op': 'SCMP_CMP_EQ'}]),
                     (['clone3'], 'SCMP_ACT_ERRNO', [], 38), defaultErrnoRet=1)

    def test_ordinary_programs_run(self):
        self.docker_like()
        self.sh('grep -E "^Seccomp" /proc/self/status; seq 3 | wc -l; (exit 4); echo $?; mkdir /tmp/x; echo $?; '
                'mount -t tmpfs x /tmp; echo $?; sh -c "sh -c \'mkdir /tmp/y; echo $?\'"; touch /tmp/z && ls /tmp')
        p = self.same_as_runc()
        self.assertIn('Seccomp:\t2\nSeccomp_filters:\t1\n', p.stdout)
        self.assertIn('Operation not permitted', p.stderr)

    def test_without_no_new_privileges(self):
        self.docker_like()
        self.sh('grep -E "^(Seccomp|NoNewPrivs)" /proc/self/status; mkdir /tmp/x; echo $?', noNewPrivileges=False)
        self.assertIn('NoNewPrivs:\t0', self.same_as_runc().stdout)

    def test_actions(self):
        for action, extra in (('SCMP_ACT_ERRNO', {'errnoRet': 28}), ('SCMP_ACT_ERRNO', {}), ('SCMP_ACT_KILL', {}),
                              ('SCMP_ACT_KILL_PROCESS', {}), ('SCMP_ACT_TRAP', {}), ('SCMP_ACT_LOG', {}),
                              ('SCMP_ACT_TRACE', {}), ('SCMP_ACT_ALLOW', {})):
            with self.subTest(action=action, **extra):
                self.profile('SCMP_ACT_ALLOW')
                self.config['linux']['seccomp']['syscalls'] = [{'names': ['mkdir', 'mkdirat'], 'action': action, **extra}]
                self.sh('rm -rf /tmp/x; mkdir /tmp/x; echo $?')
                self.same_as_runc()

    def test_calls_that_are_served_in_the_process(self):
        self.profile('SCMP_ACT_ALLOW', (['getppid', 'getpgrp'], 'SCMP_ACT_ERRNO'),
                     (['mprotect'], 'SCMP_ACT_ERRNO', [{'index': 2, 'value': 4, 'valueTwo': 4, 'op': 'SCMP_CMP_MASKED_EQ'}]))
        self.sh('echo fine; seq 2')
        self.assertEqual(self.same_as_runc().stdout, 'fine\n1\n2\n')

    def test_exec(self):
        self.docker_like()
        self.write('sleep', '100')
        id_ = self.started()
        p = self.cloister('exec', id_, 'sh', '-c', 'grep ^Seccomp: /proc/self/status; mkdir /tmp/x; echo $?')
        self.assertEqual(p.stdout, 'Seccomp:\t2\n1\n')

    def test_flags_and_refusals(self):
        self.profile('SCMP_ACT_ALLOW', flags=['SECCOMP_FILTER_FLAG_LOG', 'SECCOMP_FILTER_FLAG_SPEC_ALLOW'])
        self.sh('grep ^Seccomp: /proc/self/status')
        self.assertEqual(self.run_container().stdout, 'Seccomp:\t2\n')  # older runcs do not know the flags
        self.profile('SCMP_ACT_ALLOW', (['mkdir'], 'SCMP_ACT_NOTIFY'), listenerPath='/run/agent.sock')
        self.write()
        p = self.run_container()
        self.assertEqual(p.returncode, 1)
        self.assertIn('linux.seccomp.listenerPath', p.stderr)


if __name__ == '__main__':
    ocilib.main()
