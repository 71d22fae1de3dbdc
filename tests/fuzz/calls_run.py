#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes fuzz-calls run random programs of system calls in containers, some programs each, and looks for what must not happen: a
sandbox that ends, a sanitizer's report, a process that does not die.

To repeat what it prints: --seed SEED --programs 1 --trace. With --seconds it goes on with new seeds until then.
Status: 0; 1 found something; 77 this machine can't run containers."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guest'))
import guest_run as guest

BAD = re.compile(rb'AddressSanitizer|LeakSanitizer|runtime error:|stack smashing|BUG')
MORE_CAPS = ['CAP_SYS_ADMIN', 'CAP_SYS_PTRACE', 'CAP_NET_ADMIN', 'CAP_IPC_OWNER', 'CAP_SYS_NICE', 'CAP_SYS_RESOURCE', 'CAP_DAC_READ_SEARCH',
             'CAP_IPC_LOCK', 'CAP_LEASE']


def batch(a, top, seed, programs):
    """Return: (status, last seed begun, output)."""
    bundle, state = os.path.join(top, 'bundle'), os.path.join(top, 'state')
    shutil.rmtree(bundle, ignore_errors=True)
    guest.make_bundle(bundle, a.program)
    s = guest.spec(['/test', str(seed), str(programs)] + (['trace'] if a.trace else []), extra_caps=MORE_CAPS)
    s['mounts'].append({'destination': '/tmp', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['mode=1777', 'size=64m']})
    s['linux']['resources'] = {'pids': {'limit': 300}}
    with open(os.path.join(bundle, 'config.json'), 'w', encoding='utf-8') as f:
        json.dump(s, f)
    status, out = guest.run_one(a.cloister, state, bundle, 60 + 70 * programs)
    begun = re.findall(r'^@@ (\d+)$', out, re.M)
    return status, int(begun[-1]) if begun else seed, out


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--cloister', required=True, help='the cloister executable, perhaps with flags')
    ap.add_argument('--program', required=True, help='fuzz-calls')
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--programs', type=int, default=40)
    ap.add_argument('--batch', type=int, default=40, help='programs a container')
    ap.add_argument('--seconds', type=int, default=0)
    ap.add_argument('--trace', action='store_true')
    ap.add_argument('--keep', help='directory for the output of what was found')
    a = ap.parse_args()
    if os.geteuid() or not os.path.exists(a.cloister.split()[0]):
        print('skipped: needs root and cloister')
        return guest.SKIP
    seed, found, end = a.seed, 0, time.monotonic() + a.seconds
    with tempfile.TemporaryDirectory(prefix='cloister-fuzz.') as top:
        while seed < a.seed + a.programs or time.monotonic() < end:
            n = a.batch if a.seconds else min(a.batch, a.seed + a.programs - seed)
            status, last, out = batch(a, top, seed, n)
            bad = BAD.search(out.encode())
            if status or bad or a.trace:
                print(out if a.trace or not a.keep else '\n'.join(out.splitlines()[-15:]))
                print(f'seeds {seed} to {last}: status {status}', flush=True)
            if status or bad:
                found += 1
                if a.keep:
                    with open(os.path.join(a.keep, f'seed-{last}'), 'w', encoding='utf-8') as f:
                        f.write(out)
            # After a failure, go on behind the program that it happened in.
            seed = last + 1 if status else seed + n
    print(f'{seed - a.seed} programs, {found} failures')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
