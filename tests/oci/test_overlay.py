#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# --overlay=root: what a container changes of its root file system stays with it.
import os

import ocilib

CHANGES = ('set -e; echo new >/made; mkdir -p /deep/er; echo x >>/kept; rm /gone; mv /moved /there; ln /kept /linked; '
           'chmod 600 /mode; rm -r /tree; mkdir /tree; ls -A /tree | wc -l; cat /made /kept /linked; stat -c "%h %a" /kept /mode; '
           'ls -A / | tr "\\n" " "')


class Overlay(ocilib.OciTest):
    def setUp(self):
        super().setUp()
        self.tree = self.bundle / 'rootfs'
        for name in ('kept', 'gone', 'moved', 'mode'):
            (self.tree / name).write_text(name + '\n')
        (self.tree / 'tree').mkdir()
        (self.tree / 'tree/a').write_text('a\n')

    def look(self):
        """Everything of the tree on the host: names, kinds, sizes, modes, times of change."""
        out = {}
        for path, dirs, files in os.walk(self.tree):
            for name in dirs + files:
                st = os.lstat(os.path.join(path, name))
                out[os.path.join(path, name)] = (st.st_mode, st.st_size, st.st_mtime_ns, st.st_nlink, st.st_ctime_ns)
        return out

    def run_overlay(self, *flags, **kw):
        return self.cloister('run', '--bundle', self.bundle, *flags, self.new_id(), **kw)

    def annotate(self, **notes):
        self.config['annotations'] = {'dev.cloister.overlay' + ('.' + k if k != 'how' else ''): v for k, v in notes.items()}

    def test_nothing_reaches_the_tree(self):
        self.sh(CHANGES)
        self.config['mounts'].append({'destination': '/new/mount/point', 'type': 'tmpfs', 'source': 'tmpfs'})
        before = self.look()
        p = self.run_overlay('--overlay=root')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(self.look(), before)
        native = self.run_container(runtime=ocilib.RUNC) if ocilib.RUNC else None
        if native:
            self.assertEqual(p.stdout, native.stdout)

    def test_annotation_and_flag(self):
        self.annotate(how='root')
        self.sh('echo x >/made')
        self.assertEqual(self.run_overlay().returncode, 0)
        self.assertFalse((self.tree / 'made').exists())
        self.assertEqual(self.run_overlay('--overlay=none').returncode, 0)
        self.assertTrue((self.tree / 'made').exists())

    def test_size(self):
        self.annotate(how='root', medium='memory', size='1M')
        self.sh('dd if=/dev/zero of=/big bs=64k count=64 2>&1 | grep -c "No space left"; rm /big; '
                'dd if=/dev/zero of=/small bs=64k count=8 2>/dev/null && wc -c </small')
        p = self.run_overlay()
        self.assertEqual(p.stdout, '1\n524288\n')
        p = self.run_overlay('--overlay-size', '16M')
        self.assertEqual(p.stdout, '0\n524288\n')

    def test_volumes_are_written(self):
        (self.dir / 'volume').mkdir()
        self.config['mounts'].append({'destination': '/vol', 'type': 'bind', 'source': str(self.dir / 'volume'), 'options': ['rw']})
        self.sh('echo out >/vol/file; cat /vol/file')
        p = self.run_overlay('--overlay=root')
        self.assertEqual(p.stdout, 'out\n', p.stderr)
        self.assertEqual((self.dir / 'volume/file').read_text(), 'out\n')

    def test_read_only_stays_so(self):
        self.config['root']['readonly'] = True
        self.sh('echo x >/made')
        self.assertNotEqual(self.run_overlay('--overlay=root').returncode, 0)

    def test_exec_sees_it(self):
        self.sh('echo x >/made; rm /gone; exec sleep 100')
        name = self.started('--overlay=root')
        ocilib.wait_until(lambda: self.cloister('exec', name, 'test', '-e', '/gone').returncode, what='the removal')
        self.assertEqual(self.ok('exec', name, 'cat', '/made').stdout, 'x\n')
        self.assertFalse((self.tree / 'made').exists())
        self.assertTrue((self.tree / 'gone').exists())

    def test_bad_values(self):
        self.write('true')
        for flags, notes, text in (
                (['--overlay=some'], {}, '--overlay: "some"'),
                (['--overlay=none', '--overlay-size=1M'], {}, '--overlay-size: a size without'),
                (['--overlay=none', '--overlay-medium=disk'], {}, '--overlay-medium: a medium without'),
                (['--overlay=none', '--overlay-dir=/tmp'], {}, '--overlay-dir: a place without'),
                (['--overlay-dir=tmp'], {}, '--overlay-dir: "tmp" is not an absolute path'),
                (['--overlay-dir=/tmp', '--overlay-medium=memory'], {}, '--overlay-dir: "/tmp" is of no use'),
                (['--overlay=root', '--overlay-size=1Q'], {}, '--overlay-size: "1Q"'),
                (['--overlay=root', '--overlay-size=0'], {}, '--overlay-size: "0"'),
                (['--overlay=root', '--overlay-size=-1'], {}, '--overlay-size: "-1"'),
                (['--overlay=root', '--overlay-size=99999999999G'], {}, '--overlay-size: "9999'),
                ([], {'how': 'every'}, 'annotation dev.cloister.overlay: "every"'),
                ([], {'how': 'root', 'size': 'much'}, 'annotation dev.cloister.overlay.size: "much"'),
                ([], {'how': 'root', 'medium': 'tape'}, 'annotation dev.cloister.overlay.medium: "tape"')):
            self.annotate(**notes)
            self.write()
            p = self.run_overlay(*flags)
            self.assertEqual(p.returncode, 1, flags)
            self.assertIn(text.replace('"', '\\"'), p.stderr)

    def test_options_that_would_do_nothing(self):
        """Linux takes these; here they would change nothing, and so they are refused."""
        for name in ('bounding', 'effective', 'permitted'):
            self.config['process']['capabilities'].setdefault(name, []).append('CAP_SYS_ADMIN')
        mount = 'mount -t overlay o /m/at -o lowerdir=/m/l,upperdir=/m/u,workdir=/m/w'
        self.sh('mkdir /m && mount -t tmpfs t /m && mkdir /m/l /m/u /m/w /m/at && ' + mount + ',xino=on && umount /m/at && echo on; '
                'for o in xino=off uuid=null uuid=off index=on; do ' + mount + ',$o 2>/dev/null && echo $o; done; echo end')
        self.assertEqual(self.run_container().stdout, 'on\nend\n')

    def test_do(self):
        before = self.look()
        p = self.cloister('do', '--rootfs', self.tree, '--overlay=root', '--', 'sh', '-c', 'echo x >/made && rm /gone && cat /made')
        self.assertEqual(p.stdout, 'x\n', p.stderr)
        self.assertEqual(self.look(), before)


if __name__ == '__main__':
    ocilib.main()
