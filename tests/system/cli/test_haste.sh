#!/bin/sh
# Mistakes of a user in a hurry: commands are ended while they start, one file is named twice, two
# commands run at once, variables are misspelt. Each is reported before anything is computed. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

py() { /usr/bin/python3 -c "import json, os, signal, subprocess, sys, time, numpy as np
$1" >>err 2>&1; }

py "
r = np.random.default_rng(3)
np.save('A.npy', r.standard_normal((30, 20)))
np.save('B.npy', r.standard_normal((20, 10)))
np.save('A2.npy', r.standard_normal((30, 20)))
np.savez('d.npz', x=np.load('A.npy'), y=np.load('B.npy'))
"; report $? "operands are made with numpy"
"$S" keygen me.key >fingerprint 2>err
sed -n 's/.*\(sha256:[A-Za-z0-9+\/=_-]*\).*/* key=\1 role=coordinator/p' fingerprint | head -1 >allow

# --- signals while it starts --------------------------------------------------------------------

py "
for i in range(12):
    p = subprocess.Popen(['$S', 'node', '--key', 'me.key', '--allow', 'allow'],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    time.sleep(0.004 * i)
    p.send_signal(signal.SIGTERM)
    try: p.wait(10)
    except subprocess.TimeoutExpired: p.kill(); raise
"; report $? "a node ends if it receives a signal while it starts"

py "
def given_up(count, after):
    p = subprocess.Popen(['$S', 'multiply', 'A.npy', 'B.npy', '-o', 'C.npy', '-n', str(count)],
                         stderr=subprocess.PIPE, text=True)
    said = p.stderr.readline()
    time.sleep(after)
    t = time.monotonic()
    p.send_signal(signal.SIGTERM)
    try: said += p.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired: p.kill(); raise
    took = time.monotonic() - t
    print(count, after, took, said)
    assert p.returncode == 130 and not os.path.exists('C.npy')
    assert said.count('starting 400 nodes') == 1
    return took
for after in 0, 0.3, 1: # one of them is early enough on a busy machine
    assert any(given_up(400, after) < 3 for _ in range(5))
"; report $? "a signal ends local nodes while they start"

# --- one file under two options -------------------------------------------------------------------

refuses() { # name, paths to keep, then arguments
    name=$1 kept=$2; shift 2
    sum=$(cat $kept 2>&1 | cksum)
    fails 2 "would replace" "$@"
    bad=$?
    [ $bad = 0 ] && [ "$sum" = "$(cat $kept 2>&1 | cksum)" ]
    report $? "$name"
}
ln -s A.npy link.npy
head -c 32 /dev/urandom >seed
"$S" meta build z=dot:30x20x10 --nodes 2 -o m.npz >out 2>err; report $? "metadata is built"
refuses "a result does not replace the key" me.key multiply A.npy B.npy -o me.key --key me.key -n 2
refuses "a result does not replace an operand" A.npy multiply A.npy B.npy -o ./A.npy -n 2
refuses "a result does not replace an operand through a link" A.npy multiply A.npy B.npy -o link.npy -n 2
refuses "nor the seed" seed multiply A.npy B.npy -o seed --seed seed -n 2
refuses "a result does not replace the metadata" m.npz multiply A.npy B.npy -o m.npz --meta m.npz -n 2
refuses "a certificate does not replace an operand" A.npy multiply A.npy B.npy -o C.npy -n 2 \
    --certificate A.npy
refuses "a certificate does not replace a result that does not exist yet" A.npy multiply A.npy B.npy -o C.npy -n 2 \
    --certificate "$T/C.npy"
ln d.npz hard.npz
for options in -o "-o C.npy --certificate" "-o C.npy --meta" "-o C.npy --record"; do
    refuses "the file of $options does not replace the archive of a left operand" d.npz multiply d.npz:x B.npy -n 2 $options d.npz
    refuses "nor that of a right operand by another name" d.npz multiply A.npy d.npz:y -n 2 $options hard.npz
done
refuses "an element-wise result does not replace the archive of its operand" d.npz apply exp d.npz:x -o d.npz -n 2
refuses "masks do not replace the archive of B" d.npz prepare d.npz:y --rows 3 -o d.npz
for option in data right labels public-data public-labels; do
    refuses "a page does not replace the archive of --$option" d.npz audit rec --$option d.npz:x --html d.npz
done
refuses "a page does not replace the data" A.npy audit rec --data A.npy --html A.npy
refuses "a result is not written where an operand would then be read" d.npz multiply d.npz:x B.npy -n 2 -o d.npz:x
"$S" multiply d.npz:x B.npy -o e.npz:x -n 2 -q 2>err && cp A.npy d.npz:x && "$S" multiply d.npz:x B.npy -o d.npz -n 2 -q 2>err
report $? "a file whose whole name is FILE.npz:NAME is an operand of its own"
refuses "metadata does not replace its seed" seed meta build z=dot:3x2x1 --nodes 2 --seed seed \
    -o seed --force
"$S" multiply A2.npy B.npy -o C.npy -n 2 --meta m.npz -q 2>err
cp m.npz used.npz
fails 2 "has been used for operands" meta build z=dot:3x2x1 --nodes 2 -o m.npz && cmp -s m.npz used.npz
report $? "metadata that has been used is not replaced"
fails 2 "is not valid metadata" meta build z=dot:3x2x1 --nodes 2 -o A.npy
report $? "a file that is not metadata is not replaced"
run meta build z=dot:30x20x10 --nodes 2 -o m.npz --force; [ $code = 0 ]
report $? "--force replaces it"
fails 2 "without-seed" meta build z=dot:3x2x1 --nodes 2 -o n.npz --without-seed
report $? "a seed form without its seed is refused"

# --- two commands at once --------------------------------------------------------------------------------

py "
for i in range(5):
    subprocess.run(['$S', 'meta', 'build', 'z=dot:30x20x10', '--nodes', '2', '-o', 'm.npz', '--force'],
                   check=True, stdout=subprocess.DEVNULL)
    both = [subprocess.Popen(['$S', 'multiply', a, 'B.npy', '-o', 'C-' + a, '-n', '2', '-q',
                              '--meta', 'm.npz']) for a in ('A.npy', 'A2.npy')]
    codes = sorted(p.wait(60) for p in both)
    assert codes == [0, 10], codes
"; report $? "if two runs with different operands use one metadata file at once, one of them is refused"

# --- found before anything is started -----------------------------------------------------------

early() { # name, exit code, words, arguments: the error is found before nodes start
    name=$1; shift
    fails "$@" && ! grep -q 'starting' err
    report $? "$name"
}
M="multiply A.npy B.npy -o C.npy -n 9"
early "a missing output folder is reported before nodes start" 4 "nowhere/C.npy: cannot write" multiply A.npy B.npy -o nowhere/C.npy -n 9
early "a missing key is reported before nodes start" 4 nofile $M --key nofile
early "an invalid key is reported before nodes start" 6 A.npy $M --key A.npy
early "a missing folder of the certificate is reported before nodes start" 4 nodir $M --certificate nodir/c.json
early "--group without effect is reported before nodes start" 2 'group has no effect' $M --scheme plain --group 4
early "--shuffle-rows without effect is reported before nodes start" 2 'shuffle-rows has no effect' $M --scheme plain --shuffle-rows
early "--certificate-public without --certificate is reported before nodes start" 2 'without --certificate' $M --certificate-public
early "--operation without --meta is reported before nodes start" 2 'without --meta' $M --operation z
run multiply A.npy B.npy -n 9 -o /dev/stdout --json
[ $code = 2 ] && grep -q 'both write to standard output' out; report $? "-o /dev/stdout and --json are refused together"
py "a = np.load('A.npy'); a[7, 3] = np.nan; np.save('nan.npy', a)"
early "a value that fixed point cannot represent is reported with its file" 11 'nan.npy: row 7, column 3' \
    multiply nan.npy B.npy -o C.npy -n 9 --mode exact
early "a node's name that is invalid in a node file is reported" 2 'my node' node --key me.key --allow allow \
    --name 'my node'
early "a domain with a newline is reported" 2 'domain' node --key me.key --allow allow --domain 'a
b'

# --- warnings ------------------------------------------------------------------------

py "np.save('wide.npy', np.array([[1e9, 1.0], [1.0, 1.0]])); np.save('I.npy', np.eye(2))"
run multiply wide.npy I.npy -o W.npy -n 2 --mode exact
[ $code = 0 ] && grep -q 'wide.npy: 3 of 4 entries that are not 0' err && ! grep -q 'I.npy:' err
report $? "exact arithmetic reports entries that it rounds to zero"
grep -q 'became 0: --mode float keeps them' err; report $? "the hint does not name --bits 26 where it keeps no more"
py "np.save('wider.npy', np.array([[1e6, 1.0], [1.0, 1.0]]))"
run multiply wider.npy I.npy -o W.npy -n 2 --mode exact
[ $code = 0 ] && grep -q 'wider.npy: 3 of 4 .* became 0: --bits 26 keeps more, --mode float keeps all' err
report $? "it names --bits 26 where it keeps more"
run multiply wide.npy I.npy -o W.npy -n 3 --scheme share
[ $code = 0 ] && grep -q 'became 0: private schemes use at most 26 bits, which keep no more' err
report $? "so it is under a private scheme, which has no floats"
run multiply wide.npy I.npy -o W.npy -n 2 --mode exact --json
py "r = json.load(open('out'))['rounding']
assert r[0]['vanished'] == 3 and r[0]['nonzeros'] == 4 and 2e-6 < r[0]['relative_error'] < 3e-6, r
assert r[1] == {'vanished': 0, 'nonzeros': 2, 'relative_error': 0.0}, r"
report $? "JSON reports them, too"

for v in SHERD_DRY_RUN SHERD_SEED SHERD_KEY; do
    export "$v=x"
    run keygen me.key --show
    unset "$v"
    [ $code = 0 ] && grep -q "warning: $v is ignored" err
    report $? "a warning says that $v is ignored"
done
export SHERD_GROPU=1
run version
unset SHERD_GROPU
grep -q 'SHERD_GROPU sets no option; did you mean SHERD_GROUP?$' err
report $? "a misspelt variable is reported with the nearest"
export SHERD_GROUP=1 SHERD_TEST_X=1 SHERD_MNIST=x
run version
unset SHERD_GROUP SHERD_TEST_X SHERD_MNIST
[ ! -s err ]; report $? "variables that are read, or are for tests, cause no warning"
escape=$(printf '\033')
fails 4 '\\x1b\[31m\\x0aevil' multiply "$(printf '\033[31m\nevil\302\2330m')" B.npy -o C.npy -n 2 &&
    grep -q '\\x9b0m' err && ! grep -q "$escape" err
report $? "control characters of a file's name do not reach the terminal"
reversed=$(printf 'a\342\200\256zpn.b')
run meta build z=dot:4x3x2 --nodes 2 -o "$reversed"
[ $code = 0 ] && grep -q '^a\\u202ezpn.b: ' out && run meta verify "$reversed" && [ $code = 0 ] &&
    grep -q '^a\\u202ezpn.b: valid' out && fails 4 'a\\u202ezpn.b/no' meta verify "$reversed/no" &&
    ! grep -q "$reversed" out err
report $? "characters that reverse text do not reach the terminal, in results neither"
run multiply A.npy B.npy -o C.npy -n 2 --certificate c.json
[ $code = 0 ] && grep -q 'c.json will be signed with a new key' err &&
    grep -q '^wrote c.json' err
report $? "without --key the command reports the certificate's new key, and that it was written"

fails 2 'more than 1.1 TB' meta build z=dot:10x4000000x4000000 --nodes 2 --form expanded -o big.npz
report $? "arrays larger than any disk are refused at once"
free=$(df --output=avail -B1 . | tail -1)
if [ "$free" -lt 500000000000 ]; then
    fails 4 'its disk has' meta build "z=dot:10x$((free / 40000))x20000" --nodes 2 --form expanded \
        -o big.npz && [ ! -e big.npz ]
    report $? "arrays larger than this disk are refused at once"
fi

# --- operands from pipes ------------------------------------------------------------------------

mkfifo pipe
run multiply A.npy B.npy -o here.npy -n 3 --scheme share
(sleep 0.3; cat A.npy) >pipe &
run multiply pipe B.npy -o C.npy -n 3 --scheme share
[ $code = 0 ] && cmp here.npy C.npy >>err 2>&1
report $? "a pipe with a slow writer is read to its end"
cp here.npy C.npy
for pipe in pipe half; do # no writer; a writer that stopped after 50 bytes
    interrupted=1
    [ $pipe = pipe ] || { mkfifo half; (head -c 50 A.npy; exec sleep 60) >half & writer=$!; }
    timeout -s KILL 20 sh -c 'echo $$ >pid; exec "$@"' sh "$S" multiply $pipe B.npy -o C.npy -n 2 >out 2>err </dev/null &
    waits=$!
    await test -s pid && await catches "$(cat pid)" 0x4000 && kill "$(cat pid)"
    wait $waits; code=$?
    rm -f pid
    [ $code = 130 ] && grep -q "^sherd: multiply: $pipe: interrupted before its writer ended" err && cmp here.npy C.npy >>err 2>&1 &&
        interrupted=0
    report $interrupted "one signal ends a command that waits for a pipe: $pipe"
done
kill "$writer" 2>>err

# --- a local cluster that lost a node -----------------------------------------------------------

mkdir -m 700 run
run cluster up -n 2
second=$("$S" cluster status --json | sed 's/.*"name":"node-2","pid":\([0-9]*\).*/\1/')
kill -9 "$second" 2>>err
gone "$second"
fails 2 '1 of its 2 nodes have ended' cluster up -n 3; report $? "up reports how many nodes are gone"
run cluster status --json
[ $code = 7 ] && py "d = json.load(open('out'))
assert not d['ok'] and [n['up'] for n in d['nodes']] == [True, False], d"
report $? "status --json lists them, too"
run cluster down; [ $code = 0 ]; report $? "down ends the remaining nodes"

# --- the end ------------------------------------------------------------------------------------
echo "1..$n"
