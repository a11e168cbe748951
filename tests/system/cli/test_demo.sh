#!/bin/sh
# `sherd demo`: what a new user sees first. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

py() { /usr/bin/python3 -c "import json
$1" >>err 2>&1; }

run demo --samples 3000
[ $code = 0 ] && grep -q '3000 generated images, 3000 x 784 (80 % zeros)' out &&
    [ "$(sed -n '/^7 nodes.*pids:$/{n;p}' out | tr -s ' ' '\n' | grep . | sort -u | wc -l)" = 7 ]
report $? "seven nodes have process ids of their own, and 80 % of the digits' entries are zero"
[ "$(grep -c 'exposures, columns per node:$' out)" = 2 ] && [ "$(grep -c '^   \( [0-9]* ([0-9]* %)\)\{7\}$' out)" = 2 ]
report $? "both runs print the exposures of each node"
grep -q '^  equal: yes, bit for bit$' out && grep -q 'gamma_k |X||W|: yes' out
report $? "the exact run is equal bit for bit, the float run within its bound"
grep -q 'BLAS calls of this process besides the comparisons: 0;' out
report $? "no product was computed here outside the comparisons"
sed -n '/^Try next/,$p' out >next && [ "$(awk '{ if (length > w) w = length } END { print w }' next)" -le 80 ] &&
    grep -q 'sherd multiply A.npy B.npy' next && grep -q '^float: [0-9]* %' err && grep -q '^exact: 100 %' err
report $? "progress goes to stderr, and the output suggests what to try next"
grep -q 'permute, as published  *[3-9][0-9] %' out && grep -q '^  share  *[0-3] %' out &&
    grep -q '^  by chance  *0.1 %' out
report $? "the end shows what a node can read: most under permute, nothing under share"
grep -q '^permute, .* hides little' out && grep -q '^share hides A and B from any one node' out &&
    grep -q 'sherd multiply A.npy B.npy -o C.npy -n 7 --scheme share' out
report $? "the end explains the figures and shows a command with share"

run demo --samples 500 --json --quiet
[ $code = 0 ] && py "d = json.load(open('out'))['audit']['share']
assert d['columns'] < .04 and abs(d['columns_chance'] - 1 / 784) < 1e-6
assert d['labels'] < d['labels_chance'] + .1 and d['rebuilt_r2'] < .05"
report $? "in JSON the audit of one share is no better than chance"
run demo --samples 500 -n 2 --json --quiet
[ $code = 0 ] && [ ! -s err ] && py "d = json.load(open('out'))
assert d['ok'] and d['schema'] == 'sherd/demo/1' and len(d['nodes']) == 2 and d['local_products'] == 0
assert d['exact']['equal'] and d['exact']['bit_equal'] == d['exact']['entries'] == 500 * 128
assert d['float']['equal'] and sum(d['float']['planned']) == 784 and d['float']['bytes_in'] > 500 * 128 * 8
a = d['audit']
assert a['permute_published']['columns'] > .35 and a['permute']['labels'] > .55
assert a['share'] == dict.fromkeys(a['share']), 'two nodes are too few for share'"
report $? "--json prints the same as numbers, and with --quiet stderr is empty"

/usr/bin/python3 -c "
import gzip, struct
rows = 40
pixels = bytes((r * 7 + c * 3) % 256 if (r + c) % 3 == 0 else 0 for r in range(rows) for c in range(784))
gzip.open('train-images-idx3-ubyte.gz', 'wb').write(struct.pack('>IIII', 0x803, rows, 28, 28) + pixels)
open('train-labels-idx1-ubyte', 'wb').write(struct.pack('>II', 0x801, rows) + bytes(rows))"
run demo --data . -n 2
[ $code = 0 ] && grep -q '40 IDX images' out && grep -q 'equal: yes, bit for bit' out &&
    grep -q '^(not of your images' out
report $? "IDX files, gzipped or not, are read with --data"
mkdir empty
run demo --data empty -n 2; [ $code = 4 ] && grep -q 'empty' err
report $? "a folder without IDX files gives exit code 4"

# On a terminal: one line that fits the width, is redrawn, and is erased at the end.
py "
import os, pty, re
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM='xterm', COLUMNS='80')
    os.execv('$S', ['sherd', 'demo', '--samples', '3000', '-n', '2'])
text = b''
while True:
    try: piece = os.read(fd, 65536)
    except OSError: break
    if not piece: break
    text += piece
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
text = text.decode()
bars = re.findall(r'\r(\w+ +\d+ % \[[#-]{20}\][^\r]*)\x1b\[K', text)
assert bars and all(len(b) < 80 for b in bars), bars
assert re.search(r'100 % \[#{20}\][^\n]*\r\x1b\[K', text)"
report $? "on a terminal the progress line is redrawn and erased"

echo "1..$n"
