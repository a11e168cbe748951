#!/usr/bin/env python3
"""Audits' figures as docs/THREATS.md shows them.

    tools/audit-table.py sum NAME=REPORT.json... >docs/audit-mnist.json   (reports: sherd audit --json)
    tools/audit-table.py table docs/audit-mnist.json                      (the table, in Markdown)

tests/system/docs/test_threats.sh holds the table in docs/THREATS.md against docs/audit-mnist.json.
"""
import json
import sys

FIGURES = [
    ('verbatim', 'fraction of the entries of A', 'entries of A sent unchanged', '%'),
    ('zero mask', 'F1', 'zeros among them, F1', ''),
    ('columns', 'own statistics', 'columns recognised by their own statistics', '%'),
    ('columns', 'with correlations', '... with correlations', '%'),
    ('columns', 'with correlations and order', '... and their order', '%'),
    ('labels', 'linear', 'digits read, linear', '%'),
    ('labels', '5 nearest public rows', 'digits read, 5 nearest', '%'),
    ('rebuilding', 'R2, linear', 'images rebuilt, R2, linear', ''),
    ('rebuilding', 'R2, 5 nearest public rows', 'images rebuilt, R2, 5 nearest', ''),
]
ELEMENTS = [
    ('verbatim', 'fraction of the entries, element-wise', 'entries sent unchanged', '%'),
    ('labels', 'linear, by values', 'digits inferred from the values of an image, linear', '%'),
    ('labels', '5 nearest public rows, by values', '... 5 nearest', '%'),
    ('rebuilding', 'R2, linear, by values', 'images rebuilt from these, R2, linear', ''),
    ('rebuilding', 'R2, 5 nearest, by values', '... 5 nearest', ''),
]
RUNS = [('published', '`permute` as published'), ('permute', '`permute`'), ('single', '`permute --group 1`'),
        ('plain', '`plain`'), ('share', '`share`'), ('bytes', '`share`, 8 bits'),
        ('inner', '`share --code inner`'), ('inner bytes', '`share --code inner`, 8 bits'), ('blind', '`blind`')]


def summary(report):
    """Median, worst and chance of each figure, over single nodes."""
    out = []
    for test, statistic, _, _ in FIGURES + ELEMENTS:
        of = [f for f in report['findings']
              if (f['test'], f['statistic'], f['size']) == (test, statistic, 1)]
        if not of:
            continue
        values = sorted(f['value'] for f in of)
        out.append({'test': test, 'statistic': statistic, 'findings': len(of),
                    'median': round(values[len(values) // 2], 6), 'worst': round(values[-1], 6),
                    'chance': round(sorted(f['chance'] for f in of)[len(of) // 2], 9),
                    'flagged': sum(f['flagged'] for f in of)})
    return {'form': report['form'], 'rows': report['rows'], 'cols': report['cols'], 'nodes': report['nodes'],
            'public_rows': report['public_rows'], 'tests': report['tests'], 'flagged': report['flagged'],
            'figures': out}


def amount(value, unit):
    if unit != '%':
        return '%.2f' % (round(value, 2) + 0.0)
    value *= 100
    if value == 0:
        return '0 %'
    return '%.0f %%' % value if value >= 0.995 else ('%.6f' % value).rstrip('0')[:8] + ' %' if value < 0.01 else '%.2g %%' % value


def table(data):
    """What was measured of products and, below, of an element-wise operation."""
    products = [(key, name) for key, name in RUNS if key in data['runs']]
    return one_table(data, products, FIGURES) + '\n\n' + one_table(data, [('elements', 'element-wise')], ELEMENTS)


def one_table(data, runs, figures):
    lines = ['| of one node, median (worst) of seven | ' + ' | '.join(name for _, name in runs) + ' | by chance |',
             '|---' * (len(runs) + 2) + '|']
    for test, statistic, says, unit in figures:
        cells, chance = [], []
        for key, _ in runs:
            found = [f for f in data['runs'][key]['figures'] if (f['test'], f['statistic']) == (test, statistic)]
            cells += ['%s (%s)' % (amount(f['median'], unit), amount(f['worst'], unit)) for f in found] or ['-']
            chance += [f['chance'] for f in found]
        ends = [amount(v, unit) for v in (min(chance), max(chance))]
        cells.append(ends[0] if ends[0] == ends[1] else ' to '.join(ends))
        lines.append('| %s | %s |' % (says, ' | '.join(cells)))
    return '\n'.join(lines)


def main(argv):
    if len(argv) > 2 and argv[1] == 'sum':
        runs = {}
        for arg in argv[2:]:
            name, path = arg.split('=', 1)
            with open(path, encoding='utf-8') as f:
                runs[name] = summary(json.load(f))
        print(json.dumps({'schema': 'sherd/audit-summary/1', 'data': 'MNIST', 'runs': runs}, indent=1))
    elif len(argv) == 3 and argv[1] == 'table':
        with open(argv[2], encoding='utf-8') as f:
            print(table(json.load(f)))
    else:
        sys.exit(__doc__)


main(sys.argv)
