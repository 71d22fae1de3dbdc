#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Runs a Criterion test and fails on any sanitizer report: Criterion itself ignores leaks, because
# its workers end before LeakSanitizer's verdict counts.
import os
import pathlib
import subprocess
import sys
import tempfile


def main():
    with tempfile.TemporaryDirectory() as logs:
        env = dict(os.environ)
        for name in ('ASAN_OPTIONS', 'UBSAN_OPTIONS'):
            env[name] = f'{env.get(name, "")}:log_path={logs}/{name}:print_stacktrace=1'.lstrip(':')
        status = subprocess.run(sys.argv[1:], env=env).returncode
        reports = [p.read_text(errors='replace') for p in sorted(pathlib.Path(logs).iterdir())]
        for report in reports:
            print(report, file=sys.stderr)
        return status or (1 if reports else 0)


if __name__ == '__main__':
    sys.exit(main())
