#!/bin/sh
# Plans for nodes on devices of this machine: predicted times are near the measured ones, copies to a
# device can be the limit, and the plan of a product in shares names the node that sets the pace.
# Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
B=$(cd "$R" && realpath "${BUILD:-build/plain}")
export SHERD_CUDA_LIBRARY="$B/tests/system/node/preload_cuda.so"
pids=
trap 'kill $pids 2>/dev/null; rm -rf "$T"' EXIT

/usr/bin/python3 -c "
import numpy as np
rng = np.random.default_rng(4)
np.save('a.npy', rng.standard_normal((600, 700)))
np.save('b.npy', rng.standard_normal((700, 500)))
np.save('tall.npy', rng.standard_normal((2500, 2)))
np.save('flat.npy', rng.standard_normal((2, 2500)))"

# Other processes slow down a node or its measurements, so what is far from the prediction is repeated:
# a wrong prediction is far from it each time.
predicts() { # bound, then arguments of multiply: checks bound and time of the forecast
    bound=$1
    shift
    for _ in 1 2 3 4 5; do
        rm -f c.npy
        run multiply "$@" -o c.npy -v --json
        [ $code = 0 ] && /usr/bin/python3 - out "$bound" <<'END' && return 0
import json, sys
r = json.load(open(sys.argv[1]))
p = r["predicted"]
assert p["bound"] == sys.argv[2] and p["devices"] == 1 and p["local"], p
assert p["seconds"] / 3 < r["seconds"] < p["seconds"] * 3, (p, r["seconds"])
if p["bound"] == "device link":
    assert p["seconds_copies"] > p["seconds_nodes"], p
END
    done
    return 1
}
for backend in cuda opencl; do
    predicts nodes a.npy b.npy -n 1 --backend $backend --scheme plain
    report $? "a product on a device of $backend takes about the predicted time, and products are its limit"
done
export SHERD_TEST_CUDA=slowcopy=20000
predicts "device link" tall.npy flat.npy -n 1 --backend cuda --scheme plain
report $? "a product behind a slow link takes about the predicted time, and copies are its limit"
lines() { tr -s '\n ' '  ' <out; }
run plan tall.npy flat.npy -n 1 --backend cuda
[ $code = 0 ] && grep -q '^  plain .*  device$' out &&
    lines | grep -q ' plain: the device link is the limit: copies take [^()]* ([^()]*/s), products' &&
    [ "$(awk 'length > 80' out | wc -l)" = 0 ]
report $? "the plan says so"
unset SHERD_TEST_CUDA
good=0
for options in "--backend cuda" "--devices 1" "--device 0" "--backend auto"; do
    # shellcheck disable=SC2086
    run multiply tall.npy flat.npy -n 1 $options --scheme plain --dry-run
    [ $code = 0 ] && grep -q '^\* plain .* -  *-  *-$' out && grep -q '^no times: ' out || good=1
done
run multiply tall.npy flat.npy -n 1 --backend cpu --scheme plain --dry-run
[ $code = 0 ] && ! grep -q '^no times: ' out || good=1
report $good "without a node, the time of a product on a device is not known"

"$S" keygen c.key >/dev/null 2>&1 || exit 1
echo "* key=$("$S" keygen --show c.key | grep -o 'sha256:[^ ]*') role=coordinator" >allow.txt
is_listening() { [ -s "$1" ]; }
node() { # name, then options
    name=$1
    shift
    "$S" keygen "$name.key" >/dev/null 2>&1
    "$S" node --key "$name.key" --allow allow.txt --name "$name" --domain "$name" --selftest quick "$@" >"$name.txt" 2>"$name.err" </dev/null &
    pids="$pids $!"
    await is_listening "$name.txt"
}
node one --backend cpu && node two --backend cpu && node three --backend cpu && node gpu --backend cuda &&
    cat one.txt two.txt gpu.txt >3.txt && cat one.txt two.txt three.txt gpu.txt >4.txt
report $? "nodes start"
plan() { # number of nodes, then options
    nodes=$1
    shift
    run plan 400x400x400 --nodes "$nodes.txt" --key c.key --same-host-domains "$@"
}
plan 3 && [ $code = 0 ] && lines | grep -q ' share, 1 colluding: gpu sets the pace ([0-9.e-]* GF/s [a-z0-9 ]*) share1'
report $? "the slowest of the nodes that a product in shares needs sets the pace"
plan 4 --spare 1 && [ $code = 0 ] &&
    lines | grep -q ' share, 1 colluding: one sets the pace ([0-9.e+]* GF/s [a-z0-9 ]*); the slowest one is spare ' &&
    [ "$(awk 'length > 80' out | wc -l)" = 0 ]
report $? "a spare node does not: the slowest one is spare"
for count in 3 4; do
    plan $count --json && cp out $count.json
done
/usr/bin/python3 - 3.json 4.json <<'END'
import json, sys
plans = [next(x for x in json.load(open(f))["choices"] if x["choice"].startswith("share,")) for f in sys.argv[1:]]
assert [p["pace"] for p in plans] == ["gpu", "one"] and [p["slack"] for p in plans] == [0, 1], plans
assert plans[0]["pace_gflops"] * 2 < plans[1]["pace_gflops"] and plans[1]["seconds"] < plans[0]["seconds"] / 2, plans
END
report $? "--json names it; without --spare the code is taken that needs no answer of a slow node"
echo "1..$n"
