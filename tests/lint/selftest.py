#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Breaks each rule of the lints once in a small tree and expects to be told.
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SPDX = '/* SPDX-License-Identifier: Apache-2.0 */\n'
HEAD = SPDX + '/* Something of use. */\n'
MARK = 'TO' + 'DO'

# file, its contents, lint, the message expected at its start (None: nothing to complain about)
CASES = [
    ('netstack/a.c', HEAD + '#include "oci/json.h"\n', 'layers',
     'netstack/a.c:3: netstack/ may not include oci/json.h'),
    ('platform/base/a.c', HEAD + '#include "platform/platform.h"\n', 'layers',
     'platform/base/a.c:3: platform/base/ may not include platform/platform.h'),
    ('sentry/vfs/a.c', HEAD + '#include "sentry/kernel/task.h"\n', 'layers',
     'sentry/vfs/a.c:3: sentry/vfs may not include sentry/kernel/task.h'),
    ('sentry/kernel/a.c', HEAD + '#include "sentry/vfs/file.h"\n', 'layers', None),
    ('sentry/kernel/a.c', HEAD + '#include "netstack/netstack.h"\n', 'layers',
     'sentry/kernel/a.c:3: sentry/ may not include netstack/netstack.h'),
    ('sentry/socket/a.c', HEAD + '#include "netstack/netstack.h"\n', 'layers', None),
    ('sentry/fs/gofer/a.c', HEAD + '#include "gofer/proto/wire.h"\n', 'layers', None),
    ('sentry/fs/a.c', HEAD + '#include "gofer/proto/wire.h"\n', 'layers',
     'sentry/fs/a.c:3: sentry/ may not include gofer/proto/wire.h'),
    ('sentry/odd/a.c', HEAD + '#include "sentry/abi/x.h"\n', 'layers',
     'sentry/odd/a.c:3: sentry/odd has no place'),
    ('runtime/cmd_run.c', HEAD + '#include "sentry/sentry.h"\n', 'layers',
     'runtime/cmd_run.c:3: runtime/ may not include sentry/sentry.h'),
    ('runtime/boot/boot.c', HEAD + '#include "sentry/sentry.h"\n', 'layers', None),
    ('runtime/sandbox.c', HEAD + '#include "gofer/server/srv_main.h"\n', 'layers',
     'runtime/sandbox.c:3: runtime/ may not include gofer/server/srv_main.h'),
    ('runtime/main.c', HEAD + '#include "gofer/server/srv_main.h"\n', 'layers', None),
    ('gofer/server/a.c', HEAD + '#include "runtime/privs.h"\n', 'layers',
     'gofer/server/a.c:3: gofer/server/ may not include runtime/privs.h'),
    ('oci/a.c', HEAD + '#include "../platform/base/buf.h"\n', 'layers',
     'oci/a.c:3: "../platform/base/buf.h": include relative to the root'),
    ('lib/a.c', HEAD, 'layers', 'lib/a.c:1: source file in no known part of the tree'),
    ('tests/unit/a.c', HEAD + '#include "runtime/privs.h"\n', 'layers', None),
    ('oci/a.c', '/* Something. */\n', 'tree', 'oci/a.c:1: expected "SPDX'),
    ('oci/a.c', SPDX + '#include <stdio.h>\n', 'tree', 'oci/a.c:2: expected a comment'),
    ('oci/a.h', HEAD + '#include <stdio.h>\n', 'tree', 'oci/a.h:1: a header starts with #pragma once'),
    ('oci/a.c', HEAD + '#include <yajl/yajl_parse.h>\n', 'tree',
     'oci/a.c:3: <yajl/yajl_parse.h> is only for oci/json.c'),
    ('oci/a.c', HEAD + '#include <curl/curl.h>\n', 'tree', 'oci/a.c:3: <curl/curl.h> is neither'),
    ('oci/a.c', HEAD + '\n' * 800, 'tree', 'oci/a.c:802: longer than 800 lines'),
    ('oci/a.c', HEAD + f'/* {MARK}: later */\n', 'tree', f'oci/a.c:3: {MARK}: finish it'),
    ('oci/a.c', HEAD + '/* see /var' + '/cache/thing */\n', 'tree', 'oci/a.c:3: path of one machine'),
    ('scripts/a', '#!/bin/sh\necho hi\n', 'tree', 'scripts/a:2: expected "SPDX'),
    ('scripts/a', '#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n# Says hi to all.\n', 'tree', None),
    ('gofer/json.c', HEAD, 'tree', 'oci/json.c:1: same stem as gofer/json.c'),
    ('oci/own.c', HEAD + '#include <stdio.h>\n#include "oci/own.h"\n', 'tree',
     'oci/own.c:3: own header "oci/own.h" comes first'),
]


def run(lint, root):
    return subprocess.run([sys.executable, HERE / f'{lint}.py', root], capture_output=True, text=True)


def check(name, text, lint, want):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        tree = {'oci/json.c': HEAD, 'oci/own.h': HEAD + '#pragma once\n', name: text}
        for path, contents in tree.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(contents)
        got = run(lint, root)
        lines = got.stdout.splitlines()[:-1]
        right = not lines and got.returncode == 0 if want is None else (
            got.returncode == 1 and any(line.startswith(want) for line in lines))
        if not right:
            print(f'{lint} on {name}: wanted {want!r}, got {lines} {got.stderr}')
        return right


if __name__ == '__main__':
    sys.exit(0 if all([check(*case) for case in CASES]) else 1)
