#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--strace with --debug-log: the lines of known calls, with names of flags, strings, structures and errors."""
import argparse
import json
import os
import re
import sys
import tempfile

import guest_run

LINES = [
    r'pipe2\(\[\d+, \d+\], O_RDONLY\|O_NONBLOCK\|O_CLOEXEC\) = 0',
    r'read\(\d+, 0x[0-9a-f]+, 1\) = -1 EAGAIN',
    r'fcntl\(\d+, F_GETFD, \S+\) = 1',
    r'lseek\(\d+, 0, SEEK_SET\) = -1 ESPIPE',
    r'pipe2?\(0x8.*\) = -1 EFAULT',
    r'write\(\d+, \\"hello\\", 5\) = 5',
    r'read\(\d+, \\"hel\\", 3\) = 3',
    r'exit_group\(0\)',
    # served by the backend alone, but for a trace
    r'brk\(NULL\) = 0x[0-9a-f]+',
    r'mprotect\(0x[0-9a-f]+, \d+, PROT_READ\) = 0',
    r'wait4\(\d+, \[0\], 0, NULL\) = \d+',
    r'(clone|clone3|fork)\(.*\) = \d+',
]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--cloister', required=True)
    ap.add_argument('--program', required=True)
    a = ap.parse_args()
    if os.geteuid() or not os.path.exists(a.cloister):
        print('skipped: needs root and cloister')
        return guest_run.SKIP
    with tempfile.TemporaryDirectory(prefix='cloister-strace.') as top:
        bundle, log = os.path.join(top, 'bundle'), os.path.join(top, 'log')
        guest_run.make_bundle(bundle, a.program)
        with open(os.path.join(bundle, 'config.json'), 'w', encoding='utf-8') as f:
            json.dump(guest_run.spec(['/test', 'moves_bytes', 'flags']), f)
        status, out = guest_run.run_one(f'{a.cloister} --debug --debug-log {log} --strace', top + '/state', bundle, 60)
        with open(log, encoding='utf-8', errors='replace') as f:
            text = f.read()
    missing = [l for l in LINES if not re.search(l, text)]
    for l in missing:
        print(f'no line like {l}')
    if status or missing:
        print(f'status {status}\n{out}\n{text[-8000:]}')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
