#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Containers from create to delete, against runc where it says what is right.
import array
import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import socket
import stat
import struct
import subprocess
import termios
import threading
import time

import ocilib
from ocilib import CLOISTER, wait_until


class Run(ocilib.OciTest):
    def test_status(self):
        for script in ('exit 0', 'exit 42', 'kill -9 $$', 'kill -TERM $$', 'exit 255'):
            with self.subTest(script=script):
                self.sh(script)
                self.same_as_runc()

    def test_output(self):
        self.sh('echo out; echo err >&2; pwd; id; hostname; umask')
        p = self.same_as_runc()
        self.assertEqual(p.stderr, 'err\n')

    def test_time_offsets(self):
        self.config['linux']['namespaces'].append({'type': 'time'})
        self.config['linux']['timeOffsets'] = {'monotonic': {'secs': 100}, 'boottime': {'secs': 86400, 'nanosecs': 5}}
        self.sh('cat /proc/self/timens_offsets; read up rest < /proc/uptime; test "${up%.*}" -ge 86400; echo $?; sleep 1000')
        id_ = self.started()
        offsets = 'monotonic         100         0\nboottime        86400         5\n'
        wait_until(lambda: self.output(id_) == offsets + '0\n')
        self.assertEqual(self.ok('exec', id_, 'cat', '/proc/self/timens_offsets').stdout, offsets)
        self.ok('delete', '--force', id_)
        self.config['linux']['timeOffsets']['boottime']['secs'] = 1 << 40
        self.write()
        p = self.run_container()
        self.assertIn('linux.timeOffsets.boottime: Numerical result out of range', p.stderr)

    def test_stdin(self):
        self.write('cat')
        p = self.run_container(stdin=None, input='through\n')
        self.assertEqual((p.returncode, p.stdout), (0, 'through\n'))

    def test_user_and_environment(self):
        self.sh('id; env | grep -v ^PWD | grep -v ^SHLVL; pwd; ls /proc/self/fd | wc -l',
                user={'uid': 33, 'gid': 34, 'additionalGids': [5, 6], 'umask': 0o27},
                env=['PATH=/bin', 'A=b c', 'EMPTY='], cwd='/tmp')
        self.assertIn('HOME=/srv/web', self.same_as_runc().stdout)

    def test_missing_directory_is_made(self):
        self.write('pwd', cwd='/made/on/the/way')
        self.same_as_runc()

    def test_programs_that_cannot_run(self):
        rootfs = self.bundle / 'rootfs'
        (rootfs / 'bin/plain').write_text('#!/bin/sh\n')
        (rootfs / 'bin/noshell').write_text('#!/absent\n')
        (rootfs / 'bin/noshell').chmod(0o755)
        for program in ('nosuch', '/bin/nosuch', '/bin/plain', 'plain', '/etc', './nosuch'):
            with self.subTest(program=program):
                self.write(program)
                p = self.same_as_runc()
                self.assertEqual(p.returncode, 1)
                self.assertFalse(os.listdir(self.root))
        self.write('/bin/noshell')
        self.assertNotEqual(self.run_container().returncode, 0)

    def test_rlimits_and_capabilities(self):
        self.sh('ulimit -n; ulimit -Hn; grep ^Cap /proc/self/status; grep NoNewPrivs /proc/self/status',
                rlimits=[{'type': 'RLIMIT_NOFILE', 'soft': 100, 'hard': 200}])
        self.same_as_runc()

    def test_read_only_root(self):
        self.config['root']['readonly'] = True
        self.sh('touch /x 2>&1; touch /dev/shm-not-here 2>/dev/null; echo $?')
        self.assertIn('Read-only file system', self.same_as_runc().stdout)

    def test_writes_reach_the_root(self):
        self.sh('echo new > /tmp/file; mkdir /d; chmod 750 /d')
        self.assertEqual(self.cloister('run', '--bundle', self.bundle, '--overlay=none', self.new_id()).returncode, 0)
        rootfs = self.bundle / 'rootfs'
        self.assertEqual((rootfs / 'tmp/file').read_text(), 'new\n')
        self.assertEqual(stat.S_IMODE((rootfs / 'd').stat().st_mode), 0o750)

    def test_bind_mounts(self):
        source = self.dir / 'source'
        (source / 'below').mkdir(parents=True)
        (source / 'file').write_text('content\n')
        mounts = [
            {'destination': '/data', 'type': 'bind', 'source': str(source), 'options': ['rbind', 'rw']},
            {'destination': '/ro', 'type': 'bind', 'source': str(source), 'options': ['bind', 'ro']},
            {'destination': '/etc/one', 'type': 'bind', 'source': str(source / 'file'), 'options': ['bind', 'ro']},
            {'destination': '/new/deep', 'type': 'bind', 'source': str(source), 'options': ['bind', 'noexec']},
        ]
        self.config['mounts'] += mounts
        self.sh('cat /data/file /etc/one /ro/file; echo x > /data/written; touch /ro/x 2>&1; '
                'echo x > /etc/one 2>/dev/null; echo $?; ls /new/deep')
        self.same_as_runc()
        self.assertEqual((source / 'written').read_text(), 'x\n')

    def test_masked_and_read_only_paths(self):
        (self.bundle / 'rootfs/etc/secret').write_text('secret\n')
        (self.bundle / 'rootfs/etc/dir').mkdir()
        (self.bundle / 'rootfs/etc/dir/x').write_text('x\n')
        self.config['linux']['maskedPaths'] = ['/etc/secret', '/etc/dir', '/absent']
        self.config['linux']['readonlyPaths'] = ['/tmp']
        self.sh('cat /etc/secret; ls -A /etc/dir; touch /tmp/x 2>&1')
        self.assertIn('Read-only', self.same_as_runc().stdout)

    def test_shared_offset(self):
        """Output of a container continues where the caller's stopped, and the other way round."""
        self.sh('echo B; echo C')
        with open(self.dir / 'out', 'w') as out:
            out.write('AAAA\n')
            out.flush()
            subprocess.run([CLOISTER, '--root', self.root, 'run', '--bundle', self.bundle, self.new_id()],
                           stdin=subprocess.DEVNULL, stdout=out, check=True)
            os.write(out.fileno(), b'D\n')
        self.assertEqual((self.dir / 'out').read_text(), 'AAAA\nB\nC\nD\n')

    def test_ignored_signals_are_not_inherited(self):
        self.sh('grep SigIgn /proc/self/status; yes | head -n 1')
        p = self.run_container(preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
        self.assertIn('SigIgn:\t0000000000000000', p.stdout)
        self.assertEqual(p.returncode, 0)

    def test_preserved_descriptors(self):
        self.sh('cat <&3; cat <&4')
        r1, w1 = os.pipe()
        r2, w2 = os.pipe()
        os.write(w1, b'three\n')
        os.write(w2, b'four\n')
        os.close(w1)
        os.close(w2)

        def place():
            os.dup2(r1, 100)
            os.dup2(r2, 101)
            os.dup2(100, 3)
            os.dup2(101, 4)

        p = subprocess.run([CLOISTER, '--root', self.root, 'run', '--preserve-fds', '2', '--bundle', self.bundle,
                            self.new_id()], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           preexec_fn=place, close_fds=False, timeout=60)
        self.assertEqual(p.stdout, 'three\nfour\n', p.stderr)

    def test_socket_activation(self):
        self.sh('echo $LISTEN_FDS $LISTEN_PID; cat <&3')
        r, w = os.pipe()
        os.write(w, b'three\n')
        os.close(w)
        p = subprocess.run([CLOISTER, '--root', self.root, 'run', '--bundle', self.bundle, self.new_id()],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                           env={'LISTEN_FDS': '1'}, preexec_fn=lambda: os.dup2(os.dup2(r, 100), 3), close_fds=False)
        self.assertEqual(p.stdout, '1 1\nthree\n', p.stderr)

    def test_signals_are_forwarded(self):
        self.sh('trap "echo got; exit 7" USR1; echo ready; while :; do sleep 0.1; done')
        p = subprocess.Popen([CLOISTER, '--root', self.root, 'run', '--bundle', self.bundle, self.new_id()],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.assertEqual(p.stdout.readline(), 'ready\n')
        p.send_signal(signal.SIGUSR1)
        self.assertEqual(p.communicate(timeout=20)[0], 'got\n')
        self.assertEqual(p.returncode, 7)

    def test_background_processes_end_with_init(self):
        self.sh('for i in 1 2 3 4 5 6 7 8; do sleep 300 & done; exit 3')
        start = time.monotonic()
        self.assertEqual(self.run_container().returncode, 3)
        self.assertLess(time.monotonic() - start, 5)

    def test_terminal(self):
        self.sh('tty; stty size; read x; echo "[$x]"', terminal=True)
        pid, master = pty.fork()
        if pid == 0:
            os.execv(CLOISTER, [CLOISTER, '--root', str(self.root), 'run', '--bundle', str(self.bundle), self.new_id()])
        seen = b''
        sent = False
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if not select.select([master], [], [], 0.1)[0]:
                continue
            try:
                chunk = os.read(master, 4096)
            except OSError:
                break
            seen += chunk
            if b'/dev/' in seen and not sent:
                os.write(master, b'hello\r')
                sent = True
        os.close(master)
        self.assertEqual(os.waitpid(pid, 0)[1], 0, seen)
        self.assertIn(b'[hello]', seen)


    def test_terminal_signals(self):
        """Ctrl-C and a new window size reach the program through the person's terminal."""
        self.sh('trap "echo got INT" INT; trap "exit 3" QUIT; trap "echo size \\$(stty size)" WINCH; '
                'stty size; echo ready; while :; do sleep 0.1; done', terminal=True)
        pid, master = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 30, 90, 0, 0))
            os.execv(CLOISTER, [CLOISTER, '--root', str(self.root), 'run', '--bundle', str(self.bundle), self.new_id()])
        seen = b''

        def saw(word):
            nonlocal seen
            if select.select([master], [], [], 0)[0]:
                seen += os.read(master, 4096)
            return word in seen

        wait_until(lambda: saw(b'ready'), what='start')
        self.assertIn(b'30 90', seen)
        os.write(master, b'\x03')
        wait_until(lambda: saw(b'got INT'), what='SIGINT')
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 120, 0, 0))
        wait_until(lambda: saw(b'size 40 120'), what='SIGWINCH')
        os.write(master, b'\x1c')
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 3)
        os.close(master)


class Lifecycle(ocilib.OciTest):
    def test_states(self):
        self.config['annotations'] = {'org.example/x': 'y "z"'}
        self.sh('trap "exit 0" TERM; while :; do sleep 0.05; done')
        id_ = self.create()
        state = self.state(id_)
        self.assertEqual(state['status'], 'created')
        self.assertEqual(state['bundle'], str(self.bundle))
        self.assertEqual(state['annotations'], {'org.example/x': 'y "z"'})
        self.assertEqual(state['id'], id_)
        pid = state['pid']
        self.assertTrue(os.path.exists(f'/proc/{pid}'))
        self.ok('start', id_)
        state = self.state(id_)
        self.assertEqual((state['status'], state['pid']), ('running', pid))
        p = self.cloister('delete', id_)
        self.assertEqual(p.returncode, 1)
        self.assertIn(f'cannot delete container {id_} that is not stopped: running', p.stderr)
        p = self.cloister('start', id_)
        self.assertIn('cannot start an already running container', p.stderr)
        self.ok('kill', id_, 'TERM')
        self.wait_status(id_, 'stopped')
        self.assertEqual(self.state(id_)['pid'], 0)
        self.assertIn('cannot start a container that has stopped', self.cloister('start', id_).stderr)
        self.assertIn('container not running', self.cloister('kill', id_, 'TERM').stderr)
        self.ok('kill', '--all', id_, 'TERM')
        self.ok('delete', id_)
        self.assertIn('container does not exist', self.cloister('delete', id_).stderr)

    def test_id_in_use(self):
        self.sh('sleep 100')
        id_ = self.create()
        for verb in ('create', 'run'):
            p = self.cloister(verb, '--bundle', self.bundle, id_)
            self.assertEqual(p.returncode, 1)
            self.assertIn('container with given ID already exists', p.stderr)
        self.assertEqual(self.status(id_), 'created')
        self.ok('delete', id_)

    def test_kill_created(self):
        self.sh('sleep 100')
        id_ = self.create()
        self.ok('kill', id_, 'KILL')
        self.wait_status(id_, 'stopped')
        self.ok('delete', id_)

    def test_bad_signals(self):
        self.sh('sleep 100')
        id_ = self.started()
        self.assertIn('unknown signal \\"NOSUCH\\"', self.cloister('kill', id_, 'NOSUCH').stderr)
        self.assertIn('invalid argument', self.cloister('kill', id_, '9999').stderr)
        self.ok('kill', id_, '0')
        self.ok('delete', '--force', id_)

    def test_list(self):
        self.sh('sleep 100')
        ids = sorted(self.create() for _ in range(2))
        self.assertEqual(self.ok('list', '-q').stdout.split(), ids)
        listed = json.loads(self.ok('list', '--format', 'json').stdout)
        self.assertEqual([c['id'] for c in listed], ids)
        self.assertEqual({c['status'] for c in listed}, {'created'})
        self.assertIn('created', self.ok('list').stdout)

    def test_detached_run_and_pid_file(self):
        self.sh('sleep 100')
        id_ = self.new_id()
        pid_file = self.dir / 'pid'
        with open(self.dir / 'out', 'w') as out:
            subprocess.run([CLOISTER, '--root', self.root, 'run', '-d', '--pid-file', pid_file, '--bundle',
                            self.bundle, id_], stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=True,
                           timeout=30)
        state = self.state(id_)
        self.assertEqual(state['status'], 'running')
        self.assertEqual(int(pid_file.read_text()), state['pid'])
        self.ok('delete', '--force', id_)

    def test_caller_reaps_the_status(self):
        """The pid in the pid file ends as the container does, for the subreaper above us."""
        code = f'''
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
base = {[CLOISTER, '--root', str(self.root)]!r}
subprocess.run(base + ['create', '--pid-file', sys.argv[1], '--bundle', {str(self.bundle)!r}, sys.argv[2]],
               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
pid = int(open(sys.argv[1]).read())
subprocess.run(base + ['start', sys.argv[2]], check=True)
while True:
    got, status = os.wait()
    if got == pid:
        print(status)
        break
'''
        self.sh('exit 42')
        p = ocilib.run(['python3', '-c', code, self.dir / 'pid', self.new_id()])
        self.assertEqual(p.stdout, f'{42 << 8}\n', p.stderr)
        # Pid 1 is safe from its own signals, as everywhere; here the signal comes from outside.
        self.sh('sleep 100')
        id_ = self.new_id()

        def kill_when_running():
            while '"running"' not in self.cloister('state', id_).stdout:
                time.sleep(0.05)  # a busy machine takes its time
            self.ok('kill', id_, 'KILL')
        killer = threading.Thread(target=kill_when_running, daemon=True)
        killer.start()
        p = ocilib.run(['python3', '-c', code, self.dir / 'pid', id_])
        killer.join()
        self.assertEqual(p.stdout, '9\n', p.stderr)

    def test_console_socket(self):
        self.sh('stty size; tty; read x; echo "got $x"', terminal=True,
                consoleSize={'height': 40, 'width': 100})
        path = self.dir / 'console.sock'
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        server.listen(1)
        masters = []

        def receive():
            conn, _ = server.accept()
            fds = array.array('i')
            _, control, _, _ = conn.recvmsg(64, socket.CMSG_SPACE(4))
            fds.frombytes(control[0][2][:4])
            masters.append(fds[0])
            conn.close()

        thread = threading.Thread(target=receive)
        thread.start()
        id_ = self.create('--console-socket', str(path))
        thread.join(10)
        server.close()
        self.assertEqual(len(masters), 1)
        self.ok('start', id_)
        os.write(masters[0], b'word\r')
        seen = b''

        def read():
            nonlocal seen
            if select.select([masters[0]], [], [], 0)[0]:
                try:
                    seen += os.read(masters[0], 4096)
                except OSError:
                    return True
            return b'got word' in seen

        wait_until(read, what='answer of the program')
        self.assertIn(b'40 100', seen)
        os.close(masters[0])
        self.wait_status(id_, 'stopped')
        self.ok('delete', id_)

    def test_pause(self):
        self.sh('i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done')
        id_ = self.started()
        wait_until(lambda: '3\n' in self.output(id_), what='output')
        self.ok('pause', id_)
        self.assertEqual(self.status(id_), 'paused')
        self.assertIn('container not running', self.cloister('pause', id_).stderr)
        before = self.output(id_)
        time.sleep(0.3)
        self.assertEqual(self.output(id_), before)
        self.assertIn('paused container', self.cloister('exec', id_, 'true').stderr)
        self.ok('resume', id_)
        self.assertIn('container not paused', self.cloister('resume', id_).stderr)
        wait_until(lambda: self.output(id_) != before, what='more output')
        self.ok('pause', id_)
        self.ok('delete', '--force', id_)

    def test_kill_paused(self):
        self.sh('while :; do sleep 1; done')
        id_ = self.started()
        self.ok('pause', id_)
        self.ok('kill', id_, 'KILL')
        self.wait_status(id_, 'stopped')
        self.ok('delete', id_)

    def test_short_containers_while_others_look(self):
        """State and delete at the moment of the end never fail with anything but "does not exist"."""
        self.sh('exit 0')
        stop = threading.Event()
        bad = []

        def look():
            while not stop.is_set():
                for id_ in os.listdir(self.root) if self.root.exists() else []:
                    p = self.cloister('state', id_)
                    if p.returncode and 'does not exist' not in p.stderr:
                        bad.append(p.stderr)

        thread = threading.Thread(target=look)
        thread.start()
        try:
            for _ in range(30):
                p = self.run_container()
                self.assertEqual(p.returncode, 0, p.stderr)
        finally:
            stop.set()
            thread.join()
        self.assertEqual(bad, [])


class Exec(ocilib.OciTest):
    def setUp(self):
        super().setUp()
        self.sh('while :; do sleep 1; done')
        self.id = self.started()

    def exec(self, *args, **kw):
        return self.cloister('exec', *args, **kw)

    def test_status_and_output(self):
        p = self.exec(self.id, 'sh', '-c', 'echo out; echo err >&2; exit 7')
        self.assertEqual((p.returncode, p.stdout, p.stderr), (7, 'out\n', 'err\n'))
        self.assertEqual(self.exec(self.id, 'sh', '-c', 'kill -9 $$').returncode, 137)
        p = self.exec(self.id, 'nosuch')
        self.assertEqual(p.returncode, 255)
        self.assertIn('exec: \\"nosuch\\": executable file not found in $PATH', p.stderr)

    def test_flags(self):
        p = self.exec('--cwd', '/tmp', '--env', 'A=b', '--user', '33:34', '-g', '5', self.id, 'sh', '-c',
                      'pwd; echo $A $HOME; id')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn('/tmp\nb /srv/web\n', p.stdout)
        self.assertIn('uid=33(web) gid=34', p.stdout)

    def test_process_file(self):
        process = dict(ocilib.CONFIG['process'], args=['sh', '-c', 'echo from file'])
        (self.dir / 'process.json').write_text(json.dumps(process))
        p = self.exec('--process', self.dir / 'process.json', self.id)
        self.assertEqual(p.stdout, 'from file\n', p.stderr)

    def test_detached(self):
        pid_file = self.dir / 'exec.pid'
        code = f'''
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
subprocess.run({[CLOISTER, '--root', str(self.root)]!r} + ['exec', '-d', '--pid-file', {str(pid_file)!r},
               {self.id!r}, 'sh', '-c', sys.argv[1]], check=True, stdin=subprocess.DEVNULL,
               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
pid = int(open({str(pid_file)!r}).read())
if len(sys.argv) > 2:
    os.kill(pid, int(sys.argv[2]))
print(os.waitpid(pid, 0)[1])
'''
        run = lambda *args: ocilib.run(['python3', '-c', code, *args]).stdout
        self.assertEqual(run('exit 5'), f'{5 << 8}\n')
        self.assertEqual(run('kill -9 $$'), '9\n')
        self.assertEqual(run('sleep 300', '15'), '15\n')
        before = len(json.loads(self.ok('ps', '--format', 'json', self.id).stdout))
        self.assertEqual(run('sleep 300', '9'), '9\n')
        wait_until(lambda: len(json.loads(self.ok('ps', '--format', 'json', self.id).stdout)) <= before,
                   what='end of the program whose waiter was killed')

    def test_terminal(self):
        pid, master = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 30, 90, 0, 0))
            os.execv(CLOISTER, [CLOISTER, '--root', str(self.root), 'exec', '-t', self.id, 'sh', '-c',
                                'trap "echo size \\$(stty size)" WINCH; trap "exit 4" QUIT; stty size; tty; '
                                'echo ready; while :; do sleep 0.1; done'])
        seen = b''

        def saw(word):
            nonlocal seen
            if select.select([master], [], [], 0)[0]:
                seen += os.read(master, 4096)
            return word in seen

        wait_until(lambda: saw(b'ready'), what='start')
        self.assertIn(b'30 90', seen)
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 120, 0, 0))
        wait_until(lambda: saw(b'size 40 120'), what='SIGWINCH')
        os.write(master, b'\x1c')
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 4)
        os.close(master)

    def test_many_at_once(self):
        running = [subprocess.Popen([CLOISTER, '--root', self.root, 'exec', self.id, 'sh', '-c', f'echo {i}; exit {i}'],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
                   for i in range(20)]
        for i, p in enumerate(running):
            self.assertEqual(p.communicate(timeout=60)[0], f'{i}\n')
            self.assertEqual(p.returncode, i)

    def test_stopped(self):
        self.ok('kill', self.id, 'KILL')
        self.wait_status(self.id, 'stopped')
        p = self.exec(self.id, 'true')
        self.assertEqual(p.returncode, 255)
        self.assertIn('cannot exec in a stopped container', p.stderr)


class Hooks(ocilib.OciTest):
    def hook(self, name, script, **more):
        return {'path': '/bin/sh', 'args': ['sh', '-c', script.replace('OUT', str(self.dir / name))], **more}

    def test_order_and_state(self):
        (self.bundle / 'rootfs/bin/hook').write_text('#!/bin/sh\ncat > /tmp/hook\n')
        (self.bundle / 'rootfs/bin/hook').chmod(0o755)
        log = str(self.dir / 'log')
        kinds = ['prestart', 'createRuntime', 'createContainer', 'poststart', 'poststop']
        self.config['hooks'] = {k: [{'path': '/bin/sh', 'args': ['sh', '-c', f'echo {k} >> {log}; cat > {self.dir}/{k}'],
                                     'env': ['PATH=/bin:/usr/bin']}] for k in kinds}
        self.config['hooks']['startContainer'] = [{'path': '/bin/hook', 'args': ['hook']}]
        self.config['annotations'] = {'a': 'b'}
        self.sh('cat /tmp/hook')
        id_ = self.create()
        self.assertEqual(pathlib.Path(log).read_text().split(), kinds[:3])
        pid = self.state(id_)['pid']
        for kind in kinds[:3]:
            state = json.loads((self.dir / kind).read_text())
            self.assertEqual((state['status'], state['pid'], state['id'], state['annotations']),
                             ('creating', pid, id_, {'a': 'b'}))
        self.ok('start', id_)
        self.wait_status(id_, 'stopped')
        self.assertEqual(json.loads(self.output(id_))['status'], 'created')
        self.assertEqual(json.loads((self.dir / 'poststart').read_text())['status'], 'running')
        self.ok('delete', id_)
        self.assertEqual(json.loads((self.dir / 'poststop').read_text())['status'], 'stopped')
        self.assertEqual(pathlib.Path(log).read_text().split(), kinds)

    def test_failures(self):
        for kind in ('prestart', 'createRuntime', 'createContainer'):
            for script, more in (('echo oops >&2; exit 3', {}), ('sleep 2', {'timeout': 1})):
                with self.subTest(kind=kind, script=script):
                    self.config['hooks'] = {kind: [self.hook('x', script, **more)]}
                    self.write('true')
                    p = self.same_as_runc(causes=False)
                    self.assertEqual(p.returncode, 1)
                    self.assertIn('error running hook #0: ', p.stderr)
                    self.assertFalse(os.listdir(self.root))

    def test_poststart_failure_stops(self):
        self.config['hooks'] = {'poststart': [self.hook('x', 'exit 1')]}
        self.write('sleep', '100')
        self.assertEqual(self.run_container().returncode, 1)

    def test_poststop_failure_is_only_logged(self):
        self.config['hooks'] = {'poststop': [self.hook('x', 'exit 1')]}
        self.write('true')
        p = self.run_container()
        self.assertEqual(p.returncode, 0)
        self.assertIn('error running hook #0', p.stderr)


class Host(ocilib.OciTest):
    """What the container's processes look like from outside."""

    def test_confinement(self):
        self.sh('while :; do sleep 1; done')
        id_ = self.started()
        file = self.state_file(id_)
        sentry, gofer = file['sentry']['pid'], file['gofer']['pid']
        status = pathlib.Path(f'/proc/{sentry}/status').read_text()
        fields = dict(line.split(':\t', 1) for line in status.splitlines() if ':\t' in line)
        uid = 0x70000000 + sentry
        self.assertEqual(fields['Uid'].split(), [str(uid)] * 4)
        self.assertEqual(fields['Gid'].split(), [str(uid)] * 4)
        self.assertEqual(fields['Groups'].strip(), '')
        for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'):
            self.assertEqual(int(fields[name], 16), 0, name)
        self.assertEqual((fields['Seccomp'], fields['NoNewPrivs']), ('2', '1'))
        for ns in ('user', 'pid', 'mnt', 'ipc', 'uts', 'net', 'cgroup'):
            self.assertNotEqual(os.readlink(f'/proc/{sentry}/ns/{ns}'), os.readlink(f'/proc/self/ns/{ns}'), ns)
        for pid in (sentry, gofer):
            self.assertEqual(os.listdir(f'/proc/{pid}/root'), [])
            with self.assertRaises(OSError):
                os.mkdir(f'/proc/{pid}/root/x')
            self.assertEqual(os.readlink(f'/proc/{pid}/cwd') in ('/', '/fd', f'/{pid}/fd', f'/proc/{pid}/fd'), True)
        status = pathlib.Path(f'/proc/{gofer}/status').read_text()
        fields = dict(line.split(':\t', 1) for line in status.splitlines() if ':\t' in line)
        allowed = sum(1 << n for n in (0, 1, 2, 3, 4, 27, 31))
        self.assertEqual(int(fields['CapEff'], 16) & ~allowed, 0)
        self.assertEqual(int(fields['CapBnd'], 16), 0)
        self.assertEqual((fields['Seccomp'], fields['NoNewPrivs']), ('2', '1'))
        for guest in ocilib.descendants(sentry):
            try:
                status = pathlib.Path(f'/proc/{guest}/status').read_text()
            except OSError:
                continue  # it has ended since
            self.assertIn(f'Uid:\t{uid}\t', status)
            self.assertIn('CapEff:\t0000000000000000', status)
            self.assertIn('Seccomp:\t2', status)
        self.ok('delete', '--force', id_)

    def test_namespaces_by_path(self):
        holder = subprocess.Popen(['unshare', '--net', '--uts', '--ipc', 'sleep', '100'])
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        wait_until(lambda: os.readlink(f'/proc/{holder.pid}/ns/net') != os.readlink('/proc/self/ns/net'))
        for ns in self.config['linux']['namespaces']:
            name = {'network': 'net'}.get(ns['type'], ns['type'])
            if name in ('net', 'uts', 'ipc'):
                ns['path'] = f'/proc/{holder.pid}/ns/{name}'
        self.sh('sleep 100')
        id_ = self.create()
        pid = self.state(id_)['pid']
        for name in ('net', 'uts', 'ipc'):
            self.assertEqual(os.readlink(f'/proc/{pid}/ns/{name}'), os.readlink(f'/proc/{holder.pid}/ns/{name}'))
        self.ok('delete', id_)

    def test_cgroup(self):
        self.config['linux']['cgroupsPath'] = f'/ocitest-{os.getpid()}/below'
        self.config['linux']['resources'] = {
            'memory': {'limit': 64 << 20}, 'cpu': {'shares': 512, 'quota': 50000, 'period': 100000},
            'pids': {'limit': 100}}
        self.sh('sleep 100 & sleep 100')
        id_ = self.started()
        file = self.state_file(id_)
        dirs = dict(d.split(':', 1) for d in file['cgroups'])
        for path in dirs.values():
            self.assertTrue(path.endswith(f'/ocitest-{os.getpid()}/below'))
            self.addCleanup(lambda path=path: os.path.exists(os.path.dirname(path)) and
                            os.rmdir(os.path.dirname(path)))
        if 'memory' in dirs:
            self.assertEqual(int(pathlib.Path(dirs['memory'], 'memory.limit_in_bytes').read_text()), 64 << 20)

        def members():
            """The processes, when every hierarchy has the same: spare ones come and go."""
            seen = {frozenset(pathlib.Path(p, 'cgroup.procs').read_text().split()) for p in dirs.values()}
            return len(seen) == 1 and {int(pid) for pid in seen.pop()}

        found = wait_until(members, what='the same processes in every hierarchy')
        self.assertIn(file['gofer']['pid'], found)
        self.assertNotIn(file['sentry']['pid'], found)
        wait_until(lambda: set(ocilib.descendants(file['sentry']['pid'])) <= (members() or set()),
                   what='every guest process in the cgroup')
        self.ok('delete', '--force', id_)
        for path in dirs.values():
            self.assertFalse(os.path.exists(path))
            os.rmdir(os.path.dirname(path))

    def test_update(self):
        self.config['linux']['resources'] = {'memory': {'limit': 64 << 20}}
        self.sh('sleep 100')
        id_ = self.started()
        dirs = dict(d.split(':', 1) for d in self.state_file(id_)['cgroups'])
        v2 = '' in dirs

        def limit():
            if v2:
                return pathlib.Path(dirs[''], 'memory.max').read_text()
            return pathlib.Path(dirs['memory'], 'memory.limit_in_bytes').read_text()

        self.ok('update', '--memory', '96M', '--pids-limit', '50', id_)
        self.assertEqual(int(limit()), 96 << 20)
        (self.dir / 'res').write_text('{"memory": {"limit": %d}}' % (80 << 20))
        self.ok('update', '-r', self.dir / 'res', id_)
        self.assertEqual(int(limit()), 80 << 20)
        self.assertEqual(self.cloister('update', '--memory', 'lots', id_).returncode, 1)
        self.ok('delete', '--force', id_)

    def test_bad_limits_name_the_file(self):
        for resources, word in (({'cpu': {'cpus': '9999'}}, 'cpuset.cpus'),
                                ({'memory': {'limit': 4 << 20, 'swap': 1 << 20}}, 'memory')):
            self.config['linux']['resources'] = resources
            self.write('true')
            p = self.run_container()
            self.assertEqual(p.returncode, 1)
            self.assertIn(word, p.stderr)

    def test_fork_bomb(self):
        self.config['linux']['resources'] = {'pids': {'limit': 60}}
        self.sh('for i in $(seq 400); do sleep 60 & done; echo still here')
        p = self.run_container()
        self.assertIn('still here' if p.returncode == 0 else 'fork', p.stdout + p.stderr)


if __name__ == '__main__':
    ocilib.main()
