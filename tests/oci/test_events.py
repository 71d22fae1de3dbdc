#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# events: the container's counters, beside runc's.
import json
import subprocess

import ocilib


class Events(ocilib.OciTest):
    def start_runc(self):
        id_ = self.new_id()
        with open(self.dir / 'runc.out', 'w') as out:
            subprocess.run([ocilib.RUNC, '--root', self.dir / 'runc', 'run', '-d', '--bundle', self.bundle, id_],
                           stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=ocilib.TIMEOUT, check=True)
        return id_

    def test_stats(self):
        self.config['linux']['resources'] = {'memory': {'limit': 96 << 20}, 'pids': {'limit': 100}}
        self.sh('dd if=/dev/zero of=/data bs=64k count=16 2>/dev/null; echo done; exec sleep 1000')
        id_ = self.started('--overlay-size=4M')
        ocilib.wait_until(lambda: 'done' in self.output(id_), what='the file')
        line = self.ok('events', '--stats', id_).stdout
        self.assertEqual(line.count('\n'), 1)
        event = json.loads(line)
        self.assertEqual((event['type'], event['id']), ('stats', id_))
        data = event['data']
        self.assertEqual(data['memory']['usage']['limit'], 96 << 20)
        self.assertGreater(data['memory']['usage']['usage'], 0)
        self.assertGreater(data['cpu']['usage']['total'], 1000000)
        self.assertGreater(data['pids']['current'], 1)
        self.assertGreater(len(data['memory']['raw']), 10)
        self.assertEqual(data['layer']['limit'], 4 << 20)
        self.assertGreaterEqual(data['layer']['usage'], 1 << 20)
        self.assertLess(data['layer']['usage'], 1 << 20 | 1 << 17)
        # What is removed inside is given back outside.
        self.ok('exec', id_, 'rm', '/data')
        self.assertLess(json.loads(self.ok('events', '--stats', id_).stdout)['data']['layer']['usage'], 1 << 17)
        if ocilib.RUNC:
            other = self.start_runc()
            theirs = json.loads(self.ok('events', '--stats', other, runtime=ocilib.RUNC).stdout)['data']
            self.ok('delete', '--force', other, runtime=ocilib.RUNC)
            for kind in ('cpu', 'memory', 'pids'):
                self.assertLessEqual(set(data[kind]), set(theirs[kind]))
            self.assertLessEqual(set(data['memory']['usage']), set(theirs['memory']['usage']))
            self.assertEqual(data['memory']['usage']['limit'], theirs['memory']['usage']['limit'])
        self.ok('delete', '--force', '--layer', id_)

    def test_until_the_end(self):
        """A line each interval, one for each process that the host kills, and an end with the container."""
        self.config['linux']['resources'] = {'memory': {'limit': 48 << 20}}
        self.sh('sleep 0.3; (x=$(yes | head -c 200000000); echo more); sleep 1.5')
        id_ = self.create('--overlay=none')
        with subprocess.Popen([ocilib.CLOISTER, '--root', self.root, 'events', '--interval', '200ms', id_], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            self.ok('start', id_)
            out, err = p.communicate(timeout=ocilib.TIMEOUT)
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual((p.returncode, err), (0, ''))
        self.assertGreater(sum(e['type'] == 'stats' for e in events), 3)
        self.assertNotIn('more', self.output(id_))
        self.assertEqual([e for e in events if e['type'] == 'oom'], [{'type': 'oom', 'id': id_}])

    def test_refused(self):
        self.write('true')
        id_ = self.create()
        for interval in ('0s', '5', '-1s', 'x', '1000h', '18446744073709551616s'):
            p = self.cloister('events', f'--interval={interval}', id_)
            self.assertEqual(p.returncode, 1)
            self.assertIn('--interval', p.stderr)
        self.ok('start', id_)
        self.wait_status(id_, 'stopped')
        self.assertIn('is not running', self.cloister('events', '--stats', id_).stderr)
        self.ok('delete', id_)
        self.assertIn('does not exist', self.cloister('events', '--stats', id_).stderr)


if __name__ == '__main__':
    ocilib.main()
