#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the dispatcher's table, prototypes, the stub's marshalling table and docs/syscalls.md from syscalls.tbl."""
import os
import re
import sys

C_TYPES = {
    'i32': 'int32_t', 'u32': 'uint32_t', 'i64': 'int64_t', 'u64': 'uint64_t', 'fd': 'int32_t',
    'mode': 'int32_t', 'pid': 'int32_t', 'sig': 'int32_t', 'oflags': 'int32_t', 'dirfd': 'int32_t',
    'size': 'uint64_t', 'addr': 'uaddr_t',
}
LEVELS = ('full', 'partial', 'absent')
MARSHAL_MAX = 4
ERRNOS = ('ENOSYS', 'EPERM', 'EINVAL', 'EOPNOTSUPP')


class Arg:
    """One argument: kind is 'value' or the way of a memory argument."""

    def __init__(self, text):
        self.name, _, spec = text.partition(':')
        spec, _, self.fmt = spec.partition('/')
        self.kind, self.n, self.len_name = 'value', 0, None
        if spec in C_TYPES:
            self.c = C_TYPES[spec]
            self.fmt = self.fmt or spec
            return
        self.c = 'uaddr_t'
        way, _, what = spec.partition(':')
        if way not in ('in', 'out', 'inout'):
            raise ValueError(f'unknown type {spec}')
        m = re.fullmatch(r'(bytes|iovec)\[(\w+)(?:\*(\d+))?\]', what)
        if what == 'str' and way == 'in':
            self.kind = 'str'
        elif what.isdigit():
            self.kind, self.n = way, int(what)
        elif m:
            self.kind = way + '_' + m[1]
            self.len_name, self.n = m[2], int(m[3] or 1)
        else:
            raise ValueError(f'unknown memory type {what}')
        self.fmt = self.fmt or (self.kind if self.kind == 'str' else 'data')


class Row:
    def __init__(self, line):
        body, _, self.note = line.partition(' ; ')
        cols = body.split()
        self.nr, self.name, self.file, self.level = int(cols[0]), cols[1], cols[2], cols[3]
        self.args = [Arg(a) for a in cols[4:]]
        self.note = self.note.strip()
        m = re.search(r'errno=(\w+)', self.note)
        self.errno = m[1] if m else 'ENOSYS'
        if self.level not in LEVELS or len(self.args) > 6 or self.errno not in ERRNOS:
            raise ValueError('bad level, errno or too many arguments')
        if (self.level == 'absent') != (self.file == '-'):
            raise ValueError('absent rows, and only they, have the file "-"')
        names = [a.name for a in self.args]
        for a in self.args:
            a.len_arg = names.index(a.len_name) if a.len_name else 0
        if len(set(names)) != len(names):
            raise ValueError('an argument name occurs twice')

    @property
    def marshal(self):
        return [(i, a) for i, a in enumerate(self.args) if a.kind != 'value'][:MARSHAL_MAX]


def read_table(path):
    rows = []
    with open(path, encoding='utf-8') as f:
        for n, line in enumerate(f, 1):
            if not line.strip() or line.startswith('#'):
                continue
            try:
                rows.append(Row(line.rstrip('\n')))
            except (ValueError, IndexError) as e:
                sys.exit(f'{path}:{n}: {e}')
    numbers = [r.nr for r in rows]
    if numbers != sorted(set(numbers)):
        sys.exit(f'{path}: rows are out of order')
    return rows


HEAD = '/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by sentry/syscalls/gen.py from syscalls.tbl. */\n'


def gen_h(rows):
    out = [HEAD + '#pragma once\n\n#include <stdint.h>\n\n#include "sentry/abi/uaddr.h"\n\nstruct task;\n']
    out.append('enum {\n    SYSCALLS_LEN = %d,\n' % (rows[-1].nr + 1))
    out += ['    SYS_NR_%s = %d,\n' % (r.name, r.nr) for r in rows]
    out.append('};\n\n/* How strace shows an argument. */\nenum syscall_fmt {\n')
    out += ['    FMT_%s,\n' % f for f in sorted({a.fmt for r in rows for a in r.args})]
    out.append('};\n\n')
    for r in rows:
        if r.level != 'absent':
            params = ''.join(f', {a.c} {a.name}' for a in r.args)
            out.append(f'int64_t sys_{r.name}(struct task *t{params});\n')
    return ''.join(out)


def gen_c(rows):
    out = [HEAD + '#include "syscalls_gen.h"\n\n#include <errno.h>\n\n'
           '#include "sentry/syscalls/syscall_table.h"\n\n']
    for r in rows:
        if r.level == 'absent':
            continue
        conv = ''.join(', ' + (f'UADDR(a[{i}])' if a.c == 'uaddr_t' else
                               f'a[{i}]' if a.c == 'uint64_t' else f'({a.c})a[{i}]')
                       for i, a in enumerate(r.args))
        out.append(f'static int64_t thunk_{r.name}(struct task *t, const uint64_t *a)\n'
                   f'{{\n    return sys_{r.name}(t{conv});\n}}\n\n')
    out.append('const syscall_fn syscall_fns[SYSCALLS_LEN] = {\n')
    out += [f'    [{r.nr}] = thunk_{r.name},\n' for r in rows if r.level != 'absent']
    out.append('};\n\n')
    names, offset = [], 1
    descs = []
    for r in rows:
        args = ', '.join(f'{{SYSCALL_{a.kind.upper()}, FMT_{a.fmt}, {a.len_arg}, {a.n}}}' for a in r.args)
        errno = r.errno if r.level == 'absent' else '0'
        descs.append(f'    [{r.nr}] = {{{offset}, {errno}, {len(r.args)}, {{{args or "{0}"}}}}},\n')
        names.append(f'    "{r.name}\\0"\n')
        offset += len(r.name) + 1
    out.append('/* Offset 0, the empty name, is for numbers without a row. */\n'
               'const char syscall_names[] = "\\0"\n' + ''.join(names).rstrip('\n') + ';\n\n')
    out.append('const struct syscall_desc syscall_descs[SYSCALLS_LEN] = {\n' + ''.join(descs) + '};\n')
    return ''.join(out)


KINDS = ['str', 'in', 'in_bytes', 'out', 'out_bytes', 'inout', 'inout_bytes', 'in_iovec', 'out_iovec']


def gen_marshal(rows):
    out = [HEAD + '''/* Which memory a call's arguments name, for the stub that copies it beside the call. */
#pragma once

#include <stdint.h>

enum marshal_kind {
    MARSHAL_NONE,
''']
    notes = {'str': 'NUL-terminated string', 'in': 'n bytes that the call reads',
             'in_bytes': 'args[len_arg] * n bytes that the call reads',
             'out': 'n bytes that the call writes', 'out_bytes': 'at most args[len_arg] * n bytes that it writes',
             'inout': 'n bytes, read and written', 'inout_bytes': 'args[len_arg] * n bytes, read and written',
             'in_iovec': 'args[len_arg] iovecs of bytes it reads', 'out_iovec': 'args[len_arg] iovecs of bytes it writes'}
    out += [f'    MARSHAL_{k.upper()}, /* {notes[k]} */\n' for k in KINDS]
    out.append('};\n\nstruct marshal_desc {\n    uint8_t kind;    /* enum marshal_kind; MARSHAL_NONE ends a list */\n'
               '    uint8_t arg;     /* index of the pointer argument */\n'
               '    uint8_t len_arg; /* index of the length or count argument; an int argument counts as 32 bits signed */\n'
               '    uint8_t pad;\n    uint16_t n;      /* bytes, or bytes for each counted element */\n};\n\n')
    out.append('enum { MARSHAL_MAX = %d, MARSHAL_CALLS = %d };\n\n' % (MARSHAL_MAX, rows[-1].nr + 1))
    lists, index = [()], {}
    for r in rows:
        key = tuple((a.kind, i, a.len_arg, a.n) for i, a in r.marshal)
        if key not in lists:
            lists.append(key)
        index[r.nr] = lists.index(key)
    if len(lists) > 255:
        sys.exit('more than 255 different marshalling lists')
    out.append(f'static const struct marshal_desc marshal_lists[{len(lists)}][MARSHAL_MAX] = {{\n')
    for key in lists:
        items = ', '.join(f'{{MARSHAL_{k.upper()}, {i}, {l}, 0, {n}}}' for k, i, l, n in key)
        out.append(f'    {{{items or "{0}"}}},\n')
    out.append('};\n\n/* Call number to list; 0 is the empty list. */\n'
               'static const uint8_t marshal_index[MARSHAL_CALLS] = {\n')
    out += [f'    [{nr}] = {i},\n' for nr, i in index.items() if i]
    out.append('};\n')
    return ''.join(out)


def gen_docs(rows):
    out = ['''# System calls

Made from `sentry/syscalls/syscalls.tbl` by `sentry/syscalls/gen.py`; change the table, then run
`ninja -C build update-docs`. A full call behaves as on Linux, a partial one lacks what its note says, an absent one
answers ENOSYS unless the note names another error, as a kernel built without it would.

| number | call | level | note |
|---:|---|---|---|
''']
    out += [f'| {r.nr} | {r.name} | {r.level} | {r.note} |\n' for r in rows]
    return ''.join(out)


def check_files(rows, table, folder):
    """Each call that is there is defined in the file that its row names."""
    texts, bad = {}, []
    for r in rows:
        if r.level == 'absent':
            continue
        if r.file not in texts:
            path = os.path.join(folder, r.file)
            with open(path, encoding='utf-8') as f:
                texts[r.file] = f.read()
        if not re.search(rf'^int64_t sys_{r.name}\(', texts[r.file], re.M):
            bad.append(f'{table}: {r.name} is not in {r.file}')
    if bad:
        sys.exit('\n'.join(bad))


GENERATORS = {'h': gen_h, 'c': gen_c, 'marshal': gen_marshal, 'docs': gen_docs}


def main(argv):
    if len(argv) < 4 or argv[1] not in list(GENERATORS) + ['check-docs', 'check-files']:
        sys.exit(f'usage: {argv[0]} {"|".join(GENERATORS)}|check-docs|check-files TABLE OUTPUT')
    rows = read_table(argv[2])
    if argv[1] == 'check-files':
        check_files(rows, argv[2], argv[3])
        return
    if argv[1] == 'check-docs':
        with open(argv[3], encoding='utf-8') as f:
            if f.read() != gen_docs(rows):
                sys.exit(f'{argv[3]} is not what {argv[2]} says: run ninja update-docs')
        return
    with open(argv[3], 'w', encoding='utf-8') as f:
        f.write(GENERATORS[argv[1]](rows))


main(sys.argv)
