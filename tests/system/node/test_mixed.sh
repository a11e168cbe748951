#!/bin/sh
# Nodes on processors and on a device (PoCL's) in one cluster: the demo's job, blind products, and a
# private training of mnist-proper and one by gradients have the bits of processors alone. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
pids=
trap 'kill $pids 2>/dev/null; rm -rf "$T"' EXIT

"$S" keygen c.key >/dev/null 2>&1 || exit 1
echo "* key=$("$S" keygen --show c.key | grep -o 'sha256:[^ ]*') role=coordinator" >allow.txt
is_listening() { [ -s "$1" ]; }
node() { # name, backend
    "$S" keygen "$1.key" >/dev/null 2>&1
    "$S" node --key "$1.key" --allow allow.txt --domain "$1" --backend "$2" >"$1.txt" 2>"$1.err" </dev/null &
    pids="$pids $!"
    await is_listening "$1.txt"
}
node one cpu && node two cpu && node three cpu && node device opencl
report $? "nodes start"
cat one.txt two.txt three.txt >cpus.txt
cat one.txt device.txt three.txt >mixed.txt

run demo --nodes mixed.txt --key c.key --samples 3000 --json
[ $code = 0 ] && /usr/bin/python3 - out <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
exact = r["exact"]
assert exact["equal"] and exact["bit_equal"] == exact["entries"] and len(exact["planned"]) == 3 and min(exact["planned"]) > 0, r
END
report $? "the demo's job is exact over both, and each node has a part of it"

/usr/bin/python3 -c "
import numpy as np
rng = np.random.default_rng(4)
np.save('a.npy', rng.standard_normal((90, 70)))
np.save('b.npy', rng.standard_normal((70, 50)))"
export XDG_STATE_HOME="$T/state"
good=0
for nodes in one device mixed; do
    run prepare b.npy --rows 90 -o $nodes.masks && [ $code = 0 ] || good=1
    run multiply a.npy b.npy --scheme blind --masks $nodes.masks --nodes $nodes.txt --key c.key -o $nodes.npy --json
    [ $code = 0 ] || good=1
done
[ $good = 0 ] && cmp -s one.npy device.npy && cmp -s one.npy mixed.npy && /usr/bin/python3 - out <<'END'
import json, sys
nodes = json.load(open(sys.argv[1]))["nodes"]
assert [n["planned"] for n in nodes] == [30, 30, 30] and all(n["bytes_out"] > 0 for n in nodes), nodes
END
report $? "a blind product has the same bits on a device, and over processors and a device, each with a part"

good=0
for nodes in cpus mixed; do
    run train mnist-proper --examples 512 --scheme share --nodes $nodes.txt --key c.key --same-host-domains --seed 3 \
        --epochs 1 -o $nodes.npz
    [ $code = 0 ] || good=1
done
[ $good = 0 ] && cmp -s cpus.npz mixed.npz
report $? "mnist-proper is trained in shares to the same bits"

cat one.txt device.txt >pair.txt
good=0
for recipe in mnist-proper lenet; do
    for nodes in one pair; do
        run train $recipe --examples 512 --by gradients --nodes $nodes.txt --key c.key --seed 3 --epochs 1 --trace trace -o $nodes.npz
        [ $code = 0 ] || good=1
    done
    cmp -s one.npz pair.npz || good=1
done
[ $good = 0 ] && grep -q '"event":"pass".*"node":"node-1 ' trace && grep -q '"event":"pass".*"node":"node-2 ' trace
report $? "networks are trained by gradients over a processor and a device to the same bits"
echo "1..$n"
