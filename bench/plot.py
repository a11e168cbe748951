#!/usr/bin/env python3
"""Draws the cost of `share` over n and over the number of nodes, as an SVG.

    sherd bench --only by-size,by-nodes --json >ratio.json
    bench/plot.py ratio.json -o docs/ratio.svg

Each point is the median of a figure of sherd bench, in multiples of one dgemm of the same shape on
the same cores; the bar is the smallest and the largest run. Several files may be given, as of
measurements that were made apart; a later one replaces points of an earlier one.
"""
import argparse
import json
import math
import sys
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 330
LEFT, TOP, PANEL, TALL, GAP = 62, 52, 340, 220, 84
INK, GREY, LINE, BAR = '#1f2328', '#6e7781', '#0b62a8', '#9cc3e6'


def read(paths):
    """Returns the points {(kind, x): figure}, and the heads of the files."""
    points, heads = {}, []
    for path in paths:
        with open(path, encoding='utf-8') as f:
            result = json.load(f)
        if result.get('schema') != 'sherd/bench/1':
            sys.exit(f'{path}: not the JSON of sherd bench')
        heads.append(result)
        for figure in result['figures']:
            for kind, x in ('by-size', 'n'), ('by-nodes', 'nodes'):
                if figure['name'].startswith(kind) and 'median' in figure:
                    points[kind, round(figure['beside'][x])] = figure
    return points, heads


def ticks(low, high):
    """Returns 1, 2 or 5 times powers of ten from below low to above high."""
    out, value = [], 10.0 ** math.floor(math.log10(low))
    while value < high * 10:
        out += [value * m for m in (1, 2, 5)]
        value *= 10
    first = max(i for i, t in enumerate(out) if t <= low)
    last = min(i for i, t in enumerate(out) if t >= high)
    return out[first:last + 1]


def text(x, y, words, anchor='middle', size=12, colour=INK, more=''):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{colour}"{more}>{escape(words)}</text>')


def panel(left, title, label, points, rows):
    """Draws one panel. points: [(x, figure)]; rows: the ticks of y."""
    xs = [math.log2(x) for x, _ in points]
    low, high = min(xs) - 0.3, max(xs) + 0.3
    bottom, top = math.log(rows[0]), math.log(rows[-1])

    def at(x):
        return left + PANEL * (math.log2(x) - low) / (high - low)

    def up(y):
        return TOP + TALL * (1 - (math.log(max(y, rows[0])) - bottom) / (top - bottom))

    out = [text(left, TOP - 16, title, 'start', 13, more=' font-weight="600"')]
    for y in rows:
        one = abs(y - 1) < 1e-9
        out.append(f'<line x1="{left}" x2="{left + PANEL}" y1="{up(y):.1f}" y2="{up(y):.1f}" '
                   f'stroke="{INK if one else "#d8dee4"}" stroke-width="1"/>')
        out.append(text(left - 8, up(y) + 4, f'{y:g}', 'end', 11, GREY))
    if rows[0] <= 1 <= rows[-1]:
        out.append(text(left + PANEL - 4, up(1) - 5, 'one dgemm', 'end', 11))
    for x, figure in points:
        out.append(text(at(x), TOP + TALL + 18, str(x), size=11, colour=GREY))
        out.append(f'<line x1="{at(x):.1f}" x2="{at(x):.1f}" y1="{up(figure["min"]):.1f}" '
                   f'y2="{up(figure["max"]):.1f}" stroke="{BAR}" stroke-width="5"/>')
    path = ' '.join(f'{at(x):.1f},{up(f["median"]):.1f}' for x, f in points)
    out.append(f'<polyline points="{path}" fill="none" stroke="{LINE}" stroke-width="2"/>')
    for x, figure in points:
        words = f'{label} {x}: {figure["median"]:.2f} times dgemm'
        out.append(f'<circle cx="{at(x):.1f}" cy="{up(figure["median"]):.1f}" r="4" fill="{LINE}">'
                   f'<title>{escape(words)}</title></circle>')
        out.append(text(at(x), up(figure['median']) - 10, f'{figure["median"]:.3g}', size=11))
    out.append(text(left + PANEL / 2, TOP + TALL + 38, label, size=12))
    return out


def draw(points, heads):
    sizes = sorted((x, f) for (kind, x), f in points.items() if kind == 'by-size')
    nodes = sorted((x, f) for (kind, x), f in points.items() if kind == 'by-nodes')
    if not sizes and not nodes:
        sys.exit('no figure of by-size or by-nodes: sherd bench --only by-size,by-nodes --json')
    used = [f for _, f in sizes + nodes]
    rows = ticks(min(1, *(f['min'] for f in used)), max(2, *(f['max'] for f in used)))
    head = heads[-1]
    ways = sorted({f['path'] for f in used if 'path' in f})
    count = min(len(f['runs']) for f in used)
    note = (f'{head["cores"]} cores, {"; ".join(ways)}; medians of '
            f'{count}{" (quick)" if any(h["quick"] for h in heads) else ""}; bars: all runs')
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="system-ui, sans-serif">',
           '<title>Time of share over local nodes, in multiples of one dgemm</title>',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           text(16, TOP + TALL / 2, 'times dgemm', size=12,
                more=f' transform="rotate(-90 16 {TOP + TALL / 2:.0f})"')]
    if sizes:
        count = round(sizes[0][1]['beside']['nodes'])
        out += panel(LEFT, f'share, {count} nodes', 'n', sizes, rows)
    if nodes:
        n = round(nodes[0][1]['beside']['n'])
        out += panel(LEFT + PANEL + GAP, f'share, n = {n}', 'nodes', nodes, rows)
    out += [text(LEFT, HEIGHT - 6, note, 'start', 10, GREY), '</svg>']
    return '\n'.join(out) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('json', nargs='+', help='output of sherd bench --json')
    parser.add_argument('-o', '--output', help='the SVG [standard output]')
    args = parser.parse_args()
    svg = draw(*read(args.json))
    if args.output:
        with open(args.output, 'w', encoding='utf-8') as f:
            f.write(svg)
    else:
        sys.stdout.write(svg)


if __name__ == '__main__':
    main()
