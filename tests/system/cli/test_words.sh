#!/bin/sh
# Error messages: cause, place and remedy, with the right exit code; and the last lines of a successful
# training. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

PY=/usr/bin/python3
py() { "$PY" -c "import json, numpy as np
$1" >>err 2>&1; }
# hints CODE WORDS REMEDY ARGS...: checks the exit code, and words and remedy on stderr
hints() {
    want=$1 words=$2 remedy=$3
    shift 3
    fails "$want" "$words" "$@" && grep -q -- "try: .*$remedy" err
}
conf() { sed "$1" good.conf >bad.conf; }
cat >good.conf <<'END'
input = 4
layer = dense 8
layer = relu
layer = dense 2
loss = cross-entropy
data = file
epochs = 3
rate = 0.1
END
py "
open('seed', 'wb').write(bytes(range(32)))
r = np.random.default_rng(1)
x = r.standard_normal((60, 4)); y = (x[:, 0] > 0).astype(np.int64)
np.savez('good.npz', x=x, y=y); np.savez('onehot.npz', x=x, y=np.eye(2)[y]); np.savez('short.npz', x=x, y=y[:50])
np.savez('wide.npz', x=x, y=np.eye(3)[y]); np.savez('none.npz', x=x[:0], y=y[:0]); np.save('none.npy', np.zeros((0, 5)))
np.save('narrow.npy', x[:, :1]); np.savez('half.npz', x=x); x[5, 2] = np.nan; np.savez('nan.npz', x=x, y=y)
np.savetxt('some.csv', np.ones((3, 5)), delimiter=',')"

train() { hints "$1" "$2" "$3" train good.conf --data "$4"; }
train 3 "onehot.npz: y: expected 1 column, found 2" "y.argmax(axis=1)" onehot.npz &&
    train 3 "wide.npz: y: expected 1 column, found 3" "targets = values" wide.npz &&
    train 3 "short.npz: x has 60 rows and y has 50" "each row of inputs" short.npz &&
    train 3 "half.npz: has x but not y" "numpy.savez" half.npz &&
    train 11 "nan.npz: row 5, column 2 is nan" "leave such rows out" nan.npz &&
    train 3 "narrow.npy: .*found 1 column$" "x and y separately" narrow.npy
report $? "an error in the shape of data has a remedy"
train 3 "none.npy: holds no examples" "a row for each" none.npy &&
    train 3 "none.npz: holds no examples" "a row for each" none.npz
report $? "a file without examples is named"

ok=0
for units in 2000000000 99999999999999999999 0 -3; do
    conf "s/dense 8/dense $units/"
    hints 3 "bad.conf:2: layer: expected dense and a whole number from 1 to 1000000000, found 'dense $units'" \
        TRAINING.md train bad.conf --data good.npz || ok=1
done
report $ok "a width out of range is reported with the range"

hints 2 "--aggregate: expected .*, found 'halving'" "did you mean halving-doubling" train spiral -n 2 \
    --by gradients --aggregate halving &&
    hints 2 "--survivors 2: expected 3 or more, since" "leave it out" train spiral -n 3 --by gradients \
        --aggregate secure --simulate --survivors 2 &&
    hints 2 "--average needs --local-steps" "add --local-steps" train spiral -n 2 --by gradients \
        --average weighted &&
    hints 2 "--staleness-max needs --async" "add --async" train spiral -n 2 --by gradients \
        --staleness-max 3 &&
    hints 2 "4 colluding nodes: expected 1 to 3 of 5" "more nodes" train spiral -n 5 --by gradients \
        --aggregate secure --simulate --colluding 4
report $? "options that exclude each other, or are out of range, have a remedy"

hints 4 "--seed names a file of 32 bytes; my.seed: cannot open" "head -c 32" train spiral --seed my.seed &&
    hints 2 "--seed 7: a number can be guessed" "head -c 32" meta build --nodes 3 \
        --seed 7 -o meta.npz z=dot:4x4x4 &&
    hints 4 "--seed names a file of 32 bytes; ./7: cannot open" "head -c 32" meta build --nodes 3 \
        --seed ./7 -o meta.npz z=dot:4x4x4 &&
    hints 4 "./-1: cannot open" "head -c 32" train spiral --seed ./-1
report $? "a seed that is not a file of 32 bytes is answered with the description of a seed"

ok=0
for number in 9007199254740992 18446744073709551616 99999999999999999999 -1 +1 1.5; do
    hints 2 "--seed $number: expected a whole number from 0 to 9007199254740991, or a file of 32 bytes" "head -c 32" \
        train spiral --seed $number || ok=1
done
report $ok "a number that is no seed is shown as given, with the range"
cp seed 1.5 && "$S" train spiral --seed 1.5 --epochs 1 -q -o none.npz 2>err
report $? "a file whose name looks like a number is a seed"

hints 2 "\"z=dott:3x4x5\": 'dott' is not a kind of operation" "did you mean 'dot'" meta build \
    z=dott:3x4x5 --nodes 3 -o meta.npz &&
    hints 2 "'sigmoyd' is not a kind of operation" "did you mean 'sigmoid'" meta build a=sigmoyd:3x4 \
        --nodes 3 -o meta.npz &&
    hints 2 "expected an operation, found \"z=foo:3x4\"" "NAME=dot" meta build z=foo:3x4 --nodes 3 \
        -o meta.npz
report $? "a misspelt kind of operation is reported with the nearest"

cp some.csv some.txt
hints 3 "some.txt: is not a .npy, .npz, .csv or IDX file" "save it with numpy.save" audit --simulate permute \
    --data some.txt
report $? "an audit names the file types that it reads"

conf 's/rate = 0.1/rate = 1e9/'
run train bad.conf --data good.npz --seed seed -o model.npz
[ $code = 0 ] && grep -q "warning: the loss rose from [01][.].* in the first step to .*e+.* in the last epoch" err &&
    [ -s model.npz ] && run train good.conf --data good.npz --seed seed -o model.npz &&
    [ $code = 0 ] && ! grep -q warning err
report $? "a rising loss causes a warning, a falling one does not"

printf 'x;y;kind\n1,5;2;0\n2;3;1\n' >german.csv
printf '1\t2\t0\n2\t3\t1\n' >tabs.csv
printf 'x,y,kind\n1,2,0\n2,3,1\n' >named.csv
sed 's/input = 4/input = 2/' good.conf >two.conf
sed '/^loss/a label = kindd' two.conf >label.conf
hints 3 "german.csv:1:2: expected commas between fields, found semicolons" "read_csv(FILE, sep=';', decimal=',')" \
    train two.conf --data german.csv &&
    hints 3 "tabs.csv:1:2: expected commas between fields, found tabs" "commas between fields" \
        train two.conf --data tabs.csv &&
    hints 3 "named.csv:1:1: expected a header with one column 'kindd', found none of that name" \
        "name one of its columns: x, y, kind$" train label.conf --data named.csv &&
    run train two.conf --data named.csv --epochs 1 && [ $code = 0 ]
report $? "a .csv with other separators, and a label that is no column, are answered with the separator and the columns"
hints 2 "expected 1 argument, found 2; 'steps' is one too many" "a number and its unit are one word: 10steps" \
    train spiral --report-every 10 steps &&
    hints 2 "takes no arguments, found 'ms'" "one word: 10ms" cluster status --timeout 500 ms &&
    hints 2 "'stepss' is one too many" "sherd help train" train spiral --report-every 10 stepss
report $? "a unit that is a word of its own is answered with the form in one word"
run keygen me.key
echo "127.0.0.1:7001 $(cut -d' ' -f1 out) name=n domain=d" >nodes.txt
hints 6 "nodes.txt: a list of nodes or keys, expected a private key" "did you swap --key and" \
    node --listen 127.0.0.1:0 --key nodes.txt --allow me.key &&
    hints 3 "me.key: a key in PEM form, expected a list" "did you swap --key and" \
        cluster status --key me.key --nodes me.key && chmod 600 nodes.txt &&
    hints 6 "nodes.txt: a list of nodes or keys, expected a private key" "did you swap --key and" \
        cluster status --key nodes.txt --nodes me.key
report $? "a key and a list of nodes that are swapped are recognised"

run train spiral --epochs 3 --plot p.svg --log l.jsonl -o model.npz
[ $code = 0 ] && grep -qx "model: model.npz" out && grep -qx "log: l.jsonl" out &&
    if command -v gnuplot >/dev/null; then grep -qx "plot: p.svg" out; else ! grep -q "^plot" out; fi
report $? "the last lines name the files written"
run train spiral --epochs 3
[ $code = 0 ] && grep -q "no -o MODEL.npz: the model will not be saved" err &&
    run train spiral --epochs 3 --checkpoint chain && ! grep -q "will not be saved" err
report $? "a model that will not be saved is reported before the training"

run train spiral --epochs 3 --checkpoint chian --resume
[ $code = 0 ] && grep -q "chian has no checkpoint: this run begins with the first step" err &&
    run train spiral --epochs 4 --checkpoint chian --resume && [ $code = 0 ] && ! grep -q "begins with the first step" err
report $? "resuming without a checkpoint reports that the run begins with the first step"
cp -r chain headless
rm headless/head
hints 12 "headless/head: is missing" "another folder: --initial" verify headless &&
    echo junk >headless/head && hints 12 "head: is damaged" "another folder" train spiral --epochs 9 \
    --checkpoint headless --resume &&
    run train spiral --epochs 1 --initial headless/checkpoint-000000000003.npz && [ $code = 0 ]
report $? "the error for a chain without its head explains how to use its weights"

mkdir fixed && cp model.npz fixed/there.npz && chmod 555 fixed
if [ "$(id -u)" = 0 ]; then
    as="setpriv --reuid 65534 --clear-groups"
    chmod 755 "$T"
    $as true 2>/dev/null || as=
else as=env; fi
copy=$T/sherd # other users may not reach the repository
cp "$S" "$copy"
if [ -n "$as" ] && $as env "$copy" version >/dev/null 2>&1; then
    mkdir -p theirs/sherd && echo "quiet" >theirs/sherd/config && chmod 700 theirs
    $as env HOME=/ XDG_CONFIG_HOME="$T/config" "$copy" train spiral --epochs 2 -o fixed/new.npz >out 2>err
    code=$?
    [ $code = 4 ] && grep -q "fixed/new.npz: cannot write: Permission denied" err &&
        [ ! -e fixed/new.npz ]
    report $? "a folder without write permission is reported as such"
    if [ "$as" != env ]; then
        $as env XDG_CONFIG_HOME="$T/theirs" "$copy" train spiral --epochs 2 >out 2>err
        code=$?
        [ $code = 0 ] && chmod 755 theirs theirs/sherd && chmod 600 theirs/sherd/config &&
            ! $as env XDG_CONFIG_HOME="$T/theirs" "$copy" train spiral --epochs 2 >out 2>err &&
            grep -q "config: cannot open the configuration file: Permission denied" err
        report $? "another user's configuration folder is ignored, an unreadable file of the user is not"
    fi
fi
chmod 755 fixed
py "import socket, subprocess
def writes(*args): # returns the contents of each write to stderr
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    subprocess.run(['$S', *args], stderr=its, stdout=subprocess.DEVNULL, timeout=60); its.close()
    ours.setblocking(False); writes = []
    try:
        while True: writes.append(ours.recv(65536).decode())
    except BlockingIOError: return writes
error = writes('train', 'no\nsuch')
assert len(error) == 1 and error[0].count('\n') == 2 and 'no\\\\x0asuch' in error[0], error
words = writes('train', 'spiral', '--epochs', '2')
assert words and all(w.endswith('\n') for w in words), words"
report $? "each message is one write, so messages of several processes do not mix"
py "import os, pty, re, struct, fcntl, termios, subprocess
def shown(columns, *args): # returns what a terminal of so many columns gets
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack('4H', 24, columns, 0, 0))
    p = subprocess.Popen(['$S', *args], stdout=its, stderr=its, stdin=its); os.close(its)
    text = b''
    try:
        while part := os.read(ours, 65536): text += part
    except OSError: pass
    p.wait(60)
    return re.sub(r'\x1b\[[0-9;]*[mK]', '', text.decode()).replace('\r\n', '\n').split('\r')[-1].split('\n')[:-1]
plain = subprocess.run(['$S', 'train', 'two.conf', '--data', 'german.csv'], capture_output=True, text=True).stderr
assert plain.count('\n') == 2 and max(map(len, plain.split('\n'))) > 80, plain
for columns in 40, 60, 80:
    lines = shown(columns, 'train', 'two.conf', '--data', 'german.csv')
    assert max(map(len, lines)) < columns and len(lines) > 2, lines
    assert ' '.join(l.strip() for l in lines) == ' '.join(l.strip() for l in plain.split('\n')).strip(), lines
quoted = shown(20, 'cluster', 'status', '--nodes', 'nodes.txt')
assert any(chr(96) + 'sherd keygen me.key' + chr(96) in l for l in quoted), quoted
for columns in 34, 35, 36, 37: # 22 columns, and '22 GB of 25 GB available'
    lines = shown(columns, 'doctor')
    assert not any(re.search(r'(^| )\d+(\.\d)?$', l) for l in lines) and len(lines) > 15, lines"
report $? "on a terminal messages are broken between words to its width; commands in backquotes, and numbers and units, are not"
echo "1..$n"
