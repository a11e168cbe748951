#!/bin/sh
# Data as people have them: a .csv with a header, an identification and names of classes. The model keeps names
# and means; `predict` finds columns by them and writes names; both report what is confused. A number as a seed.
# Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

py() { /usr/bin/python3 -c "import csv, json, math, random, re
$1" >>err 2>&1; }

py "
random.seed(4)
rows = [[5 + i * .8 + random.gauss(0, .4), 300 + 190 * i + random.gauss(0, 60), n] for i, n in enumerate(('setosa', 'versicolor', 'Virginica')) for k in range(40)]
random.shuffle(rows)
w = lambda name, text: open(name, 'w').write(text)
w('iris.csv', 'id,length,\"width, mm\",species\n' + ''.join('i%d,%r,%r,%s\n' % (i, *r) for i, r in enumerate(rows)))
w('test.csv', '\"width, mm\",note,length\n' + ''.join('%r,,%r\n' % (b, a) for a, b, n in rows))
w('marked.csv', 'species,length,\"width, mm\"\n' + ''.join('%s,%r,%r\n' % (n, a, b) for a, b, n in rows[:30]))
names = ['kind of plant number %d' % i for i in range(20)]
w('many.csv', 'a,b,y\n' + ''.join('%r,%r,%s\n' % (random.random(), random.random(), random.choice(names)) for i in range(200)))"
report $? "data are made"
cat >iris.conf <<'END'
input = 2
layer = dense 8
layer = tanh
layer = dense 3
loss = cross-entropy
data = file
columns = length, width mm
standardise = yes
holdout = 0.25
batch = 15
epochs = 30
method = adam
rate = 0.05
END
sed -i 's/"width, mm"/width mm/' iris.csv test.csv marked.csv

# ---- training

run train iris.conf --data iris.csv --seed 402 -o a.npz --log a.jsonl
[ $code = 0 ] && grep -q '^seed: 402$' out && is_log a.jsonl && grep -q '"seed":402' a.jsonl &&
    grep -q '^30 validation examples: a row for each label' out &&
    grep -Eq '^ +Virginica +setosa +versicolor +correct$' out && grep -Eq '^Virginica +[0-9]+ +[0-9]+ +[0-9]+ +[0-9.]+ %$' out
report $? "classes are the names in the last column, sorted by bytes, and the report has them"
! grep -v ' steps in ' out | grep -q '.\{81\}'; report $? "no line of the report but the summary is longer than 80 columns"
run train iris.conf --data iris.csv --seed 402 -o b.npz --json
cmp -s a.npz b.npz && py "
d = json.load(open('out')); c = d['confusion']
assert d['seed'] == 402 and c['of'] == 'validation' and c['classes'] == ['Virginica', 'setosa', 'versicolor'], d
right = sum(c['counts'][i][i] for i in range(3))
assert sum(map(sum, c['counts'])) == 30 and abs(right / 30 - d['epochs'][-1]['validation_accuracy']) < 1e-12, c"
report $? "the same number as a seed gives the same model, and JSON has the whole confusion matrix"
run train iris.conf --data iris.csv -o c.npz --json; seed=$(sed 's/.*"seed":\([0-9]*\).*/\1/' out)
run train iris.conf --data iris.csv -o d.npz --seed "$seed" && cmp -s c.npz d.npz && ! cmp -s a.npz c.npz
report $? "a run without --seed states a number by which it can be repeated"
run train iris.conf --data iris.csv --seed 402 --checkpoint run --epochs 10 -q
run train iris.conf --data iris.csv --checkpoint run --resume -o e.npz -q && cmp -s a.npz e.npz && grep -q '^seed: 402$' out
report $? "a resumed run has the same seed and the same bits"
run train iris.conf --data iris.csv --seed 402 -n 2 --mode exact --check -o x.npz -q &&
    grep -q '^checked: all' out && grep -q 'can be guessed: nodes that know the first weights' err
report $? "standardised data are checked over nodes, and a number as a seed of permutations is warned of"
run train iris.conf --data iris.csv -n 2 --mode exact -q && ! grep -q '^seed' out
report $? "a seed from which permutations derive is never printed"
run train iris.conf --data iris.csv --seed 402 -n 3 --scheme share -q && grep -q '^seed: 402$' out && [ ! -s err ]
report $? "under share nothing secret derives from the number, and there is no warning"
run train iris.conf --data iris.csv --seed 402 -n 2 --by gradients --check -q && grep -q '^checked: all' out
report $? "training by gradients has the standardised data, too"
sed 's/dense 3/dense 20/; s/length, width mm/a, b/; s/epochs = 30/epochs = 2/' iris.conf >many.conf
run train many.conf --data many.csv -q
[ $code = 0 ] && grep -q 'validation examples are classified correctly$' out && grep -q '^most frequent mistakes' out &&
    [ "$(grep -c '^kind of plant number [0-9 ]*kind of plant number' out)" -ge 5 ] && ! grep -v ' steps in ' out | grep -q '.\{81\}'
report $? "of many classes the report lists the most frequent mistakes"

# ---- predicting

run predict a.npz test.csv -o p.csv --labels
[ $code = 0 ] && [ ! -s out ] && [ "$(head -n 1 p.csv)" = species ] && [ "$(wc -l <p.csv)" = 121 ] && py "
a, b = (list(csv.reader(open(f))) for f in ('p.csv', 'iris.csv'))
assert sum(x[0] == y[3] for x, y in zip(a[1:], b[1:])) > 105"
report $? "predict finds the columns by their names and writes the names of classes"
run predict a.npz marked.csv -o p.npy --json
py "
d = json.load(open('out')); c = d['confusion']
assert c['of'] == 'labelled' and sum(map(sum, c['counts'])) == 30
assert abs(sum(c['counts'][i][i] for i in range(3)) / 30 - d['accuracy']) < 1e-12"
report $? "the labels of a .csv are matched by name and give a confusion matrix"
run predict a.npz marked.csv -o - ; [ "$(head -c 6 out | tail -c 5)" = NUMPY ] && grep -q '^30 labelled examples' err
report $? "the matrix is not mixed into a result on standard output"
run predict a.npz test.csv -o q.csv -q && [ "$(head -n 1 q.csv)" = logit_Virginica,logit_setosa,logit_versicolor ]
report $? "the header of a .csv of outputs says that they are logits, and of which classes"
sed 's/note/id/; s/length/height/' test.csv >bad.csv
run predict a.npz bad.csv -o q.npy
[ $code = 3 ] && [ ! -e q.npy ] && grep -qF "bad.csv:1:1: expected a column 'length' in the header, found none of that name" err &&
    grep -qF 'width mm, id, height' err
report $? "a column that is missing is named, with those that are there"

# ---- refusals

sed 's/dense 3/dense 4/' iris.conf >many-outputs.conf
run train many-outputs.conf --data iris.csv; [ $code = 3 ] && grep -qF 'iris.csv: there are 3 classes (Virginica, setosa, versicolor): the network has 4 outputs' err
report $? "another number of classes than outputs is refused, with the classes"
for k in me 1 2 3; do
    "$S" keygen $k.key >key.txt 2>&1
    [ $k = me ] || "$S" node --print-line --key $k.key --listen 127.0.0.1:700$k >>none.txt 2>&1
done
run train iris.conf --by gradients --aggregate secure --nodes none.txt --key me.key --examples 9
[ $code = 2 ] && grep -q 'standardise = yes: only the nodes have the examples' err
report $? "secure sums refuse means that they would have to reveal"
run node --key me.key --allow none.txt --columns a,b
[ $code = 2 ] && grep -q -- '--columns has no effect without --data' err; report $? "a node has columns of its own data only"
echo "1..$n"
