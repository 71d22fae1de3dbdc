#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same commands in the same bundle under runc and under Cloister, and compares stdout, stderr and status.

The root tree is CLOISTER_TEST_ROOTFS, or what scripts/quickstart keeps in its cache. Status 77 (skipped) when there is none, or when
this machine can't run containers."""
import argparse
import difflib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import cases

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'guest'))
import guest_run as guest  # the bundle's config

SKIP = 77
PATHS = ('usr/local/sbin', 'usr/local/bin', 'usr/sbin', 'usr/bin', 'sbin', 'bin')


def find_root():
    cache = os.environ.get('CLOISTER_CACHE') or os.environ.get('XDG_CACHE_HOME', '/var/cache') + '/cloister'
    for root in [os.environ.get('CLOISTER_TEST_ROOTFS', '')] + sorted(glob.glob(cache + '/debian-*')):
        if root and os.path.exists(os.path.join(root, 'usr/bin/python3')):
            return root
    return None


def has(root, program):
    return any(os.path.lexists(os.path.join(root, d, program)) for d in PATHS)


def spec(root, argv, scratch, lo, caps):
    s = guest.spec(argv, readonly=True, extra_caps=caps)
    s['root']['path'] = root
    s['process']['cwd'] = '/mnt'
    s['process']['rlimits'][0]['hard'] = min(4096, guest.NOFILE_HARD)
    s['process']['env'] += ['GIT_CONFIG_GLOBAL=/dev/null', 'GIT_AUTHOR_NAME=a', 'GIT_AUTHOR_EMAIL=a@example.org', 'TERM=dumb',
                            'GIT_COMMITTER_NAME=a', 'GIT_COMMITTER_EMAIL=a@example.org', 'PYTHONDONTWRITEBYTECODE=1']
    for d in ('/tmp', '/root', '/run', '/var/tmp', '/var/lib/apt/lists', '/var/cache/apt', '/var/log'):
        if os.path.isdir(root + d):
            s['mounts'].append({'destination': d, 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['nosuid', 'nodev', 'mode=1777']})
    s['mounts'].append({'destination': '/mnt', 'type': 'bind', 'source': scratch, 'options': ['rbind', 'rw']})
    if lo:
        # runc leaves the loopback of a fresh network namespace down: a hook brings it up.
        s['hooks'] = {'prestart': [{'path': '/usr/bin/nsenter', 'args': [
            'sh', '-c', 'exec nsenter -t $(sed "s/.*\\"pid\\": *\\([0-9]*\\).*/\\1/") -n ip link set lo up']}]}
        s['hooks']['prestart'][0]['path'] = '/bin/sh'
    return s


class Result:
    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def normal(self, options):
        def fix(text):
            for pattern, new in options.get('sub', []):
                text = re.sub(pattern, new, text, flags=re.M)
            if options.get('unordered'):
                text = '\n'.join(sorted(text.split('\n')))
            return text
        return [f'status {self.status}'] + ['out: ' + l for l in fix(self.out).split('\n')] + [
            'err: ' + l for l in fix(self.err).split('\n')]


def run_case(runtime, top, root, case, number):
    script = case[1]
    options = case[2] if len(case) > 2 else {}
    bundle = os.path.join(top, f'bundle-{number}')
    scratch = os.path.join(top, f'scratch-{number}')
    os.makedirs(bundle)
    os.makedirs(scratch)
    argv = options.get('argv') or ['bash', '-c', script]
    with open(os.path.join(bundle, 'config.json'), 'w', encoding='utf-8') as f:
        json.dump(spec(root, argv, scratch, options.get('needs_lo'), options.get('caps', ())), f)
    base = runtime.split() + ['--root', os.path.join(top, 'state')]
    begin = time.monotonic()
    try:
        p = subprocess.run(base + ['run', '--bundle', bundle, f'diff-{number}'], input=options.get('stdin', '').encode(),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=options.get('timeout', 60), check=False)
        return Result(p.returncode, p.stdout.decode(errors='replace'), p.stderr.decode(errors='replace'),
                      time.monotonic() - begin)
    except subprocess.TimeoutExpired as e:
        return Result('too slow', (e.stdout or b'').decode(errors='replace'), (e.stderr or b'').decode(errors='replace'),
                      time.monotonic() - begin)
    finally:
        subprocess.run(base + ['delete', '--force', f'diff-{number}'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=60, check=False)
        shutil.rmtree(bundle, ignore_errors=True)
        shutil.rmtree(scratch, ignore_errors=True)


ATTEMPTS = 3

# runc prefixes its own errors with a time stamp and its name for the step.
# The first pids of a runc container go to its own start.
COMMON = [(r'^time="[^"]*" ', 'time '), (r'\bcloister\b', 'runc'), (r'line (\d+): +\d+ ', r'line \1: PID '),
          (r'kill: \(\d+\)', 'kill: (PID)')]


def compare(a, group, case, root, top, number):
    """Return: 'ok', 'skip', 'xfail' or 'fail'."""
    options = dict(case[2] if len(case) > 2 else {})
    options['sub'] = COMMON + options.get('sub', [])
    missing = [p for p in options.get('needs', []) if not has(root, p)]
    if missing:
        print(f'skip {group}/{case[0]}: no {missing[0]}')
        return 'skip'
    # Programs race with each other under runc as well: what counts is a difference that stays.
    for attempt in range(1, ATTEMPTS + 1):
        native = run_case('runc', top, root, case, number)
        if 'native' in options and not re.search(options['native'], native.out):
            print(f'skip {group}/{case[0]}: does not work under runc on this machine')
            return 'skip'
        ours = run_case(a.cloister, top, root, case, number + 1)
        want, got = native.normal(options), ours.normal(options)
        if want == got:
            again = '' if attempt == 1 else f', attempt {attempt}'
            print(f'ok {group}/{case[0]} ({native.seconds:.2f} s, {ours.seconds:.2f} s{again})')
            return 'ok'
    word = 'xfail' if options.get('xfail') else 'fail'
    print(f'{word} {group}/{case[0]} ({native.seconds:.2f} s, {ours.seconds:.2f} s)')
    for line in list(difflib.unified_diff(want, got, 'runc', 'cloister', lineterm='', n=1))[:40]:
        print('    ' + line)
    return word


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--cloister', required=True, help='the cloister executable, perhaps with flags')
    ap.add_argument('patterns', nargs='*', help='group or group/name')
    a = ap.parse_args()
    root = find_root()
    if os.geteuid() or not shutil.which('runc') or not root or not os.path.exists(a.cloister.split()[0]):
        print('skipped: needs root, runc, cloister and a root tree with python3 (CLOISTER_TEST_ROOTFS)')
        return SKIP
    count = {}
    number = 0
    with tempfile.TemporaryDirectory(prefix='cloister-diff.') as top:
        for group, table in cases.GROUPS.items():
            for case in table:
                if a.patterns and not any(p in (group, f'{group}/{case[0]}') for p in a.patterns):
                    continue
                number += 2
                word = compare(a, group, case, root, top, number)
                count[word] = count.get(word, 0) + 1
                sys.stdout.flush()
    print(', '.join(f'{n} {w}' for w, n in sorted(count.items())))
    return 1 if count.get('fail') else 0


if __name__ == '__main__':
    sys.exit(main())
