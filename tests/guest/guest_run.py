#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one guest program as a container: under runc first, where it must pass, then under Cloister.

Status 77 (skipped) when the machine can't run containers, or runc or Cloister is missing."""
import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

CAPS = ['CAP_' + c for c in ('CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP '
                             'NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE').split()]
SKIP = 77
NOFILE_HARD = min(131072, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def spec(args, terminal=False, readonly=False, extra_caps=()):
    caps = CAPS + list(extra_caps)
    return {
        'ociVersion': '1.0.2',
        'process': {
            'terminal': terminal, 'user': {'uid': 0, 'gid': 0}, 'args': args, 'cwd': '/',
            'env': ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/root', 'LC_ALL=C.UTF-8'],
            'capabilities': {k: caps for k in ('bounding', 'effective', 'permitted')},
            'rlimits': [{'type': 'RLIMIT_NOFILE', 'soft': 1024, 'hard': NOFILE_HARD},
                        {'type': 'RLIMIT_CORE', 'soft': 0, 'hard': 1 << 40}],
        },
        'root': {'path': 'rootfs', 'readonly': readonly}, 'hostname': 'guest',
        'mounts': [
            {'destination': '/proc', 'type': 'proc', 'source': 'proc'},
            {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs',
             'options': ['nosuid', 'strictatime', 'mode=755', 'size=65536k']},
            {'destination': '/dev/pts', 'type': 'devpts', 'source': 'devpts',
             'options': ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5']},
            {'destination': '/dev/shm', 'type': 'tmpfs', 'source': 'shm',
             'options': ['nosuid', 'noexec', 'nodev', 'mode=1777', 'size=65536k']},
            {'destination': '/dev/mqueue', 'type': 'mqueue', 'source': 'mqueue',
             'options': ['nosuid', 'noexec', 'nodev']},
            {'destination': '/sys', 'type': 'sysfs', 'source': 'sysfs', 'options': ['nosuid', 'noexec', 'nodev', 'ro']},
        ],
        'linux': {'namespaces': [{'type': t} for t in ('pid', 'network', 'ipc', 'uts', 'mount')]},
    }


def make_bundle(where, program):
    root = os.path.join(where, 'rootfs')
    for d in ('proc', 'dev', 'sys', 'tmp', 'etc', 'bin', 'root'):
        os.makedirs(os.path.join(root, d))
    os.chmod(os.path.join(root, 'tmp'), 0o1777)
    shutil.copy2(program, os.path.join(root, 'test'))
    busybox = shutil.which('busybox')
    if busybox:
        shutil.copy2(busybox, os.path.join(root, 'bin/busybox'))
        os.symlink('busybox', os.path.join(root, 'bin/sh'))
    for name, text in (('passwd', 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n'),
                       ('group', 'root:x:0:\nnogroup:x:65534:\n')):
        with open(os.path.join(root, 'etc', name), 'w', encoding='utf-8') as f:
            f.write(text)


def run_one(runtime, state, bundle, timeout):
    """Return: (status, output)."""
    name = 'guest-' + hashlib.sha1(bundle.encode()).hexdigest()[:12]
    base = runtime.split() + ['--root', state]
    try:
        p = subprocess.run(base + ['run', '--bundle', bundle, name], stdin=subprocess.DEVNULL, timeout=timeout,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return p.returncode, p.stdout.decode(errors='replace')
    except subprocess.TimeoutExpired as e:
        return -1, (e.stdout or b'').decode(errors='replace') + '\n(too slow)'
    finally:
        subprocess.run(base + ['delete', '--force', name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       stdin=subprocess.DEVNULL, timeout=60, check=False)


def skipped(out):
    return set(re.findall(r'^skipped - (.*)', out, re.M))


def native_known(program, cache):
    """Native runs are the yardstick and take time: each build of a program needs one."""
    if not cache:
        return None
    with open(program, 'rb') as f:
        digest = hashlib.sha1(f.read() + open(__file__, 'rb').read()).hexdigest()
    os.makedirs(cache, exist_ok=True)
    return os.path.join(cache, digest)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--cloister', required=True, help='the cloister executable, perhaps with flags')
    ap.add_argument('--program', required=True)
    ap.add_argument('--cache', help='directory that remembers native passes')
    ap.add_argument('--only', choices=('native', 'cloister'))
    ap.add_argument('--timeout', type=int, default=300)
    ap.add_argument('--cap', action='append', default=[], help='one more capability of the container')
    ap.add_argument('tests', nargs='*')
    a = ap.parse_args()
    if os.geteuid() or not shutil.which('runc'):
        print('skipped: needs root and runc')
        return SKIP
    if a.only != 'native' and not os.path.exists(a.cloister.split()[0]):
        print(f'skipped: {a.cloister} is not there')
        return SKIP
    with tempfile.TemporaryDirectory(prefix='cloister-guest.') as top:
        bundle = os.path.join(top, 'bundle')
        make_bundle(bundle, a.program)
        with open(os.path.join(bundle, 'config.json'), 'w', encoding='utf-8') as f:
            json.dump(spec(['/test'] + a.tests, extra_caps=a.cap), f)
        known = native_known(a.program, a.cache) if not a.tests else None
        may_skip = set()
        if known and os.path.exists(known):
            with open(known, encoding='utf-8') as f:
                may_skip = set(json.load(f))
        elif a.only != 'cloister':
            status, out = run_one('runc', os.path.join(top, 'runc'), bundle, a.timeout)
            if status:
                print(out + f'\nnative run failed with {status}: the test is wrong, or this machine cannot run it')
                return 1
            may_skip = skipped(out)
            if known:
                with open(known, 'w', encoding='utf-8') as f:
                    json.dump(sorted(may_skip), f)
            if a.only == 'native':
                print(out)
        if a.only == 'native':
            return 0
        status, out = run_one(a.cloister, os.path.join(top, 'cloister'), bundle, a.timeout)
        print(out)
        for name in sorted(skipped(out) - may_skip):
            print(f'not ok - {name}: skipped, but not under runc')
            status = 1
        return 1 if status else 0


if __name__ == '__main__':
    sys.exit(main())
