#!/bin/sh
# CONTRIBUTING.md's table of rules: each rule has tests and mutants that exist, and each mutant turns a
# test of its row red. Prints TAP.
set -u
exec /usr/bin/python3 - <<'PY'
import os, re

rows = [[c.strip() for c in line.strip('|\n').split('|')]
        for line in open('CONTRIBUTING.md').read().split('## Rules of hiding')[1].split('\n## ')[0].split('\n')
        if line.startswith('| ')][1:]

def exists(test):
    kind, folder, name = test.split('/')
    return any(os.path.exists('tests/%s/%s/%s%s' % (kind, folder, name, e)) for e in ('.c', '.sh'))

def faults(rule, tests, mutants):
    tests, seen = tests.split(', '), set()
    for t in tests:
        if not exists(t): yield 'no test ' + t
    for m in mutants.split(', '):
        path = 'tests/mutants/%s.patch' % m
        if not os.path.exists(path):
            yield 'no mutant ' + m
            continue
        of = set(re.findall(r'^Test: *(.*)$', open(path).read(), re.M)[0].split())
        if not of & set(tests): yield 'mutant %s belongs to %s' % (m, ' '.join(sorted(of)))
        seen |= of
    for t in tests:
        if t not in seen: yield 'no mutant of this row turns %s red' % t

for n, row in enumerate(rows, 1):
    wrong = list(faults(*row))
    print('%s %d - %s' % ('not ok' if wrong else 'ok', n, row[0]))
    for w in wrong: print('#', w)
print('%s %d - all rules are listed' % ('ok' if len(rows) >= 16 else 'not ok', len(rows) + 1))
print('1..%d' % (len(rows) + 1))
PY
