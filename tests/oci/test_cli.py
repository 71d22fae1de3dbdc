#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The command line and bad input: no container ever runs here.
import json
import os
import subprocess

import ocilib
from ocilib import CLOISTER, RUNC, cause


class Cli(ocilib.OciTest):

    def both(self, *args, prefix=()):
        """Runs a command under us and runc. Return: our result; statuses and causes are equal."""
        ours = self.cloister(*args, options=prefix)
        if RUNC:
            theirs = self.cloister(*args, runtime=RUNC, options=prefix)
            self.assertEqual(ours.returncode, theirs.returncode, (args, ours.stderr, theirs.stderr))
            self.assertEqual(cause(ours.stderr).replace('cloister', 'runc'), cause(theirs.stderr).replace(RUNC, 'runc'))
        return ours

    def test_absent_container(self):
        for verb in ('state', 'start', 'kill', 'delete', 'pause', 'resume', 'ps'):
            with self.subTest(verb=verb):
                p = self.both(verb, 'nope')
                self.assertEqual(p.stdout, '')
                self.assertIn('container does not exist', p.stderr)
        self.assertEqual(self.both('exec', 'nope', 'ls').returncode, 255)
        self.assertEqual(self.both('delete', '--force', 'nope').returncode, 0)

    def test_list_of_nothing(self):
        self.assertEqual(self.both('list').stdout.split(),
                         ['ID', 'PID', 'STATUS', 'BUNDLE', 'CREATED', 'OWNER'])
        self.assertEqual(self.both('list', '--format', 'json').stdout, 'null\n')
        self.assertEqual(self.both('list', '-q').stdout, '')
        self.both('list', '--format', 'xml')

    def test_usage(self):
        for args in (('state',), ('state', 'a', 'b'), ('run',), ('kill',), ('exec',), ('bogus',),
                     ('run', '--bogus', 'x'), ('--bogus', 'run')):
            with self.subTest(args=args):
                p = self.both(*args)
                self.assertNotEqual(p.returncode, 0)
        for flag in ('--version', '-v'):
            self.assertTrue(self.ok(flag).stdout.startswith('cloister version '))
        self.assertIn('run', self.ok('--help').stdout)
        self.assertIn('--bundle', self.ok('run', '--help').stdout)

    def test_bad_ids(self):
        self.write()
        for id_ in ('a b', 'a/b', '..', '.', '../x', 'ü', 'a\n'):
            with self.subTest(id=id_):
                self.both('run', '--bundle', self.bundle, id_)
                self.both('state', id_)

    def test_bad_bundle(self):
        self.both('run', '--bundle', '/no-such-directory', 'x')
        self.both('run', '--bundle', self.dir, 'x')
        self.assertFalse(self.root.exists() and os.listdir(self.root))

    def test_bad_config(self):
        self.bundle.joinpath('config.json').write_text('{')
        p = self.run_container()
        self.assertEqual(p.returncode, 1)
        self.assertIn('line 1', p.stderr)
        for path, value, words in (
                (('process', 'args'), 'sh', 'process.args: expected array, got string'),
                (('process', 'cwd'), 'tmp', 'process.cwd'),
                (('root', 'path'), 5, 'root.path'),
                (('linux', 'namespaces'), [{'type': 'nope'}], 'linux.namespaces[0].type'),
                (('process', 'rlimits'), [{'type': 'RLIMIT_X', 'soft': 1, 'hard': 1}], 'process.rlimits[0].type'),
                (('mounts',), [{'type': 'proc'}], 'mounts[0]')):
            with self.subTest(path=path):
                self.config = json.loads(json.dumps(ocilib.CONFIG))
                at = self.config
                for name in path[:-1]:
                    at = at[name]
                at[path[-1]] = value
                self.write()
                p = self.run_container()
                self.assertEqual(p.returncode, 1)
                self.assertIn(words, p.stderr)

    def test_missing_root_and_source(self):
        self.config['root']['path'] = 'absent'
        self.write()
        self.assertIn('invalid rootfs: stat', self.both('run', '--bundle', self.bundle, 'x').stderr)
        self.config['root']['path'] = 'rootfs'
        self.config['mounts'].append({'destination': '/mnt', 'type': 'bind', 'source': '/no-such-directory',
                                      'options': ['bind']})
        self.write()
        p = self.run_container()
        self.assertEqual(p.returncode, 1)
        self.assertIn('error mounting \\"/no-such-directory\\" to rootfs at \\"/mnt\\": '
                      'stat /no-such-directory: no such file or directory', p.stderr)

    def test_terminal_needs_socket(self):
        self.write(terminal=True)
        self.both('create', '--bundle', self.bundle, 'x')
        self.write(terminal=False)
        self.both('create', '--bundle', self.bundle, '--console-socket', '/no-such-directory', 'x')

    def test_log_file(self):
        log = self.dir / 'log'
        p = self.cloister('state', 'nope', options=('--log', log, '--log-format', 'json'))
        self.assertEqual(p.returncode, 1)
        self.assertEqual(p.stderr, 'container does not exist\n')
        entry = json.loads(log.read_text())
        self.assertEqual((entry['level'], entry['msg']), ('error', 'container does not exist'))

    def test_state_directory_unusable(self):
        self.write()
        plain = self.dir / 'file'
        plain.write_text('')
        p = ocilib.run([CLOISTER, '--root', plain / 'x', 'run', '--bundle', self.bundle, 'x'])
        self.assertEqual(p.returncode, 1)
        self.assertIn('not a directory', p.stderr)

    def mounted(self, options):
        """A state directory on a file system of its own."""
        self.root.mkdir()
        subprocess.run(['mount', '-t', 'tmpfs', '-o', options, 'ocitest', self.root], check=True)
        self.addCleanup(subprocess.run, ['umount', '-l', self.root], stderr=subprocess.DEVNULL)

    def test_state_directory_full(self):
        self.write()
        self.mounted('size=8k,mode=755')
        (self.root / 'ballast').write_bytes(b'x' * 8192)
        p = self.run_container()
        self.assertEqual(p.returncode, 1)
        self.assertIn('no space left on device', p.stderr)
        os.unlink(self.root / 'ballast')
        self.assertEqual(os.listdir(self.root), [])
        subprocess.run(['umount', self.root], check=True)

    def test_state_directory_read_only(self):
        self.write()
        self.mounted('ro,mode=755')
        p = self.run_container()
        self.assertEqual(p.returncode, 1)
        self.assertIn('read-only file system', p.stderr)
        subprocess.run(['umount', self.root], check=True)

    def test_spec(self):
        self.bundle.joinpath('config.json').unlink(missing_ok=True)
        self.ok('spec', '--bundle', self.bundle)
        ours = json.loads((self.bundle / 'config.json').read_text())
        self.assertEqual(ours['process']['args'], ['sh'])
        p = self.cloister('spec', '--bundle', self.bundle)
        self.assertEqual(p.returncode, 1)
        self.assertIn('File config.json exists. Remove it first', p.stderr)

    def test_features(self):
        features = json.loads(self.ok('features').stdout)
        self.assertEqual(len(features['hooks']), 6)
        self.assertTrue(features['linux']['cgroup']['v1'] and features['linux']['cgroup']['v2'])

    def test_cgroup_root_refused(self):
        self.config['linux']['cgroupsPath'] = '/'
        self.write()
        p = self.run_container()
        self.assertEqual(p.returncode, 1)
        self.assertIn('root of the hierarchy', p.stderr)

    def test_user_namespace_refused(self):
        self.config['linux']['namespaces'].append({'type': 'user'})
        self.config['linux']['uidMappings'] = [{'containerID': 0, 'hostID': 1000, 'size': 1}]
        self.config['linux']['gidMappings'] = [{'containerID': 0, 'hostID': 1000, 'size': 1}]
        self.write()
        p = self.run_container()
        self.assertEqual(p.returncode, 1)
        self.assertIn('not supported', p.stderr)

    def test_long_state_path(self):
        """The control socket's path does not fit into a socket address."""
        self.root = self.dir / ('d' * 100) / ('e' * 100)
        self.write('no-such-program')
        p = self.run_container()
        self.assertEqual(p.returncode, 1)
        self.assertNotIn('socket', p.stderr)


if __name__ == '__main__':
    ocilib.main()
