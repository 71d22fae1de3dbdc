#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a probe program in a directory of the root and in one of a tmpfs, under runc and under Cloister, and compares what it prints.

Status 77 (skipped) when this machine can't run containers, or runc or Cloister is missing."""
import argparse
import difflib
import json
import os
import re
import shutil
import sys
import tempfile

import guest_run as guest

# Answers that differ on purpose.
KNOWN = [
    ('the gofer has no right to trusted attributes', r'"trusted\.x"'),
    ('restartable sequences are not there, as in a kernel built without them', r'SYS_rseq'),
    ('fs.protected_symlinks is 1 whatever the host has', r'"sticky/ul", O_RDONLY'),
]


def run(runtime, top, program, cwd, timeout):
    bundle = os.path.join(top, 'bundle-' + os.path.basename(runtime) + cwd.replace('/', '-'))
    guest.make_bundle(bundle, program)
    config = guest.spec(['/test'], extra_caps=('CAP_SYS_ADMIN', 'CAP_DAC_READ_SEARCH'))
    config['process']['cwd'] = cwd
    config['mounts'].append({'destination': '/tmp', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['nosuid', 'mode=1777']})
    with open(os.path.join(bundle, 'config.json'), 'w', encoding='utf-8') as f:
        json.dump(config, f)
    return guest.run_one(runtime, os.path.join(top, 'state-' + os.path.basename(runtime)), bundle, timeout)


def expected(lines):
    return [l for l in lines if not any(re.search(p, l) for _, p in KNOWN)]


ATTEMPTS = 3


def compare(a, top, cwd):
    """Return: a message of what differs, or None. Some probes race with time: what counts is a difference that stays."""
    for number in range(ATTEMPTS):
        where = os.path.join(top, str(number))
        status, native = run('runc', where, a.program, cwd, a.timeout)
        if status:
            return native + f'\nnative run failed with {status}: the probe is wrong, or this machine cannot run it'
        status, ours = run(a.cloister, where, a.program, cwd, a.timeout)
        native, ours = expected(native.splitlines()), expected(ours.splitlines())
        if not status and native == ours:
            return None
    return f'in {cwd}: status {status}\n' + '\n'.join(difflib.unified_diff(native, ours, 'runc', 'cloister', lineterm='', n=2))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--cloister', required=True)
    ap.add_argument('--program', required=True)
    ap.add_argument('--timeout', type=int, default=300)
    a = ap.parse_args()
    if os.geteuid() or not shutil.which('runc') or not os.path.exists(a.cloister):
        print('skipped: needs root, runc and cloister')
        return guest.SKIP
    failed = False
    with tempfile.TemporaryDirectory(prefix='cloister-probe.') as top:
        for cwd in ('/tmp', '/root'):
            message = compare(a, top, cwd)
            if message:
                failed = True
                print(message)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
