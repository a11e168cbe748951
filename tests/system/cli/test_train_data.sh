#!/bin/sh
# CSV input and SVG output of `train`: the same model from .csv and .npy, errors with their place, the
# points of the plot compared with those of the data, plots of runs that end early. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

py() { /usr/bin/python3 -c "import json, re, numpy as np
$1" >>err 2>&1; }

py "
open('seed', 'wb').write(bytes(range(32)))
r = np.random.default_rng(1)
x = r.standard_normal((120, 2)); y = (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)
np.save('d.npy', np.c_[x, y]); np.save('x.npy', x)
rows = ['%r,%r,%d' % (float(a), float(b), k) for (a, b), k in zip(x, y)]
w = lambda name, text: open(name, 'w', newline='').write(text)
w('d.csv', '\n'.join(rows) + '\n')
w('crlf.csv', '\ufeff\"a\",\"the \"\"b\"\"\",kind\r\n' + '\r\n'.join(rows))
w('named.csv', 'a,the kind,b\n' + ''.join('%s,\"%s\", %s\n' % (a, k, b) for a, b, k in (l.split(',') for l in rows)))
w('x.csv', ''.join(l.rsplit(',', 1)[0] + '\n' for l in rows))
rows[6] = '1.5,,2'; w('hole.csv', 'a,b,kind\n' + '\n'.join(rows))
rows[6] = '1.5,2,3'; w('label.csv', 'a,b,kind\n' + '\n'.join(rows))
rows[6] = '1.5,2,setosa'; w('word.csv', 'a,b,kind\n' + '\n'.join(rows))
rows[6] = '1.5,nan,0'; w('nan.csv', '\n'.join(rows))
rows[6] = '1.5,0'; w('short.csv', '\n'.join(rows))
w('wide.csv', '1,2,3,0\n'); w('empty.csv', '')
w('line.csv', ''.join('%g,%g\n' % (v, 3 * v) for v in np.linspace(-2, 2, 40)))"
report $? "data are made with numpy"
printf '%s\n' 'input = 2' 'layer = dense 8' 'layer = relu' 'layer = dense 3' 'loss = cross-entropy' 'data = file' \
    'rate = 0.5' 'batch = 30' 'epochs = 4' >small.conf
{ cat small.conf; echo 'label = the kind'; } >named.conf
printf '%s\n' 'input = 1' 'layer = dense 1' 'loss = squared' 'data = file' 'targets = values' 'rate = 3' 'batch = all' \
    'epochs = 20' >line.conf

# ---- CSV

run train small.conf --data d.npy --seed seed -q -o npy.npz; report $code "train reads a .npy"
run train small.conf --data d.csv --seed seed -q -o d.npz && cmp -s npy.npz d.npz; report $? "d.csv gives the same model, to the bit"
for f in crlf named; do
    conf=small; [ $f = named ] && conf=named
    run train $conf.conf --data $f.csv --seed seed -q -o $f.npz &&
        py "a, b = np.load('npy.npz'), np.load('$f.npz'); assert all((a[k] == b[k]).all() for k in ('w1', 'b1', 'w2', 'b2'))"
    report $? "$f.csv, which has a header, gives the same parameters, to the bit"
done
run train line.conf --data line.csv --seed seed --rate 0.1 -q --json
py "d = json.load(open('out')); assert d['epochs'][-1]['loss'] < d['epochs'][0]['loss'] / 4, d"; report $? "targets = values reads the last column"
run predict npy.npz x.npy -o a.npy -q; for f in x d crlf; do
    run predict npy.npz $f.csv -o b.npy -q && cmp -s a.npy b.npy; report $? "predict reads $f.csv"
done
run predict named.npz named.csv -o b.npy --json && py "d = json.load(open('out')); assert d['accuracy'] > .7, d" && cmp -s a.npy b.npy
report $? "the model records the column of its labels"
refuses() { # code, words, name, args
    want=$1 words=$2 name_=$3; shift 3
    echo earlier >model.npz; run train "$@" -o model.npz
    [ $code = "$want" ] && grep -qF -- "$words" err && [ "$(cat model.npz)" = earlier ]; report $? "$name_"
}
bad=
for f in mnist there/fashion-mnist/; do
    set_=${f#there/}; set_=${set_%/}
    run train mnist --data $f; [ $code = 4 ] && grep -q "try: .sherd fetch $set_. downloads it" err || bad=$f
done
[ -z "$bad" ]; report $? "for data that sherd fetch downloads the hint names it"
run predict x.npy npy.npz -o b.npy; [ $code = 3 ] && grep -q 'try: it is a .npy file: an .npz is expected' err &&
    { run meta verify x.csv; [ $code = 3 ]; } && grep -q 'try: name an .npz' err
report $? "the hint for a file that is not an .npz names what it is"
head -c 300 npy.npz >cut.npz; run predict cut.npz x.npy -o b.npy; [ $code = 3 ] && grep -q 'try: copy the file again' err
report $? "for a truncated .npz the hint is to copy it again"
refuses 3 'hole.csv:8:5: field 2: expected a number, found nothing' "an empty field is reported with line and column" small.conf --data hole.csv
refuses 2 'd.npy: label = the kind is a column of a .csv' "a column name is refused for a file without column names" named.conf --data d.npy
sed 's/^loss/layer = softmax\nloss/' small.conf >twice.conf
refuses 3 'softmax before loss = cross-entropy would be applied twice' "a second softmax is reported" twice.conf --data d.npy
refuses 3 'label.csv: row 6 has the label 3' "a label out of range is reported" small.conf --data label.csv
refuses 3 "word.csv:8:7: field 3: expected a label, found 'setosa'" "a word is not accepted as a label" small.conf --data word.csv
refuses 3 "nan.csv:7:5: field 2: expected a number, found 'nan'" "nan is not accepted as a number" small.conf --data nan.csv
refuses 3 'short.csv:7:6: expected 3 fields as in the first line, found 2' "a short line is reported" small.conf --data short.csv
refuses 3 'wide.csv: examples have 3 numbers: the network takes 2' "examples of another length are reported" small.conf --data wide.csv
refuses 3 'empty.csv:1:1: expected names or numbers, found nothing' "an empty file is not accepted as data" small.conf --data empty.csv
refuses 3 "d.csv:1:1: expected a header with one column 'the kind', found numbers" "a column name is refused for a file without a header" named.conf --data d.csv
refuses 4 'none.csv: ' "a missing file is reported" small.conf --data none.csv

# ---- plots

drawn() { # plot, fewest points of curves: checks that it is complete SVG with this number of points
    tail -c 20 "$1" | grep -q '</svg>' && [ "$(grep -oE '#gpPt|[ML][0-9.]+,[0-9.]+' "$1" | wc -l)" -ge "$2" ]
}
if command -v gnuplot >/dev/null; then
    run train spiral --epochs 1000 --seed seed --plot p.svg -q
    mkdir none; PATH_=$PATH; PATH=$T/none; run train spiral --epochs 1000 --seed seed --plot q.svg -q; PATH=$PATH_
    py "
curve, points = [np.array([list(map(float, l.split())) for l in b.splitlines()]) for b in re.findall(r'<< END\n(.*?)END\n', open('q.svg.gnuplot').read(), re.S)][:2]
at = np.array([list(map(float, m)) for m in re.findall(r\"<use xlink:href='#gpPt\d+' transform='translate\(([\d.]+),([\d.]+)\)\", open('p.svg').read())])
at = at[-453:-3] # the points are in the last of three panels, before the legend of three classes
assert len(at) == 450, len(at)
for k in 0, 1: # the place of a point is linear in its coordinates
    a, b = np.polyfit(points[:, k], at[:, k], 1)
    assert a * (-1) ** k > 50 and np.abs(a * points[:, k] + b - at[:, k]).max() < .11, (a, b)
assert len(points) == 450 and len(curve) >= 2"
    report $? "the points of the SVG are those of the data"
    py "
svg = open('p.svg').read()
fills = re.findall(r'<(?:path|polygon)[^>]*fill\s*=\s*.rgb\( *(\d+), *(\d+), *(\d+)\)', svg)
assert len(set(fills)) >= 3, set(fills)"; report $? "regions of three classes are painted"

    "$S" train spiral --epochs 100000000 --seed seed --plot int.svg --log int.jsonl -q >out 2>err </dev/null & pid=$!
    i=0; while ! grep -q '"event":"epoch"' int.jsonl 2>/dev/null && [ $i -lt 300 ]; do sleep 0.1; i=$((i + 1)); done
    kill -TERM $pid; wait $pid; code=$?
    [ $code = 130 ] && drawn int.svg 450 && [ ! -e int.svg.gnuplot ]; report $? "an interrupted run draws the epochs before"
    refuses 11 'diverged' "a diverging run is reported" line.conf --data line.csv --epochs 2000 --plot far.svg
    drawn far.svg 20; report $? "a diverging run draws the epochs before"
else
    for s in "the points of the SVG" "regions" "an interrupted run draws" "a run that diverges" "epochs before"; do
        skip "$s" "gnuplot is not installed"
    done
fi
cp d.csv d.svg
refuses 2 'd.svg' "a plot never replaces the data" small.conf --data d.svg --plot d.svg; cmp -s d.csv d.svg; report $? "the data are unchanged"
echo "1..$n"
