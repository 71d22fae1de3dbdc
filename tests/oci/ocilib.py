# SPDX-License-Identifier: Apache-2.0
# Helpers of the life-cycle tests: bundles, commands, and what must not be left on the host.
import copy
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

CLOISTER = os.environ.get('CLOISTER', 'build/cloister')
RUNC = shutil.which('runc')
BUSYBOX = shutil.which('busybox')
SKIPPED = 77  # what meson takes for "skipped"
TIMEOUT = 60

CONFIG = {
    'ociVersion': '1.0.2',
    'process': {
        'terminal': False,
        'user': {'uid': 0, 'gid': 0},
        'args': ['true'],
        'env': ['PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'TERM=xterm'],
        'cwd': '/',
        'capabilities': {s: ['CAP_AUDIT_WRITE', 'CAP_KILL', 'CAP_NET_BIND_SERVICE', 'CAP_CHOWN',
                             'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_SETUID', 'CAP_SETGID']
                         for s in ('bounding', 'effective', 'permitted')},
        'rlimits': [{'type': 'RLIMIT_NOFILE', 'hard': 1024, 'soft': 1024}],
        'noNewPrivileges': True,
    },
    'root': {'path': 'rootfs', 'readonly': False},
    'hostname': 'ocitest',
    'mounts': [
        {'destination': '/proc', 'type': 'proc', 'source': 'proc'},
        {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs',
         'options': ['nosuid', 'strictatime', 'mode=755', 'size=65536k']},
        {'destination': '/dev/pts', 'type': 'devpts', 'source': 'devpts',
         'options': ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620']},
    ],
    'linux': {'namespaces': [{'type': t} for t in ('pid', 'network', 'ipc', 'uts', 'mount')]},
}


def run(command, **options):
    options.setdefault('timeout', TIMEOUT)
    options.setdefault('stdin', subprocess.DEVNULL)
    return subprocess.run(command, capture_output=True, text=True, **options)


def wait_until(condition, seconds=10.0, what='condition'):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f'{what} did not come true in {seconds} s')


def cause(stderr):
    """The reason in a runtime's last line of error, without who says it."""
    line = stderr.strip().split('\n')[-1]
    if 'msg="' in line:
        line = json.loads('"' + line.split('msg="', 1)[1].rsplit('"', 1)[0] + '"')
    return line.split(' failed: ', 1)[-1].strip()


class Leaks:
    """What a test's containers may leave on this machine: processes, mounts, cgroups. Others may be at
    work here too, so only what can be this test's counts."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.now = self.look()

    def look(self):
        exe = os.path.realpath(CLOISTER)
        found = set()
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                if os.readlink(f'/proc/{pid}/exe').removesuffix(' (deleted)') == exe:
                    found.add(f'process {pid}')
            except OSError:
                pass
        for line in pathlib.Path('/proc/self/mountinfo').read_text().splitlines():
            if self.folder in line:
                found.add('mount ' + ' '.join(line.split()[3:5]))
        for top, _, _ in os.walk('/sys/fs/cgroup'):
            if f'ocitest-{os.getpid()}' in top:
                found.add('cgroup ' + top)
        return found

    def left(self):
        return sorted(self.look() - self.now)


class OciTest(unittest.TestCase):
    """A temporary directory with a bundle and a state directory, and a leak check at the end."""

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest('needs root')
        if not BUSYBOX:
            raise unittest.SkipTest('needs busybox')

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='ocitest-'))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.root = self.dir / 'state'
        self.bundle = self.dir / 'bundle'
        make_rootfs(self.bundle / 'rootfs')
        self.config = copy.deepcopy(CONFIG)
        self.leaks = Leaks(self.dir)
        self.ids = 0

    def tearDown(self):
        if self.root.exists():
            for name in os.listdir(self.root):
                run([CLOISTER, '--root', self.root, 'delete', '--force', name])
            self.assertEqual(os.listdir(self.root), [], 'state directories were left')
        left = []
        for _ in range(200):
            left = self.leaks.left()
            if not left:
                return
            time.sleep(0.01)
        self.fail(f'left behind: {left}')

    # --- bundles ---

    def write(self, *args, **process):
        """Writes config.json; args are the program's, process other members of "process"."""
        if args:
            self.config['process']['args'] = list(args)
        self.config['process'].update(process)
        (self.bundle / 'config.json').write_text(json.dumps(self.config))

    def sh(self, script, **process):
        self.write('sh', '-c', script, **process)

    def new_id(self):
        self.ids += 1
        return f'ocitest-{os.getpid()}-{self.ids}'

    # --- commands ---

    def cloister(self, *args, runtime=None, options=(), **kw):
        runtime = runtime or CLOISTER
        root = self.root if runtime == CLOISTER else self.dir / 'runc'
        return run([runtime, '--root', root, *options, *map(str, args)], **kw)

    def ok(self, *args, **kw):
        p = self.cloister(*args, **kw)
        self.assertEqual(p.returncode, 0, f'{args}: {p.stderr}')
        return p

    def run_container(self, runtime=None, **kw):
        return self.cloister('run', '--bundle', self.bundle, self.new_id(), runtime=runtime, **kw)

    def create(self, *flags):
        """Creates a container whose stdio goes to files. Return: its id."""
        id_ = self.new_id()
        with open(self.dir / f'{id_}.out', 'w') as out:
            p = subprocess.run([CLOISTER, '--root', self.root, 'create', '--bundle', self.bundle, *flags, id_],
                               stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                               timeout=TIMEOUT)
        self.assertEqual(p.returncode, 0, self.output(id_))
        return id_

    def started(self, *flags):
        id_ = self.create(*flags)
        self.ok('start', id_)
        return id_

    def output(self, id_):
        return (self.dir / f'{id_}.out').read_text()

    def state(self, id_):
        return json.loads(self.ok('state', id_).stdout)

    def status(self, id_):
        return self.state(id_)['status']

    def state_file(self, id_):
        return json.loads((self.root / id_ / 'state.json').read_text())

    def wait_status(self, id_, status):
        wait_until(lambda: self.status(id_) == status, what=f'status {status}')

    def same_as_runc(self, causes=True):
        """Runs the bundle under both. Return: our result."""
        ours = self.run_container()
        if RUNC:
            theirs = self.run_container(runtime=RUNC)
            self.assertEqual(ours.returncode, theirs.returncode, ours.stderr)
            self.assertEqual(ours.stdout, theirs.stdout)
            if causes and theirs.returncode == 1 and 'level=error' in theirs.stderr:
                self.assertEqual(cause(ours.stderr), cause(theirs.stderr))
        return ours


def make_rootfs(path):
    (path / 'bin').mkdir(parents=True)
    for name in ('dev', 'proc', 'etc', 'tmp', 'sys'):
        (path / name).mkdir()
    shutil.copy(BUSYBOX, path / 'bin/busybox')
    for applet in ('sh', 'cat', 'echo', 'true', 'false', 'sleep', 'id', 'ls', 'kill', 'touch', 'mkdir', 'stat',
                   'head', 'yes', 'seq', 'test', 'wc', 'grep', 'hostname', 'env', 'pwd', 'umask', 'dd', 'tty',
                   'stty', 'ps', 'rm', 'chmod', 'readlink', 'mount', 'uname', 'mknod', 'od', 'sed'):
        (path / 'bin' / applet).symlink_to('busybox')
    (path / 'etc/passwd').write_text('root:x:0:0:root:/root:/bin/sh\nweb:x:33:33::/srv/web:/bin/false\n')


def descendants(pid):
    """Pids of all processes below pid."""
    parents = {}
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            fields = pathlib.Path(f'/proc/{name}/stat').read_text().rsplit(')', 1)[1].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(name))
    seen, todo = [], list(parents.get(pid, []))
    while todo:
        one = todo.pop()
        seen.append(one)
        todo += parents.get(one, [])
    return seen


def kill_hard(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def main():
    program = unittest.main(exit=False, verbosity=2)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if len(result.skipped) >= max(result.testsRun, 1) else 0)
