#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Checks what every file of the tree has to have, and what none may have.
import collections
import posixpath
import re
import sys

import files

LINES_MAX = 800
SPDX = 'SPDX-License-Identifier: Apache-2.0'

# Third-party headers and the only file or folder that may include them.
ONLY_USER = {
    'seccomp.h': 'platform/common/',
    'yajl/': 'oci/json.c',
    'cap-ng.h': 'runtime/privs.c',
    'criterion/': 'tests/unit/',
    'netlink/': 'runtime/net_link.c',
    'libmnl/': 'runtime/net_nft.c',
    'sanitizer/': 'sentry/core/fiber.c',
}
# The C library and the kernel's interface.
SYSTEM_FOLDERS = ('sys/', 'linux/', 'asm/', 'asm-generic/', 'net/', 'netinet/', 'netpacket/', 'arpa/',
                  'bits/')
SYSTEM = set('''assert complex cpuid ctype dirent dlfcn elf emmintrin endian err errno error execinfo fcntl features
    fenv float fnmatch fts ftw getopt glob grp ifaddrs immintrin inttypes iso646 langinfo libgen limits
    link locale malloc math mntent mqueue netdb paths poll pthread pty pwd regex resolv sched search
    semaphore setjmp sgtty signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib
    stdnoreturn string strings sysexits syslog tar termios threads time uchar ucontext ulimit unistd utime
    utmp utmpx wchar wctype wordexp x86intrin xmmintrin'''.split())

MARKS = re.compile(r'\b(' + '|'.join(('TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X')) + r')\b')
# Top folders that exist on every machine, so that a path below them says nothing by itself.
EVERYWHERE = {'bin', 'boot', 'dev', 'etc', 'home', 'lib', 'lib64', 'media', 'mnt', 'opt', 'proc', 'root',
              'run', 'sbin', 'srv', 'sys', 'tmp', 'usr', 'var'}


def machine_paths(root):
    """Matches paths that exist only where this tree is checked out or was worked on."""
    wanted = [re.escape(str(root)) + r'\b', r'/var/cache/(?!cloister\b|apt\b)\w+', r'/home/(?!user\b)\w+/\w']
    if root.parts[1] not in EVERYWHERE:
        wanted.append(r'(?<![\w.$}/-])/' + re.escape(root.parts[1]) + r'/\w')
    return re.compile('|'.join(wanted))


def check_head(name, lines, report):
    """License, then a sentence of purpose."""
    at = 1 if lines[0].startswith('#!') else 0
    if at >= len(lines) or SPDX not in lines[at]:
        report(at + 1, f'expected "{SPDX}"')
        return
    purpose = lines[at + 1] if at + 1 < len(lines) else ''
    sign = '/*' if name.endswith(files.SOURCE + ('.lds',)) else ('#', '"""')
    if not purpose.startswith(sign) or len(purpose.split()) < 3:
        report(at + 2, 'expected a comment that says what the file is for')


def check_includes(name, lines, known, report):
    if name.endswith('.h'):
        first = next((l for l in lines if l.startswith('#')), '')
        if first.strip() != '#pragma once':
            report(1, 'a header starts with #pragma once')
    found = list(files.includes(lines))
    own = name[:-2] + '.h'
    if name.endswith('.c') and not name.startswith('tests/') and found:
        number, target, quoted = found[0]
        if own in known and target != own:
            report(number, f'own header "{own}" comes first')
        elif own not in known and not quoted and any(q for _, _, q in found) and name != 'runtime/main.c':
            report(number, 'the header that declares what is here comes first')
    for number, target, quoted in found:
        if not quoted:
            check_system(name, number, target, report)


def check_system(name, number, target, report):
    for header, user in ONLY_USER.items():
        if target == header or (header.endswith('/') and target.startswith(header)):
            if name != user and not (user.endswith('/') and name.startswith(user)):
                report(number, f'<{target}> is only for {user}')
            return
    if not target.startswith(SYSTEM_FOLDERS) and target.removesuffix('.h') not in SYSTEM:
        report(number, f'<{target}> is neither of the C library nor listed in tests/lint/tree.py')


def check_stems(names, problems):
    """One place a stem: its header lies beside the source or in a folder above it."""
    stems = collections.defaultdict(list)
    for name in names:
        if name.endswith(('.c', '.h', '.S')) and not name.startswith('tests/'):
            stems[posixpath.splitext(posixpath.basename(name))[0]].append(name)
    for group in stems.values():
        group.sort(key=lambda n: (not n.endswith('.h'), n))
        for i, name in enumerate(group[1:], 1):
            first = group[0]
            pair = i == 1 and first.endswith('.h') and not name.endswith('.h')
            if not pair or not name.startswith(posixpath.dirname(first) + '/'):
                problems.append((name, 1, f'same stem as {first}'))


def main():
    root = files.tree_root()
    names = files.listed(root)
    known = set(names)
    machine = machine_paths(root)
    problems = []
    for name in names:
        lines = files.lines_of(root, name)
        if lines is None:
            continue

        def report(number, text):
            problems.append((name, number, text))

        script = lines[0].startswith('#!')
        if name.endswith(files.SOURCE + ('.lds', '.py', '.sh')) or script:
            check_head(name, lines, report)
            if len(lines) - 1 > LINES_MAX:
                report(len(lines) - 1, f'longer than {LINES_MAX} lines')
        if name.endswith(('.c', '.h')):
            check_includes(name, lines, known, report)
        if name == 'LICENSE':
            continue
        for number, line in enumerate(lines, 1):
            mark = MARKS.search(line)
            if mark:
                report(number, f'{mark.group(0)}: finish it or file an issue')
            path = machine.search(line)
            if path:
                report(number, f'path of one machine: {path.group(0)}')
    check_stems(names, problems)
    return files.finish(problems, len(names))


if __name__ == '__main__':
    sys.exit(main())
