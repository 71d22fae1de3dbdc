#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# The layer on disk in which a container's changes stay: where it is, how long it lives, what it may take.
import os
import signal
import subprocess
import tarfile

import ocilib

STORE = '.cloister.overlay'


class Layers(ocilib.OciTest):
    def setUp(self):
        super().setUp()
        self.tree = self.bundle / 'rootfs'
        self.store = self.tree / STORE

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.layers(), [], 'layers were left')

    def allow(self, *caps):
        for name in ('bounding', 'effective', 'permitted'):
            self.config['process']['capabilities'].setdefault(name, []).extend(caps)

    def layers(self):
        return sorted(self.store.iterdir()) if self.store.exists() else []

    def one(self, id_, *flags):
        """create, start and wait for the end of a container with this id; what it printed."""
        with open(self.dir / f'{id_}.out', 'w') as out:
            p = subprocess.run([ocilib.CLOISTER, '--root', self.root, 'create', '--bundle', self.bundle, *flags, id_],
                               stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, timeout=ocilib.TIMEOUT)
        self.assertEqual(p.returncode, 0, self.output(id_))
        self.ok('start', id_)
        self.wait_status(id_, 'stopped')
        return self.output(id_)

    def test_run_leaves_nothing(self):
        self.sh('echo x >/made; rm -r /etc; ls -A /')
        before = sorted(os.listdir(self.tree))
        self.assertEqual(self.run_container().returncode, 0)
        self.assertEqual(sorted(os.listdir(self.tree)), before)

    def test_lives_as_long_as_the_container(self):
        """Case B047: what an engine does for stop and start."""
        id_ = self.new_id()
        self.sh('test -e /made && cat /made; echo x >>/made')
        self.assertEqual(self.one(id_), '')
        self.ok('delete', id_)
        self.assertEqual(len(self.layers()), 1)
        self.assertEqual(self.one(id_), 'x\n')
        self.ok('delete', '--layer', id_)
        self.assertFalse(self.store.exists())
        self.assertEqual(self.one(id_), '')
        self.ok('delete', '--layer', id_)
        self.assertFalse((self.tree / 'made').exists())

    def test_kill_and_start_again(self):
        id_ = self.new_id()
        self.sh('test -e /made && exit; mkdir /made; exec sleep 1000')
        with open(self.dir / 'out', 'w') as out:
            subprocess.run([ocilib.CLOISTER, '--root', self.root, 'create', '--bundle', self.bundle, id_], stdin=subprocess.DEVNULL,
                           stdout=out, stderr=out, timeout=ocilib.TIMEOUT, check=True)
        self.ok('start', id_)
        ocilib.wait_until(lambda: any((p / '0/upper/made').is_dir() for p in self.layers()), what='the directory')
        ocilib.kill_hard(self.state_file(id_)['sentry']['pid'])
        self.wait_status(id_, 'stopped')
        self.ok('delete', id_)
        self.one(id_)
        self.ok('delete', '--layer', id_)

    def test_without_changes_nothing_is_kept(self):
        id_ = self.new_id()
        self.sh('ls -R /etc; touch /made; rm /made')
        self.one(id_)
        self.ok('delete', id_)
        self.assertFalse(self.store.exists())

    def test_the_root_itself(self):
        id_ = self.new_id()
        os.chmod(self.tree, 0o751)
        self.sh('stat -c %a /; chmod 711 /')
        self.assertEqual(self.one(id_), '751\n')
        self.ok('delete', id_)
        self.assertEqual(self.one(id_), '711\n')
        self.ok('delete', '--layer', id_)

    def test_hidden(self):
        """Nobody inside sees or reaches the store, with an overlay or without."""
        other = self.new_id()
        self.sh('echo secret >/secret')
        self.one(other)
        self.sh(f'ls -A / | grep -c cloister; cat /{STORE}/*/0/upper/secret 2>/dev/null; ls /{STORE} 2>&1 | grep -c "No such"; '
                f'mkdir /{STORE} 2>/dev/null && echo made; mv /etc /{STORE} 2>/dev/null && echo moved; true')
        for flags, want in ((['--overlay=none'], '0\n1\n'), (['--overlay=root'], '0\n1\nmade\nmoved\n')):
            p = self.cloister('run', '--bundle', self.bundle, *flags, self.new_id())
            self.assertEqual(p.stdout, want, p.stderr)
        self.ok('delete', '--layer', other)

    def test_store_from_the_image(self):
        """An image may bring a directory of that name, or a link."""
        self.write('true')
        (self.dir / 'elsewhere').mkdir()
        self.store.symlink_to(self.dir / 'elsewhere')
        p = self.run_container()
        self.assertNotEqual(p.returncode, 0)
        self.assertEqual(os.listdir(self.dir / 'elsewhere'), [])
        self.store.unlink()
        self.store.mkdir()
        os.chmod(self.store, 0o777)
        self.assertEqual(self.run_container().returncode, 0)
        self.store.rmdir()

    def test_given_directory(self):
        place = self.dir / 'layers'
        place.mkdir()
        id_ = self.new_id()
        self.sh('test -e /made && cat /made; echo x >>/made')
        self.one(id_, '--overlay-dir', place)
        self.assertEqual(len(list(place.iterdir())), 1)
        self.assertFalse(self.store.exists())
        self.ok('delete', id_)
        self.assertEqual(self.one(id_, '--overlay-dir', place), 'x\n')
        self.ok('delete', '--layer', id_)
        self.assertEqual(list(place.iterdir()), [])
        p = self.cloister('run', '--bundle', self.bundle, '--overlay-dir', place / 'absent', self.new_id())
        self.assertEqual(p.returncode, 1)
        self.assertIn(f'{place}/absent: No such file or directory'.lower(), p.stderr.lower())

    def test_root_that_cannot_be_written(self):
        """Then the layer is with the state, and goes with it."""
        subprocess.run(['mount', '--bind', self.tree, self.tree], check=True)
        try:
            subprocess.run(['mount', '-o', 'remount,bind,ro', self.tree], check=True)
            id_ = self.new_id()
            self.sh('echo x >/made; cat /made')
            self.assertEqual(self.one(id_), 'x\n')
            self.ok('delete', id_)
        finally:
            subprocess.run(['umount', self.tree], check=True)

    def test_home_and_exec_see_the_layer(self):
        id_ = self.new_id()
        self.sh('echo "root:x:0:0::/new:/bin/sh" >/etc/passwd; env | grep HOME; exec sleep 1000')
        with open(self.dir / 'out', 'w') as out:
            subprocess.run([ocilib.CLOISTER, '--root', self.root, 'create', '--bundle', self.bundle, id_], stdin=subprocess.DEVNULL,
                           stdout=out, stderr=out, timeout=ocilib.TIMEOUT, check=True)
        self.ok('start', id_)
        ocilib.wait_until(lambda: 'HOME' in (self.dir / 'out').read_text(), what='the first line')
        self.assertEqual(self.ok('exec', id_, 'sh', '-c', 'echo $HOME').stdout, '/new\n')
        self.ok('delete', '--force', '--layer', id_)

    def test_all(self):
        volume, file = self.dir / 'volume', self.dir / 'file'
        volume.mkdir()
        (volume / 'old').write_text('old\n')
        file.write_text('file\n')
        self.config['mounts'] += [
            {'destination': '/vol', 'type': 'bind', 'source': str(volume), 'options': ['rw']},
            {'destination': '/ro', 'type': 'bind', 'source': str(volume), 'options': ['ro']},
            {'destination': '/file', 'type': 'bind', 'source': str(file), 'options': ['rw']}]
        self.sh('echo new >/vol/new; rm /vol/old; ls /vol /ro; echo x >/ro/x || echo "no ro"; echo x >/file || echo "no file"; echo y >/made')
        for flags in ([], ['--overlay-medium=memory']):
            p = self.cloister('run', '--bundle', self.bundle, '--overlay=all', *flags, self.new_id())
            self.assertEqual(p.stdout, '/ro:\nold\n\n/vol:\nnew\nno ro\nno file\n', p.stderr)
            self.assertEqual(os.listdir(volume), ['old'])
            self.assertEqual(file.read_text(), 'file\n')
            self.assertFalse((self.tree / 'made').exists())

    def du(self):
        return sum(int(subprocess.run(['du', '-sB1', p], capture_output=True, text=True, check=True).stdout.split()[0])
                   for p in self.layers())

    def test_size(self):
        """The limit holds, on disk as inside; what is removed may be had again; the next container starts with what is left."""
        id_ = self.new_id()
        used = "busybox df -k / | grep overlay | (read a b c d; echo $b $c)"
        self.sh(f'{used}; dd if=/dev/zero of=/big bs=64k count=256 2>&1 | grep -c "No space"; wc -c </big; {used}; '
                f'(echo x >/more) 2>/dev/null && echo more; mkdir /d 2>/dev/null && echo d; busybox mv /big /renamed && echo renamed; rm /renamed; {used}; '
                'dd if=/dev/zero of=/half bs=64k count=64 2>/dev/null; busybox truncate -s 1G /half; busybox cp /bin/busybox /bin/copy && echo copied; '
                f'i=0; while [ $i -lt 1000 ]; do : >/n$i; i=$((i+1)); done; {used}')
        lines = self.one(id_, '--overlay-size=8M').splitlines()
        (total, before), big, (_, full), (_, after), (_, names) = (
            lines[0].split(), lines[2], lines[3].split(), lines[5].split(), lines[7].split())
        self.assertEqual([total, lines[1], lines[4], lines[6]], ['8192', '1', 'renamed', 'copied'], lines)
        self.assertGreater(int(big), (8 << 20) - (64 << 10))
        self.assertLess(int(big), 8 << 20)
        self.assertGreater(int(full), 8100)
        self.assertLess(abs(int(after) - int(before)), 64)
        self.assertLess(abs(self.du() - 1024 * int(names)), 200 << 10)
        self.assertLess(self.du(), 9 << 20)
        self.ok('delete', id_)
        self.sh(used)
        self.assertLess(abs(int(self.one(id_, '--overlay-size=8M').split()[1]) - int(names)), 200)
        self.ok('delete', id_)
        # Nothing more goes into a layer that has too much, and what is taken away makes room.
        self.sh('(echo x >/new) 2>/dev/null || echo full; rm /half /n1*; i=0; while (: >/m$i) 2>/dev/null; do i=$((i+1)); done; '
                'test $i -gt 500 -a $i -lt 1600 && echo names; rm /m*; echo x >/new && cat /new')
        self.assertEqual('full\nnames\nx\n', self.one(id_, '--overlay-size=2M'))
        self.ok('delete', '--layer', id_)

    def test_whiteouts_of_guests(self):
        """Case B084: devices 0:0 that a guest makes in its root are no whiteouts of the root's layer."""
        self.allow('CAP_MKNOD', 'CAP_SYS_ADMIN')
        self.sh('set -e; mknod /w c 0 0; stat -c "%F %t %T" /w; ls -A / | grep -x w; rm /w; mkdir -p /o/l /o/u /o/w /o/m /o/l/d; '
                'echo 1 >/o/l/a; echo 2 >/o/l/b; mount -t overlay o /o/m -o lowerdir=/o/l,upperdir=/o/u,workdir=/o/w; '
                'rm /o/m/a; mv /o/m/b /o/m/c; rm -r /o/m/d; mkdir /o/m/d; ls /o/m; stat -c "%F %t %T" /o/u/a /o/u/b; ls -A /o/l | tr "\\n" " "')
        p = self.run_container()
        device = 'character special file 0 0\n'
        self.assertEqual(p.stdout, device + 'w\nc\nd\n' + device * 2 + 'a b d ', p.stderr)

    def export(self, id_):
        path = self.dir / f'{id_}.tar'
        self.ok('export-layer', '-o', path, id_)
        return tarfile.open(path)

    def test_export(self):
        """An archive that any tool reads, and from which the next image is made."""
        self.allow('CAP_MKNOD', 'CAP_SYS_ADMIN', 'CAP_SETFCAP')
        long = 'n' * 120
        (self.tree / 'tree').mkdir()
        (self.tree / 'tree/old').write_text('old')
        (self.tree / 'moved').write_text('moved\n')
        self.sh(f'set -e; mkdir -p /a/b; echo text >/a/b/file; ln /a/b/file /a/again; ln -s ../target /a/link; chmod 4755 /a/b/file; '
                f'rm /etc/passwd; rm -r /tree; mkdir /tree; echo new >/tree/new; mknod /fifo p; mknod /w c 0 0; mv /moved /new; '
                f'echo long >/{long}; mkdir /{long}d; ln -s {long}{long} /{long}d/{long}; busybox truncate -s 5G /sparse && rm /sparse; '
                f'busybox touch -d "1960-01-02 03:04:05" /early; busybox chown 3000000:5 /early; chmod 751 /')
        id_ = self.new_id()
        self.one(id_)
        with self.export(id_) as tar:
            entries = {m.name: m for m in tar}
            content = {m.name: tar.extractfile(m).read() for m in tar if m.isreg()}
        self.assertEqual(set(entries) - {'tmp', 'dev', 'proc', 'sys'},
                         {'.', 'a', 'a/b', 'a/b/file', 'a/again', 'a/link', 'etc', 'etc/.wh.passwd', 'tree', 'tree/.wh..wh..opq', 'tree/new',
                          'fifo', 'w', '.wh.moved', 'new', long, f'{long}d', f'{long}d/{long}', 'early'})
        first, second = (entries['a/b/file'], entries['a/again'])
        if first.islnk():
            first, second = second, first
        self.assertEqual((second.islnk(), second.linkname, content[first.name], first.mode), (True, first.name, b'text\n', 0o4755))
        self.assertEqual((entries['a/link'].issym(), entries['a/link'].linkname), (True, '../target'))
        self.assertEqual(entries[f'{long}d/{long}'].linkname, long + long)
        self.assertEqual((entries['w'].ischr(), entries['w'].devmajor, entries['w'].devminor), (True, 0, 0))
        self.assertTrue(entries['fifo'].isfifo() and entries['tree'].isdir())
        self.assertEqual((content['etc/.wh.passwd'], content['new'], content[long]), (b'', b'moved\n', b'long\n'))
        early = entries['early']
        self.assertEqual((early.mtime, early.uid, early.gid, entries['.'].mode), (-315521755, 3000000, 5, 0o751))
        names = list(entries)
        self.assertEqual(names.index('tree/.wh..wh..opq'), names.index('tree') + 1)
        p = subprocess.run([ocilib.CLOISTER, '--root', self.root, 'export-layer', id_], capture_output=True, check=True)
        self.assertEqual(p.stdout, (self.dir / f'{id_}.tar').read_bytes())
        listed = subprocess.run(['tar', '-tf', self.dir / f'{id_}.tar'], capture_output=True, text=True, check=True)
        self.assertEqual((len(listed.stdout.splitlines()), listed.stderr), (len(entries), ''))
        self.ok('delete', '--layer', id_)

    def test_export_of_attributes(self):
        self.allow('CAP_SYS_ADMIN')
        id_ = self.new_id()
        self.sh('mkdir /d; echo x >/d/f; exec sleep 1000')
        with open(self.dir / 'out', 'w') as out:
            subprocess.run([ocilib.CLOISTER, '--root', self.root, 'create', '--bundle', self.bundle, id_], stdin=subprocess.DEVNULL,
                           stdout=out, stderr=out, timeout=ocilib.TIMEOUT, check=True)
        self.ok('start', id_)
        ocilib.wait_until(lambda: self.layers() and (self.layers()[0] / '0/upper/d/f').exists(), what='the file')
        file = self.layers()[0] / '0/upper/d/f'
        os.setxattr(file, 'user.mine', b'1\0\n2')
        os.setxattr(file, 'user.cloister.trusted.overlay.opaque', b'y')
        os.setxattr(file, 'user.cloister.escaped.x', b'e')
        os.setxattr(file.parent, 'user.cloister.overlay.opaque', b'y')
        with self.export(id_) as tar:
            entries = {m.name: m for m in tar}
        self.assertEqual({k: v for k, v in entries['d/f'].pax_headers.items() if 'xattr' in k},
                         {'SCHILY.xattr.user.mine': '1\0\n2', 'SCHILY.xattr.trusted.overlay.opaque': 'y',
                          'SCHILY.xattr.user.cloister.x': 'e'})
        self.assertEqual([k for k in entries['d'].pax_headers if 'xattr' in k], [])
        self.assertIn('d/.wh..wh..opq', entries)
        self.ok('delete', '--force', '--layer', id_)

    def test_nothing_to_export(self):
        self.write('true')
        id_ = self.create('--overlay=none')
        p = self.cloister('export-layer', '-o', self.dir / 'x.tar', id_)
        self.assertIn('no layer on disk', p.stderr)
        self.assertFalse((self.dir / 'x.tar').exists())
        self.assertIn('does not exist', self.cloister('export-layer', 'nobody').stderr)
        id_ = self.create()
        p = self.cloister('export-layer', '-o', '/dev/full', id_)
        self.assertIn('no space left', p.stderr)
        self.assertTrue(os.path.exists('/dev/full'))

    def test_one_container_at_a_time(self):
        id_ = self.new_id()
        self.sh('exec sleep 1000')
        with open(self.dir / 'out', 'w') as out:
            command = [ocilib.CLOISTER, '--root', self.root, 'create', '--bundle', self.bundle, id_]
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=ocilib.TIMEOUT, check=True)
            # The state is gone, and the processes are not.
            state = self.root / id_
            hidden = self.dir / 'hidden'
            state.rename(hidden)
            p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True, timeout=ocilib.TIMEOUT)
            self.assertNotEqual(p.returncode, 0)
            self.assertIn('in use', p.stderr)
            hidden.rename(state)
        self.ok('delete', '--force', '--layer', id_)

    def test_failed_starts(self):
        """Whatever fails, a new layer goes and an old one stays."""
        id_ = self.new_id()
        self.write('/no/such/program')
        for _ in range(2):
            self.assertNotEqual(self.cloister('create', '--bundle', self.bundle, id_).returncode, 0)
            self.assertFalse(self.store.exists())
        self.sh('echo x >/made')
        self.one(id_)
        self.ok('delete', id_)
        self.write('/no/such/program')
        self.assertNotEqual(self.cloister('create', '--bundle', self.bundle, id_).returncode, 0)
        self.sh('cat /made')
        self.assertEqual(self.one(id_), 'x\n')
        self.ok('delete', '--layer', id_)

    def test_kill_9_of_the_creator(self):
        for delay in (0.0, 0.002, 0.005, 0.01, 0.02, 0.04):
            id_ = self.new_id()
            self.sh('exec sleep 1000')
            with open(self.dir / 'out', 'w') as out:
                p = subprocess.Popen([ocilib.CLOISTER, '--root', self.root, 'create', '--bundle', self.bundle, id_],
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=out)
                try:
                    p.wait(delay)
                except subprocess.TimeoutExpired:
                    p.send_signal(signal.SIGKILL)
                p.wait()
            self.ok('delete', '--force', '--layer', id_)
            self.assertEqual(self.layers(), [])

    def test_deep_trees_go(self):
        self.sh('i=0; while [ $i -lt 60 ]; do d=$(printf %0200d $i); mkdir $d; cd $d; : >f; i=$((i+1)); done; pwd | wc -c; '
                'ln -s / link; mkdir -p a/b c/d')
        self.config['process']['cwd'] = '/tmp'
        p = self.run_container()
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertFalse(self.store.exists())
        self.assertTrue((self.tree / 'bin').is_dir())


if __name__ == '__main__':
    ocilib.main()
