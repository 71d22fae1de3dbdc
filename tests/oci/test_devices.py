#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# linux.devices and linux.resources.devices, against runc.
import ocilib

SHOW = 'stat -c "%n %F %a %u:%g %t:%T" '


def device(path, kind, number=(0, 0), **more):
    d = {'path': path, 'type': kind, **more}
    if kind != 'p':
        d['major'], d['minor'] = number
    return d


class Nodes(ocilib.OciTest):
    def devices(self, *devices):
        self.config['linux']['devices'] = list(devices)

    def test_nodes(self):
        self.devices(device('/dev/fuse', 'c', (10, 229), fileMode=0o640, uid=5, gid=6),
                     device('/dev/unbuffered', 'u', (1, 5)),
                     device('/dev/deep/zero', 'c', (1, 5), fileMode=0o20604),
                     device('/dev/disk/a', 'b', (7, 0), fileMode=0o600),
                     device('/dev/queue', 'p', fileMode=0o622))
        self.sh(SHOW + '/dev/fuse /dev/unbuffered /dev/deep /dev/deep/zero /dev/disk /dev/disk/a /dev/queue')
        p = self.same_as_runc()
        self.assertIn('/dev/fuse character special file 640 5:6 a:e5\n', p.stdout)

    def test_outside_of_dev(self):
        """No node gets into the host's tree: it is bound over an empty file."""
        self.devices(device('/srv/deep/zero', 'c', (1, 5), fileMode=0o604))
        self.sh(SHOW + '/srv/deep/zero; head -c 4 /srv/deep/zero | od -c')
        p = self.cloister('run', '--bundle', self.bundle, '--overlay=none', self.new_id())
        self.assertEqual(p.stdout, '/srv/deep/zero character special file 604 0:0 1:5\n'
                                   '0000000  \\0  \\0  \\0  \\0\n0000004\n')
        self.assertTrue((self.bundle / 'rootfs/srv/deep/zero').is_file())

    def test_they_work(self):
        self.devices(device('/dev/nothing', 'c', (1, 5)), device('/dev/queue', 'p'))
        self.sh('head -c 4 /dev/nothing | od -c; echo through > /dev/queue & cat /dev/queue')
        self.same_as_runc()

    def test_standard_node_named(self):
        self.devices(device('/dev/null', 'c', (1, 3), fileMode=0o600, uid=7),
                     device('/dev/zero', 'c', (1, 7), uid=7))
        self.config['linux']['resources'] = {'devices': [{'allow': True, 'access': 'rwm'}]}
        self.sh(SHOW + '/dev/null /dev/zero')
        self.same_as_runc()

    def test_twice(self):
        self.devices(device('/dev/x', 'c', (1, 3), fileMode=0o600), device('/dev/x', 'c', (1, 5), fileMode=0o644))
        self.sh(SHOW + '/dev/x')
        self.same_as_runc()

    def test_something_is_there(self):
        (self.bundle / 'rootfs/srv').mkdir()
        (self.bundle / 'rootfs/srv/file').write_text('text\n')
        (self.bundle / 'rootfs/srv/dir').mkdir()
        self.devices(device('/srv/file', 'c', (1, 3)), device('/srv/dir', 'c', (1, 3)))
        self.sh(SHOW + '/srv/file /srv/dir; cat /srv/file')
        self.same_as_runc()

    def test_no_way_there(self):
        (self.bundle / 'rootfs/srv').mkdir()
        (self.bundle / 'rootfs/srv/file').write_text('text\n')
        self.devices(device('/srv/file/node', 'c', (1, 3)))
        self.write('true')
        p = self.run_container()
        self.assertEqual(p.returncode, 1)
        self.assertIn('linux.devices[0]: /srv/file/node: Not a directory', p.stderr)

    def test_nobody_serves_it(self):
        self.config['linux']['resources'] = {'devices': [{'allow': True, 'access': 'rwm'}]}
        self.devices(device('/dev/odd', 'c', (240, 9)), device('/dev/disk', 'b', (241, 9)))
        self.sh('cat /dev/odd; cat /dev/disk')
        p = self.same_as_runc()
        self.assertEqual(p.stderr.count('No such device or address'), 2)


class Rules(ocilib.OciTest):
    SCRIPT = ('for f in null zero full random urandom tty ptmx odd disk; do '
              'for how in "<" ">" "<>"; do eval "(: $how /dev/$f) 2>/tmp/e" && echo $f $how yes || '
              '{ echo $f $how; sed "s/.*: //" /tmp/e; }; done; done; '
              'mknod /dev/c c 240 9 && mknod /dev/b b 241 9 && mknod /dev/z c 1 5 && head -c1 /dev/z | od -c')

    def rules(self, *rules):
        caps = self.config['process']['capabilities']
        for kind in caps:
            caps[kind].append('CAP_MKNOD')
        self.config['linux']['resources'] = {'devices': list(rules)}
        self.config['linux']['devices'] = [device('/dev/odd', 'c', (240, 9)), device('/dev/disk', 'b', (241, 9)),
                                           device('/dev/mem-full', 'c', (1, 7))]
        self.sh(self.SCRIPT)
        return self.same_as_runc()

    def test_nothing_said(self):
        self.rules()

    def test_all_denied(self):
        """But for what every container has."""
        p = self.rules({'allow': False, 'access': 'rwm'})
        self.assertIn('odd <\nOperation not permitted\n', p.stdout)
        self.assertIn('null <> yes\n', p.stdout)

    def test_some_allowed(self):
        p = self.rules({'allow': False, 'access': 'rwm'},
                       {'allow': True, 'type': 'c', 'major': 240, 'minor': 9, 'access': 'r'},
                       {'allow': True, 'type': 'b', 'major': 241, 'access': 'rw'})
        self.assertIn('odd <\nNo such device or address\nodd >\nOperation not permitted\n', p.stdout)
        self.assertIn('disk <>\nNo such device or address\n', p.stdout)

    def test_some_denied(self):
        p = self.rules({'allow': True, 'access': 'rwm'},
                       {'allow': False, 'type': 'c', 'major': 240, 'minor': 9, 'access': 'w'})
        self.assertIn('odd <\nNo such device or address\nodd >\nOperation not permitted\n', p.stdout)

    def test_order(self):
        self.rules({'allow': False, 'access': 'rwm'},
                   {'allow': True, 'type': 'c', 'major': 240, 'minor': 9, 'access': 'rw'},
                   {'allow': False, 'type': 'c', 'major': 240, 'minor': 9, 'access': 'w'})

    def test_exec(self):
        self.config['linux']['resources'] = {'devices': [{'allow': False, 'access': 'rwm'}]}
        self.config['linux']['devices'] = [device('/dev/odd', 'c', (240, 9))]
        self.write('sleep', '100')
        name = self.started()
        p = self.cloister('exec', name, 'cat', '/dev/odd')
        self.assertIn('Operation not permitted', p.stderr)


if __name__ == '__main__':
    ocilib.main()
