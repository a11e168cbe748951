#!/bin/sh
# --timeout ends every verb within two seconds, and so does the first Ctrl-C, for anything that the
# command waits for or reads: a silent pipe, /dev/zero, a node whose compute thread is blocked, a full
# pipe. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
LIAR=$(realpath "$R/${B:-build/plain}/tests/system/node/prog_misbehave")
mkfifo silent full p.conf
sleep 600 >silent &
holder=$!
sleep 600 <full &
reader=$!
trap 'kill $holder $reader 2>/dev/null; wait; rm -rf "$T"' EXIT
/usr/bin/python3 -c "
import numpy as np
r = np.random.RandomState(1)
np.save('A.npy', r.randn(300, 200)); np.save('B.npy', r.randn(200, 900))
np.lib.format.open_memmap('huge.npy', mode='w+', dtype=np.float64, shape=(200000, 8000)) # a hole
np.save('h.npy', r.randn(8000, 2))
x = r.randn(6000, 50); np.savez('d.npz', x=x, y=(x[:, 0] > 0).astype(int))" 2>err
cat >net.conf <<'E'
input = 50
layer = dense 300
layer = tanh
layer = dense 2
loss = cross-entropy
data = file
weights = normal 0.1
batch = all
order = shuffled
epochs = 100000
rate = 0.1
E
now() { date +%s%N | cut -c1-13; }
exec 9<>p.conf # open for writing, by this test
# Two seconds, and as long as a command takes that does nothing. A busy machine is late now and then, a
# defect each time: what is late is tried again, twice.
began=$(now)
"$S" multiply A.npy B.npy -n 2 -o C.npy >out 2>err </dev/null
idle=$(($(now) - began))
late() { [ $took -ge $((given + 2000 + idle)) ]; }
ends() { # code, time limit in ms, words; then a command
    want=$1 given=$2 words=$3
    shift 3
    for _ in 1 2 3; do
        began=$(now)
        "$@" >out 2>err </dev/null
        code=$?
        took=$(($(now) - began))
        late || break
    done
    [ $code = "$want" ] && ! late && grep -q -- "$words" err out && return
    echo "# exit $code after $took ms (of $given, idle $idle): $*"
    return 1
}

# What waits for its limit does so at once with the others.
beside "--timeout ends a product of a silent pipe" \
    ends 124 1000 '--timeout expired; silent: .*its writer' \
    "$S" multiply silent B.npy -o C.npy -n 2 --timeout 1
beside "--timeout with --json prints an object" \
    ends 124 1000 'time' "$S" multiply A.npy silent -o C.npy -n 2 --timeout 1 --json
beside "--timeout ends a product of an endless operand" \
    ends 124 1000 'time' "$S" multiply /dev/zero B.npy -o C.npy -n 2 --timeout 1
beside "--timeout ends a forecast of a silent pipe" \
    ends 124 1000 'time' "$S" multiply silent B.npy --dry-run -n 2 --timeout 1
beside "--timeout ends a plan of a silent pipe" \
    ends 124 1000 'time' "$S" plan silent B.npy -n 2 --timeout 1
beside "--timeout ends an element-wise operation on a silent pipe" \
    ends 124 1000 'time' "$S" apply tanh silent -o C.npy -n 2 --timeout 1
beside "--timeout ends the search for the largest number of a huge operand" \
    ends 124 1000 '--timeout expired$' "$S" multiply huge.npy h.npy -o C.npy -n 2 --scheme share --timeout 1
beside "--timeout ends the demonstration" \
    ends 124 1000 'time' "$S" demo --timeout 1
full() { "$S" multiply A.npy B.npy -o - -n 2 --timeout 1 >full 2>err; }
fills() { ends 124 1000 'time\|took' full || [ $code = 124 ]; }
beside "--timeout ends a product whose output pipe is full" fills
joined
ends 3 1000 'p.conf: a configuration is read from a regular file' \
    timeout -s KILL 20 "$S" multiply A.npy B.npy -o C.npy -n 2 --config p.conf --timeout 1
report $? "a configuration from a silent pipe is refused"
SHERD_CONFIG=p.conf ends 3 1000 'p.conf: a configuration is read from a regular file' \
    timeout -s KILL 20 "$S" multiply A.npy B.npy -o C.npy -n 2 --timeout 1
report $? "a configuration from a silent pipe by SHERD_CONFIG is refused"
"$S" keygen me.key >fingerprint 2>err
sed -n 's/.*\(sha256:[A-Za-z0-9+\/=_-]*\).*/* key=\1 role=coordinator/p' fingerprint | head -1 >allow
mkdir folder
ln -s allow link
mkfifo folder/train-images-idx3-ubyte
node() { timeout -s KILL 20 "$S" node --key me.key --allow allow "$@"; }
ok=0
for file in silent folder /dev/null /dev/full; do
    ends 4 0 "sherd: node: $file: .*\(regular\|directory\)" node --data d.npz --ledger $file && [ "$(grep -c '^sherd: ' err)" = 1 ] || ok=1
done
ends 4 0 'link: is a symbolic link' node --data d.npz --ledger link || ok=1
ends 4 0 'none/l: cannot open for writing' node --data d.npz --ledger none/l || ok=1
report $ok "a node's ledger that is not a regular file, or cannot be created, is reported at once"
ok=0
for file in silent folder /dev/zero; do
    ends 6 0 "$file: not a regular file" timeout -s KILL 20 "$S" node --key $file --allow allow || ok=1
    ends 3 0 "$file: not a regular file" timeout -s KILL 20 "$S" node --key me.key --allow $file || ok=1
    ends 3 0 "$file: not a regular file" node --data d.npz --peers $file || ok=1
done
ends 3 0 'silent: unknown kind of data file' node --data silent || ok=1
report $ok "keys, lists and data of a node that are not regular files are reported at once"
frozen() { # limit in seconds, a command with four nodes
    limit=$1
    shift
    SHERD_TEST_MISBEHAVE=frozen@node-3 ends 124 $((limit * 1000)) 'time' "$LIAR" "$@" --timeout $limit
}
for how in "--aggregate ring" "--aggregate halving-doubling" "" "--async" "--aggregate secure --simulate"; do
    beside "--timeout ends training by gradients $how with a node whose compute thread is blocked" \
        frozen 3 train net.conf --data d.npz -n 4 --by gradients $how --progress none
done
beside "--timeout ends a product with a node whose compute thread is blocked" \
    frozen 2 multiply A.npy B.npy -o C.npy -n 4 --scheme permute
joined

stops() { # words, then a command that is interrupted once it has started
    words=$1 given=0
    shift
    for _ in 1 2 3; do
        : >err
        "$@" >out 2>err </dev/null &
        pid=$!
        await ${ready:-catches} $pid 2
        sleep 0.5
        began=$(now)
        kill -INT $pid
        wait $pid
        code=$?
        took=$(($(now) - began))
        late || break
    done
    [ $code = 130 ] && ! late && grep -q -- "$words" err && return
    echo "# exit $code, $took ms after the signal (idle $idle): $*"
    return 1
}
# A shell makes background jobs ignore SIGINT; env restores the default action.
i="env --default-signal=INT"
mkdir npy && ln silent npy/silent.npy
beside "the first Ctrl-C ends a product" stops interrupted $i "$S" multiply silent B.npy -o C.npy -n 2
beside "the first Ctrl-C ends a forecast" stops interrupted $i "$S" multiply silent B.npy -n 2 --dry-run
beside "the first Ctrl-C ends a plan" stops interrupted $i "$S" plan silent B.npy -n 2
beside "the first Ctrl-C ends the making of masks" stops interrupted $i "$S" prepare silent -o m --rows 5
beside "the first Ctrl-C ends a verification" stops interrupted $i "$S" verify silent A.npy B.npy
beside "the first Ctrl-C ends a prediction" stops interrupted $i "$S" predict silent A.npy -o p.npy
beside "the first Ctrl-C ends the reading of a metadata file" stops interrupted $i "$S" meta show silent
beside "the first Ctrl-C ends the making of a metadata file" \
    stops interrupted $i "$S" meta build z=dot:4x4x4 --nodes 3 --seed silent -o m
beside "the first Ctrl-C ends the demonstration" stops interrupted $i "$S" demo
beside "the first Ctrl-C ends a measurement" stops interrupted $i "$S" bench
beside "the first Ctrl-C ends a product that is in a system call" \
    stops interrupted $i sh -c 'exec "$0" multiply A.npy B.npy -n 2 -o - >full' "$S"
beside "the first Ctrl-C ends a node that reads its data" \
    stops interrupted $i "$S" node --key me.key --allow allow --data npy/silent.npy
beside "the first Ctrl-C ends a node that reads a folder of data" \
    stops interrupted $i "$S" node --key me.key --allow allow --data folder
names() { LD_PRELOAD=$(realpath "$R/${B:-build/plain}/tests/system/cli/preload_names.so") exec "$@"; }
looks_up() { grep -q 'looking up' err; }
resolves() { ready=looks_up && stops "$@"; }
# --foreground: timeout would send the signal to its group, too, and a second Ctrl-C ends at once.
beside "the first Ctrl-C ends a node that resolves its listening address" \
    resolves interrupted names $i timeout --foreground -s KILL 30 "$S" node --key me.key --allow allow \
    --selftest quick --listen silent.invalid:0
joined
[ -z "$(find . -name '.*.npy*' -o -name 'm' -o -name 'p.npy')" ]
report $? "no processes and no temporary files remain"
echo "1..$n"
