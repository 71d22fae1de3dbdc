#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Containers while their processes are killed, frozen and stopped from outside at random moments, and what is left
# of much work.
import os
import pathlib
import random
import signal
import subprocess
import time

import ocilib

ROUNDS = int(os.environ.get('STORM_ROUNDS', '100'))
SEED = int(os.environ.get('STORM_SEED', str(os.getpid())))

# Checks itself: ends with 0 and the words "all well", or says what went wrong.
WORK = '''
fail() { echo "wrong: $*"; exit 1; }
i=0
while [ $i -lt %d ]; do
    [ "$(echo $i | cat | cat)" = $i ] || fail pipe $i
    ( exit 7 ); [ $? = 7 ] || fail status $i
    echo $i > /tmp/f$i; [ "$(cat /tmp/f$i)" = $i ] || fail file $i; rm /tmp/f$i
    sleep 0.001 & wait $! || fail wait $i
    (trap 'exit 3' TERM; kill -TERM $(sh -c 'echo $PPID'); sleep 5; exit 4); [ $? = 3 ] || fail signal $i
    [ $(seq 100 | wc -l) = 100 ] || fail seq $i
    i=$((i + 1))
done
echo all well
'''


class Storm(ocilib.OciTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        print(f'\nseed {SEED}', end=' ', flush=True)

    def sentry(self, id_):
        return self.state_file(id_)['sentry']['pid']

    def guests(self, id_):
        return ocilib.descendants(self.sentry(id_))

    @staticmethod
    def children(pid):
        try:
            return [int(c) for c in pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()]
        except OSError:
            return []

    def freezer(self, id_):
        """Function that freezes (True) or thaws the guests' cgroup."""
        for line in pathlib.Path(f'/proc/{self.guests(id_)[0]}/cgroup').read_text().splitlines():
            number, controllers, path = line.split(':', 2)
            v1 = pathlib.Path('/sys/fs/cgroup/freezer' + path, 'freezer.state')
            v2 = pathlib.Path('/sys/fs/cgroup' + path, 'cgroup.freeze')
            if controllers == 'freezer' and v1.exists() and path != '/':
                return lambda on: v1.write_text('FROZEN' if on else 'THAWED')
            if number == '0' and v2.exists():
                return lambda on: v2.write_text('1' if on else '0')
        self.skipTest('no freezer')

    def finished(self, id_, seconds=120):
        ocilib.wait_until(lambda: self.status(id_) == 'stopped', seconds, 'the end of the container')
        return self.output(id_)

    def test_random_kills(self):
        self.sh(WORK % 1000)
        for n in range(ROUNDS):
            id_ = self.new_id()
            p = subprocess.Popen([ocilib.CLOISTER, '--root', self.root, 'run', '--bundle', self.bundle, id_],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(self.random.random() * 0.15)
            own = [p.pid] + self.children(p.pid)
            victim = self.random.choice([p.pid] + ocilib.descendants(p.pid))
            ocilib.kill_hard(victim)
            ended = False
            for _ in range(100):
                # A shell goes on without one of its children; what is not in place yet can't be killed yet.
                if victim not in own:
                    self.cloister('kill', id_, 'KILL')
                try:
                    _, err = p.communicate(timeout=0.2)
                    ended = True
                    break
                except subprocess.TimeoutExpired:
                    pass
            self.assertTrue(ended, f'round {n}: the container lives on after the death of {victim} of {own}')
            if p.returncode not in (0, -9, 137):
                self.assertTrue(err.strip(), f'round {n}: status {p.returncode}, and no reason given; {victim} of {own} was killed')
            self.cloister('delete', '--force', id_)
            self.assertFalse((self.root / id_).exists(), f'round {n}')
            if n % 10 == 9:
                ocilib.wait_until(lambda: not self.leaks.left(), 10, 'an end without leftovers')

    def test_freeze_and_thaw(self):
        self.sh(WORK % 60)
        for _ in range(3):
            id_ = self.started()
            freeze = self.freezer(id_)
            end = time.monotonic() + 60
            while self.status(id_) in ('running', 'paused') and time.monotonic() < end:
                try:
                    freeze(True)
                    time.sleep(self.random.random() * 0.01)
                    freeze(False)
                except OSError:
                    break
                time.sleep(self.random.random() * 0.02)
            self.assertIn('all well', self.finished(id_))
            self.ok('delete', id_)

    def test_pause_and_resume(self):
        self.sh(WORK % 40)
        id_ = self.started()
        while self.status(id_) != 'stopped':
            self.cloister('pause', id_)
            time.sleep(self.random.random() * 0.05)
            self.cloister('resume', id_)
            time.sleep(self.random.random() * 0.05)
        self.assertIn('all well', self.finished(id_))

    def test_stops_from_outside(self):
        self.sh(WORK % 60)
        id_ = self.started()
        while self.status(id_) == 'running':
            for pid in self.guests(id_):
                try:
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(self.random.random() * 0.005)
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
        self.assertIn('all well', self.finished(id_))

    def test_stray_signals_from_outside(self):
        """The kick signal, and those that a stub handles as faults of its own."""
        self.sh(WORK % 60)
        id_ = self.started()
        while self.status(id_) == 'running':
            for pid in self.guests(id_):
                try:
                    os.kill(pid, signal.SIGUSR1)
                except ProcessLookupError:
                    pass
        self.assertIn('all well', self.finished(id_))

    def test_zygote_killed(self):
        self.sh('while :; do echo; sleep 1; done')
        id_ = self.started()
        zygote = min(self.guests(id_))
        ocilib.kill_hard(zygote)
        ocilib.wait_until(lambda: self.status(id_) == 'stopped', 10, 'the end of the container')
        self.ok('delete', id_)

    def resources(self, id_):
        state = self.state_file(id_)
        found = {}
        for name in ('sentry', 'gofer'):
            pid = state[name]['pid'] if isinstance(state.get(name), dict) else None
            if not pid:
                continue
            status = pathlib.Path(f'/proc/{pid}/status').read_text()
            found[name] = (len(os.listdir(f'/proc/{pid}/fd')),
                           int(status.split('VmRSS:')[1].split()[0]),
                           len(pathlib.Path(f'/proc/{pid}/maps').read_text().splitlines()))
        return found

    def leaks_after(self, script):
        """Runs script twice between marks; what the first round has warmed up may stay, the second must add nothing."""
        self.sh(f'echo ready; read x; {script}; echo once; read x; {script}; echo twice; read x; echo end')
        id_ = self.new_id()
        p = subprocess.Popen([ocilib.CLOISTER, '--root', self.root, 'run', '--bundle', self.bundle, id_],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        marks = []
        for word in ('ready', 'once', 'twice'):
            self.assertEqual(p.stdout.readline().strip(), word)
            time.sleep(0.3)
            marks.append(self.resources(id_))
            p.stdin.write('\n')
            p.stdin.flush()
        self.assertEqual(p.stdout.readline().strip(), 'end')
        self.assertEqual(p.wait(timeout=20), 0)
        p.stdin.close()
        p.stdout.close()
        print(marks, end=' ')
        for name in marks[0]:
            fds, rss, maps = zip(*(m[name] for m in marks))
            self.assertLessEqual(fds[2], fds[1] + 3, f'{name}: descriptors {fds}')
            self.assertLessEqual(maps[2], maps[1] + 20, f'{name}: mappings {maps}')
            self.assertLessEqual(rss[2], rss[1] + 2048, f'{name}: KiB of memory {rss}')

    def test_nothing_left_of_forks(self):
        self.leaks_after('i=0; while [ $i -lt 5000 ]; do (:); i=$((i + 1)); done')

    def test_nothing_left_of_execs(self):
        self.leaks_after('i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i + 1)); done')

    def test_nothing_left_of_opens(self):
        self.leaks_after('i=0; while [ $i -lt 50000 ]; do : < /etc/passwd; i=$((i + 1)); done')

    def test_nothing_left_of_files(self):
        self.leaks_after('i=0; while [ $i -lt 2000 ]; do echo x > /tmp/f; echo y >> /tmp/f; rm /tmp/f; i=$((i + 1)); done')

    def test_nothing_left_of_pipes(self):
        self.leaks_after('i=0; while [ $i -lt 500 ]; do echo x | cat | cat >/dev/null; i=$((i + 1)); done')


if __name__ == '__main__':
    ocilib.main()
