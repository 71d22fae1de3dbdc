# SPDX-License-Identifier: Apache-2.0
# Which files the lints look at, and how they report.
import os
import pathlib
import re
import subprocess
import sys

SOURCE = ('.c', '.h', '.S', '.inc')
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def tree_root():
    """The directory given on the command line, or the one that holds tests/lint."""
    if len(sys.argv) > 1:
        return pathlib.Path(sys.argv[1]).resolve()
    return pathlib.Path(__file__).resolve().parents[2]


def listed(root):
    """Paths of the tree's files relative to root: what git tracks or would, else all but builds."""
    try:
        out = subprocess.run(['git', '-C', root, 'ls-files', '-z', '-co', '--exclude-standard'],
                             check=True, capture_output=True).stdout.decode()
        names = [n for n in out.split('\0') if n]
        if names:
            return sorted(n for n in set(names) if (root / n).is_file())
    except (OSError, subprocess.CalledProcessError):
        pass
    names = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith(('.', 'build')) and f != '__pycache__']
        names += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return sorted(names)


def lines_of(root, name):
    """Lines of a text file; None for a binary one."""
    data = (root / name).read_bytes()
    if b'\0' in data:
        return None
    return data.decode(errors='replace').split('\n')


def includes(lines):
    """(line number, path, whether in quotes) of each #include."""
    for number, line in enumerate(lines, 1):
        m = INCLUDE.match(line)
        if m:
            yield number, m.group(1) or m.group(2), m.group(1) is not None


def finish(problems, files):
    """Prints what was found. Return: the exit status."""
    for name, number, text in sorted(problems):
        print(f'{name}:{number}: {text}')
    print(f'{files} files, {len(problems)} problems')
    return 1 if problems else 0
