#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# kill -9 of anything at any moment: the container ends as stopped, delete succeeds, nothing is left.
import json
import os
import random
import subprocess
import time

import ocilib
from ocilib import CLOISTER, kill_hard, wait_until

ROUNDS = int(os.environ.get('OCITEST_KILLS', '100'))
WORK = 'while :; do for i in 1 2 3; do true & done; echo x > /tmp/f; cat /tmp/f | wc -c; wait; done'


class Kill(ocilib.OciTest):
    def setUp(self):
        super().setUp()
        self.random = random.Random(os.environ.get('OCITEST_SEED', '7'))
        self.sh(WORK)

    def start_command(self, *args):
        return subprocess.Popen([CLOISTER, '--root', self.root, *map(str, args)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def check_over(self, id_):
        """The container is stopped or gone; afterwards it is gone."""
        def over():
            p = self.cloister('state', id_)
            return p.returncode or json.loads(p.stdout)['status'] == 'stopped'

        wait_until(over, what='the end of the container')
        p = self.cloister('delete', id_)
        self.assertTrue(p.returncode == 0 or 'does not exist' in p.stderr, p.stderr)
        self.assertNotIn(id_, os.listdir(self.root) if self.root.exists() else [])
        left = []
        for _ in range(500):
            left = self.leaks.left()
            if not left:
                return
            time.sleep(0.01)
        self.fail(f'left behind: {left}')

    def test_run_killed(self):
        """The foreground command dies at a random moment of its life."""
        for _ in range(ROUNDS):
            id_ = self.new_id()
            command = self.start_command('run', '--bundle', self.bundle, id_)
            time.sleep(self.random.uniform(0, 0.08))
            command.kill()
            command.wait()
            self.check_over(id_)

    def test_create_killed(self):
        """create dies: either the container was made, or nothing of it stays."""
        for _ in range(ROUNDS):
            id_ = self.new_id()
            command = self.start_command('create', '--bundle', self.bundle, id_)
            time.sleep(self.random.uniform(0, 0.05))
            command.kill()
            command.wait()
            p = self.cloister('state', id_)
            if p.returncode == 0 and json.loads(p.stdout)['status'] == 'created':
                self.ok('delete', '--force', id_)
            self.check_over(id_)

    def test_delete_killed(self):
        """delete dies: the next one finishes."""
        for _ in range(max(ROUNDS // 5, 1)):
            id_ = self.create()
            self.ok('start', id_)
            command = self.start_command('delete', '--force', id_)
            time.sleep(self.random.uniform(0, 0.03))
            command.kill()
            command.wait()
            p = self.cloister('delete', '--force', id_)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.check_over(id_)

    def victims(self, id_):
        file = self.state_file(id_)
        sentry = file['sentry']['pid']
        return {'sentry': [sentry], 'gofer': [file['gofer']['pid']],
                'guest or zygote': ocilib.descendants(sentry)}

    def kill_one(self, kind):
        for _ in range(ROUNDS):
            id_ = self.started()
            time.sleep(self.random.uniform(0, 0.05))
            pids = self.victims(id_)[kind]
            if pids:
                kill_hard(self.random.choice(pids))
            if kind == 'guest or zygote':
                # One process less need not end the container.
                p = self.cloister('delete', '--force', id_)
                self.assertEqual(p.returncode, 0, p.stderr)
            self.check_over(id_)

    def test_sentry_killed(self):
        self.kill_one('sentry')

    def test_gofer_killed(self):
        self.kill_one('gofer')

    def test_guests_killed(self):
        self.kill_one('guest or zygote')

    def test_killed_pid_is_the_status(self):
        """A SIGKILL to the container's pid ends it for the caller of run."""
        id_ = self.new_id()
        command = self.start_command('run', '--bundle', self.bundle, id_)
        wait_until(lambda: self.cloister('state', id_).returncode == 0 and self.status(id_) == 'running')
        kill_hard(self.state(id_)['pid'])
        self.assertEqual(command.wait(20), 137)
        self.check_over(id_)

    def test_leftover_directory(self):
        """A state directory without a state can be used again, and deleted."""
        (self.root / 'half').mkdir(parents=True)
        self.assertIn('does not exist', self.cloister('state', 'half').stderr)
        self.ok('delete', '--force', 'half')
        (self.root / 'half').mkdir(parents=True)
        self.write('true')
        self.ok('run', '--bundle', self.bundle, 'half')


if __name__ == '__main__':
    ocilib.main()
