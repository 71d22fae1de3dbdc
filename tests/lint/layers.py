#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Checks who includes whom. A header of a higher layer may only be forward-declared.
import posixpath
import sys

import files

# What each part may include besides itself. A part is the longest of these prefixes of a path.
MAY_INCLUDE = {
    'platform/base/': (),
    'platform/platform.h': ('platform/base/', 'platform/regs.h'),
    'platform/regs.h': ('platform/base/',),
    'platform/common/': ('platform/base/', 'platform/platform.h', 'platform/regs.h'),
    'platform/seccomp/': ('platform/base/', 'platform/platform.h', 'platform/regs.h',
                          'platform/common/'),
    'platform/ptrace/': ('platform/base/', 'platform/platform.h', 'platform/regs.h',
                         'platform/common/'),
    'netstack/': ('platform/base/',),
    'oci/': ('platform/base/',),
    'gofer/proto/': ('platform/base/',),
    'gofer/server/': ('platform/base/', 'platform/common/', 'gofer/proto/'),
    'sentry/': ('platform/base/', 'platform/platform.h', 'platform/regs.h'),
    'sentry/socket/': ('sentry/', 'platform/base/', 'platform/platform.h', 'platform/regs.h',
                       'netstack/'),
    'sentry/fs/gofer/': ('sentry/', 'platform/base/', 'platform/platform.h', 'platform/regs.h',
                         'gofer/proto/'),
    'runtime/': ('oci/', 'platform/base/', 'platform/common/', 'runtime/boot/', 'gofer/proto/'),
    'runtime/main.c': ('runtime/', 'runtime/boot/', 'oci/', 'platform/base/', 'platform/common/',
                       'gofer/server/'),
    'runtime/boot/': ('runtime/', 'oci/', 'sentry/', 'netstack/', 'platform/base/',
                      'platform/common/', 'platform/platform.h', 'platform/regs.h',
                      'platform/seccomp/', 'platform/ptrace/', 'gofer/proto/'),
    'tests/': ('',),
}

# Inside sentry a file includes its own layer and those before it. What lies in sentry/ itself is last.
SENTRY_ORDER = ('abi', 'core', 'mm', 'vfs', 'ipc', 'kernel', 'socket', 'fs', 'syscalls')


# Exceptions by name. An address space holds references of the files that are mapped in it, while what vfs takes from mm
# (copies to and from guests) lies in other files.
SENTRY_EXCEPTIONS = {
    'sentry/mm/filemap.h': 'sentry/vfs/',
    'sentry/mm/mm.c': 'sentry/vfs/',
}


def part_of(path):
    fits = [p for p in MAY_INCLUDE if path.startswith(p)]
    return max(fits, key=len) if fits else None


def sentry_rank(path):
    folders = path.split('/')[1:-1]
    if not folders:
        return len(SENTRY_ORDER)
    return SENTRY_ORDER.index(folders[0]) if folders[0] in SENTRY_ORDER else None


def check_sentry(name, target):
    """Return: what is wrong with one sentry file including another, or None."""
    mine, theirs = sentry_rank(name), sentry_rank(target)
    for path, rank in ((name, mine), (target, theirs)):
        if rank is None:
            return f'{posixpath.dirname(path)} has no place in the order of sentry\'s layers'
    if theirs > mine and not target.startswith(SENTRY_EXCEPTIONS.get(name, '/')):
        layer = SENTRY_ORDER[mine]
        return f'sentry/{layer} may not include {target}: a higher layer (forward-declare instead)'
    return None


def check_include(name, target):
    mine, theirs = part_of(name), part_of(target)
    if theirs is None:
        return f'"{target}" is in no known part of the tree (includes are relative to its root)'
    if name.startswith('sentry/') and target.startswith('sentry/'):
        return check_sentry(name, target)
    if mine == theirs or mine == 'tests/':
        return None
    if any(theirs.startswith(p) if p.endswith('/') else theirs == p for p in MAY_INCLUDE[mine]):
        return None
    return f'{mine} may not include {target}'


def main():
    root = files.tree_root()
    names = [n for n in files.listed(root) if n.endswith(files.SOURCE)]
    known = set(names)
    problems = []
    for name in names:
        if part_of(name) is None:
            problems.append((name, 1, 'source file in no known part of the tree'))
            continue
        for number, target, quoted in files.includes(files.lines_of(root, name) or []):
            if not quoted:
                continue
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            if '..' in target.split('/') or (target not in known and beside in known):
                problems.append((name, number, f'"{target}": include relative to the root'))
            elif target in known or '/' in target:
                wrong = check_include(name, target)
                if wrong:
                    problems.append((name, number, wrong))
            # What is left is generated into the build directory: it belongs to the part that builds it.
    return files.finish(problems, len(names))


if __name__ == '__main__':
    sys.exit(main())
