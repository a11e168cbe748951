#!/bin/sh
# `sherd bench --quick`: it reports every figure, with a plausible number. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
unset SHERD_RUNS SHERD_ONLY SHERD_MNIST
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
mkdir "$T/tmp"
export TMPDIR="$T/tmp"

py() { /usr/bin/python3 -c "import json
d = json.load(open('out'))
f = {x['name']: x for x in d.get('figures', [])}
$1" >>err 2>&1; }

run bench --quick --json
[ $code = 0 ] && py "assert d['schema'] == 'sherd/bench/1' and d['ok'] and d['quick']
assert list(f) == ['meta-expanded', 'meta-numpy', 'meta-seed-bytes', 'meta-seed-time', 'group1-rate',
    'group1-numpy', 'all-4096', 'all-8192', 'plain-4096', 'start', 'connection', 'tasks-rate', 'tasks-round-trip',
    'memory-1', 'memory-all', 'memory-share', 'modular', 'bytes', 'bytes-encode', 'encode', 'encode-element', 'freivalds-4096',
    'freivalds-layer', 'share-2048', 'share-4096', 'share-4096-bytes', 'share-spare', 'resident', 'resident-up', 'resident-down', 'disturbed-killed',
    'disturbed-stopped', 'disturbed-lying', 'forecast-share-2048', 'forecast-share-4096',
    'forecast-share-layer', 'forecast-all-4096', 'forecast-group1', 'forecast-plain-4096', 'train-deep-f64', 'train-deep-f32', 'train-mnist', 'train-epoch',
    'train-batch', 'gradients-spiral', 'gradients-large', 'gradients-ring', 'gradients-halving',
    'gradients-async',
    'gradients-async-loss'], list(f)"
report $? "--quick --json lists every figure"
[ $code = 0 ] && py "import math
for x in f.values():
    assert x['reached'] is None, x
    runs = sorted(x['runs'])
    assert len(runs) == (1 if x['name'] == 'meta-seed-bytes' or x['name'].startswith('disturbed') else 2), x
    assert all(math.isfinite(r) and r > 0 for r in runs), x
    assert runs[0] == x['min'] <= x['median'] <= x['max'] == runs[-1] or x['name'].startswith(
        ('all', 'plain', 'share', 'resident', 'train-deep', 'train-mnist', 'train-epoch',
        'gradients-spiral')), x"
report $? "each figure has its runs, and its median is between the minimum and the maximum"
# resident: the code is that with the least predicted time. Under inner, less is sent and more received.
py "within = {'meta-expanded': (0.3, 5000), 'meta-numpy': (1, 1e5), 'meta-seed-bytes': (200, 2048),
    'meta-seed-time': (0.005, 1e4), 'group1-rate': (1e3, 1e8), 'group1-numpy': (0.01, 1e3),
    'all-4096': (0.01, 1e4), 'all-8192': (0.01, 1e4), 'connection': (0.01, 50), 'tasks-rate': (100, 1e6),
    'tasks-round-trip': (5, 1e5), 'memory-1': (1, 300), 'memory-all': (1, 300),
    'plain-4096': (0.01, 1e4), 'start': (0.01, 100), 'memory-share': (1, 300), 'encode-element': (0.1, 3000),
    'share-4096-bytes': (30, 80), 'share-spare': (0.01, 1e4), 'modular': (1, 1000), 'bytes': (0.05, 1000), 'bytes-encode': (0.2, 1000), 'encode': (0.1, 3000), 'freivalds-4096': (0.01, 300), 'freivalds-layer': (0.01, 300),
    'share-2048': (0.01, 1e4), 'share-4096': (0.01, 1e4), 'resident': (0.01, 1e5),
    'disturbed-killed': (0.01, 100),
    'disturbed-stopped': (0.01, 100), 'disturbed-lying': (0.01, 100), 'train-deep-f64': (0.02, 100), 'train-deep-f32': (0.01, 100),
    'train-mnist': (0.005, 100), 'train-epoch': (0.1, 1e5), 'train-batch': (0.5, 1e5),
    'gradients-spiral': (0.02, 1000), 'gradients-large': (0.01, 1e3), 'gradients-async': (0.01, 100),
    'gradients-ring': (0.01, 100), 'gradients-halving': (0.01, 100),
    'gradients-async-loss': (0.001, 100)}
within['resident-up'], within['resident-down'] = {'lagrange': ((3.0, 3.5), (0.8, 1.3)),
    'inner': ((0.6, 0.9), (2.2, 3.5))}[f['resident']['path'].split(', code ')[1]]
for name, (least, most) in within.items(): assert least < f[name]['median'] < most, f[name]
targets = {'meta-expanded': 3.5, 'meta-numpy': 100, 'meta-seed-bytes': 2047, 'meta-seed-time': 1,
    'group1-rate': 900000, 'group1-numpy': 8, 'all-4096': 2.2, 'all-8192': 1.9, 'plain-4096': 2.2, 'start': 1, 'memory-share': 256, 'encode-element': 3,
    'share-4096-bytes': 48, 'share-spare': 2.2, 'connection': 1.5,
    'tasks-rate': 20000, 'tasks-round-trip': 200, 'memory-1': 256, 'memory-all': 256,
    'modular': 95, 'bytes': 28, 'bytes-encode': 2, 'encode': 40, 'freivalds-4096': 2, 'freivalds-layer': 12,
    'share-2048': 2.4, 'share-4096': 1.6, 'resident': 1.6, 'resident-up': 6, 'resident-down': 110,
    'disturbed-killed': 1.3, 'disturbed-stopped': 1.3, 'disturbed-lying': 1.3, 'train-deep-f64': 0.7,
    'train-deep-f32': 0.4, 'train-mnist': 0.6, 'train-epoch': 10, 'train-batch': 15,
    'gradients-spiral': 1, 'gradients-large': 60, 'gradients-async': 1,
    'gradients-ring': 1.3, 'gradients-halving': 1.3,
    'gradients-async-loss': 1}
for name in f:
    if name.startswith('forecast'):
        targets[name] = 30
        assert 0 < f[name]['beside']['ratio'] < 100 and f[name]['beside']['foretold_seconds'] > 0, f[name]
for name, t in targets.items(): assert f[name]['target'] == t, f[name]
higher = {n for n in f if f[n]['better'] == 'higher'}
assert higher == {'meta-numpy', 'group1-rate', 'group1-numpy', 'connection', 'tasks-rate',
    'modular', 'bytes', 'encode', 'gradients-large', 'gradients-async'}, higher"
report $? "numbers are plausible, and targets are the expected ones"
py "assert f['meta-expanded']['beside']['indices'] == 832432
b = f['group1-rate']['beside']
assert b['fragments'] > 50000 and b['command_seconds'] > b['seconds'] > 0
g = f['group1-rate']
assert g['min'] <= b['fragments'] / b['seconds'] <= g['max']
assert f['meta-numpy']['beside']['numpy_ns'] > f['meta-numpy']['beside']['numpy_best_ns'] > 1
for name in 'all-4096', 'all-8192':
    b = f[name]['beside']
    assert abs(b['seconds'] / b['local_seconds'] / f[name]['median'] - 1) < 1e-6
    assert b['command_seconds'] > b['seconds']"
report $? "related numbers agree with the figures"
py "parts = ['products_percent', 'links_percent', 'here_percent', 'waiting_percent']
for name in 'all-4096', 'plain-4096', 'share-2048', 'share-spare', 'resident', 'train-epoch', 'train-batch':
    b = f[name]['beside']
    assert all(0 <= b[p] < 1000 for p in parts) and b['links_percent'] > 0, (name, b)
assert f['share-2048']['path'].startswith(('residues modulo 2 primes by ', 'bytes modulo ')), f['share-2048']
assert f['plain-4096']['path'] == 'float64 by dgemm, kernels ' + d['blas_core'], f['plain-4096']
assert 'path' not in f['start']"
report $? "products say how they were computed and where the time went"
py "assert d['blas_core'] and d['cores'] >= 1 and d['nodes'] == 7 and d['unset'] is None
assert d['environment'] == {'OPENBLAS_CORETYPE': None, 'OPENBLAS_L2_SIZE': None}"
report $? "the result names the kernels and the number of cores"

natural=$("$S" doctor --blas-core)
export OPENBLAS_CORETYPE=Haswell OPENBLAS_L2_SIZE=524288
forced=$("$S" doctor --blas-core) # on another processor than x86 the same
run bench --quick --json --only seed --runs 1
py "assert d['environment'] == {'OPENBLAS_CORETYPE': None, 'OPENBLAS_L2_SIZE': None}
assert d['unset'] == 'OPENBLAS_CORETYPE=Haswell, OPENBLAS_L2_SIZE=524288'
assert d['blas_core'] == '$natural', d
assert len(f['meta-seed-time']['runs']) == 1 and 'tasks-rate' not in f"
report $? "OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are unset before OpenBLAS reads them, which is reported"
run bench --quick --only seed --keep-env
[ $code = 0 ] && grep -q "its $forced kernels" out && grep -q 'OPENBLAS_CORETYPE=Haswell in the env' out
report $? "--keep-env keeps them"
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

run bench --quick --only seed,tasks
[ $code = 0 ] && grep -q '^figure .*median .*min .*max .*target .*reached' out &&
    grep -q '^64 x 64 products.*>= 20000 ' out && ! grep -q dgemm out && grep -q 'measuring small' err
report $? "the table is written to stdout, progress to stderr"
# A replacement for numpy that prints a time for its number of threads.
mkdir none fake
echo 'raise ImportError' >none/numpy.py
cat >fake/numpy.py <<'EOF'
import os, sys
one = os.environ.get('OPENBLAS_NUM_THREADS') == '1'
print(os.environ['ONE' if one else 'ALL'], flush=True)
os._exit(0)
EOF
for way in '500 900' '900 400'; do
    ONE=${way% *} ALL=${way#* } PYTHONPATH="$T/fake" run bench --quick --json --only gradients-spiral,train-deep
    py "x = f['gradients-spiral']
b = x['beside']
assert b['numpy_us'] == min(${way% *}, ${way#* }), b
assert abs(x['median'] / (b['here_us'] / b['numpy_us']) - 1) < 1e-9 and b['compute_us'] > 0, x
assert sorted(x['runs'])[0] <= x['median'] <= sorted(x['runs'])[-1] and '259 us' in x['remark'], x
assert f['train-deep-f64']['beside']['numpy_ms'] == ${way#* }, f"
    report $? "small arrays: numpy runs with one thread or all, whichever is faster, $way"
done
PYTHONPATH="$T/none" run bench --quick --json --only gradients-spiral,train-deep
[ $code = 0 ] && py "for x in f['gradients-spiral'], f['train-deep-f32']:
    assert x['runs'] == [] and x['reached'] is None and 'no numpy' in x['remark'], x
assert f['gradients-spiral']['beside']['here_us'] > 0 and f['train-deep-f32']['beside']['here_ms'] > 0
assert 'numpy_us' not in f['gradients-spiral']['beside'], f"
report $? "without numpy the ratio is missing with a remark, and local measurements are reported"

"$S" bench --quick --json --runs 1 --only by-size,by-nodes >ratio.json 2>err && py "
d = json.load(open('ratio.json'))
f = {x['name']: x for x in d['figures']}
assert list(f) == ['by-size-%d' % n for n in (512, 1024, 2048, 4096, 8192)] + ['by-nodes-%d' % n
    for n in (3, 4, 5, 7, 10, 16, 24, 32)], list(f)
assert all(x['target'] is None and x['reached'] is None for x in f.values())
assert [f['by-size-%d' % n]['beside']['n'] for n in (512, 8192)] == [96, 384]
assert f['by-nodes-24']['beside']['nodes'] == 24"
report $? "long measurements are made where they are named, and need no target"
run bench --quick --json --runs 1 --only by-nodes-3,freivalds-layer
[ $code = 0 ] && py "assert list(f) == ['freivalds-layer', 'by-nodes-3'], list(f)"
report $? "a figure can be named"
"$R/bench/plot.py" ratio.json -o ratio.svg 2>err && /usr/bin/python3 -c "
import xml.dom.minidom
d = xml.dom.minidom.parse('ratio.svg')
words = [t.firstChild.data for t in d.getElementsByTagName('text')]
assert 'share, 7 nodes' in words and 'share, n = 192' in words and 'one dgemm' in words, words
assert len(d.getElementsByTagName('circle')) == 13" 2>>err
report $? "the plot shows them"
run bench --only grup1
[ $code = 2 ] && grep -q "no measurement 'grup1'" err && grep -q "did you mean 'group1'" err
report $? "an unknown measurement gives exit code 2 and names the nearest"
"$S" bench --quick --only all-4096,group1 --runs 99 >out 2>err </dev/null &
pid=$!
await grep -q measuring err
sleep 1
kill -TERM $pid
wait $pid
code=$?
[ $code = 130 ] && [ -z "$(ls -A tmp)" ]
report $? "a signal ends it without leaving temporary files"

echo "1..$n"
