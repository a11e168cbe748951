#!/bin/sh
# Nodes on devices, as processes: PoCL's device as an OpenCL device like any other, and a stand-in for
# libOpenCL whose faults SHERD_TEST_OPENCL chooses (preload_opencl.c).
. "$(dirname "$0")/../../support/tap.sh"
B=$(cd "$R" && realpath "${BUILD:-build/plain}")
standin="$B/tests/system/node/preload_opencl.so"
pids=
trap 'kill $pids 2>/dev/null; rm -rf "$T"' EXIT

{ "$S" keygen c.key && "$S" keygen n.key; } >/dev/null 2>&1 || exit 1
echo "* key=$("$S" keygen --show c.key | grep -o 'sha256:[^ ]*') role=coordinator" >allow.txt
is_listening() { [ -s "$1" ]; }
node() { # name, then options: starts a node, whose line is in NAME.txt and whose messages are in NAME.err
    name=$1
    shift
    rm -f "$name.txt"
    [ -f "$name.key" ] || "$S" keygen "$name.key" >/dev/null 2>&1
    "$S" node --key "$name.key" --allow allow.txt "$@" >"$name.txt" 2>"$name.err" </dev/null &
    pid=$!
    pids="$pids $pid"
    await is_listening "$name.txt"
}
refuses() { # faults, exit code, words, then options
    faults=$1 want=$2 words=$3
    shift 3
    SHERD_TEST_OPENCL=$faults run node --key n.key --allow allow.txt --opencl-library "$standin" "$@"
    [ $code = "$want" ] && grep -q -- "$words" err && [ ! -s out ]
}

# --- lists and bad input ---------------------------------------------------------------------------
run node --list-devices
grep -q '^opencl 0 .* processor  ' out && [ $code = 0 ]
report $? "the system's OpenCL, which the set-up installs, has a device"

export SHERD_TEST_OPENCL=devices=2
run node --list-devices --opencl-library "$standin"
grep -q '^opencl 0  *1.1 GB  ok  *Stand-in GPU 0$' out && grep -q '^opencl 1 .*Stand-in GPU 1$' out &&
    [ "$(awk 'length > 80' out err | wc -l)" = 0 ]
report $? "devices are listed in 80 columns"

run node --list-devices --opencl-library "$standin" --json
/usr/bin/python3 - out <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
assert [x["number"] for x in r["devices"]] == [0, 1] and r["missing"] is None, r
assert r["devices"][1]["driver"] == "Stand-in 1.0" and r["devices"][1]["usable"], r
END
report $? "--json lists them, too"

SHERD_TEST_OPENCL=abort run node --list-devices --opencl-library "$standin"
[ $code = 0 ] && grep -q "the driver of opencl ends the process" err
report $? "a driver that aborts ends another process"

unset SHERD_TEST_OPENCL
good=0
refuses '' 2 'there is no device 3: OpenCL has 1 device' --backend opencl --device 3 || good=1
refuses '' 2 "expected numbers, found 'a'" --backend opencl --device a || good=1
refuses '' 2 "expected numbers, found '0,0'" --backend opencl --device 0,0 || good=1
refuses '' 2 'backend cpu has no devices' --backend cpu --device 0 || good=1
refuses '' 2 '5368709120 bytes of Stand-in GPU 0' --backend opencl --device-memory 5G || good=1
refuses old 2 'it has no OpenCL 1.2' --backend opencl || good=1
refuses busy 2 'others may use it alone' --backend opencl || good=1
refuses none 2 'has no device' --backend opencl || good=1
refuses nobuild 1 'cannot write to the cache' --backend opencl || good=1
refuses wrong=2 1 'computes wrongly' --backend opencl || good=1
refuses abort 1 'ends the process' --backend opencl || good=1
refuses crash=3 1 'ends the process' --backend opencl || good=1
refuses stuck 1 'does not answer' --backend opencl --probe-timeout 0.5 || good=1
refuses '' 2 '--record cannot be combined with --fallback cpu' --fallback cpu --record seen || good=1
for address in 10.0.0.5:7001 '[::1]:7001'; do
    refuses '' 2 'must listen on the same port' --fallback cpu --listen :0 --advertise "$address" || good=1
done
standin=$B/tests/system/node/preload_opencl_lacking.so
refuses '' 2 'has no function clFinish' --backend opencl || good=1
standin=/nothing
refuses '' 2 'OpenCL cannot be loaded: /nothing' --backend opencl || good=1
standin=$B/tests/system/node/preload_opencl.so
report $good "what cannot be used is one sentence and the right exit code"

# --- choice ----------------------------------------------------------------------------------------
backend_of() { "$S" cluster status --nodes "$1.txt" --key c.key --json >state 2>>err && grep -o '"backend":"[a-z]*"' state; }
node auto --opencl-library "$standin" && [ "$(backend_of auto)" = '"backend":"opencl"' ]
report $? "auto chooses a GPU that passes its self-test"
kill "$pid" && wait "$pid" # its status: 0
report $? "a node on a device ends on SIGTERM"

SHERD_TEST_OPENCL=cpu node auto --opencl-library "$standin" -v && [ "$(backend_of auto)" = '"backend":"cpu"' ] &&
    grep -q 'computing on the processor: opencl has no device but the processor' auto.err
report $? "auto does not choose a processor, and says why it computes without a GPU"
kill "$pid"
SHERD_TEST_OPENCL=abort node auto --opencl-library "$standin" && [ "$(backend_of auto)" = '"backend":"cpu"' ] &&
    grep -q 'computing on the processor: the driver of opencl ends the process' auto.err
report $? "a driver that fails is a warning, and the node computes on the processor"
kill "$pid"

SHERD_TEST_OPENCL=chatty node auto --opencl-library "$standin" && [ "$(backend_of auto)" = '"backend":"opencl"' ] &&
    [ "$(wc -l <auto.txt)" = 1 ] && grep -q '^driver$' auto.err
report $? "what a driver prints goes to standard error"
kill "$pid"
SHERD_TEST_OPENCL=devices=3,old=2 node auto --opencl-library "$standin" && [ "$(backend_of auto)" = '"backend":"opencl"' ] &&
    grep -q 'computing on opencl 2, Stand-in GPU 2: Stand-in GPU 0 cannot be used: it has no OpenCL 1.2' auto.err
report $? "auto uses the first GPU that is usable, and says why it is not the first one"
kill "$pid"
SHERD_TEST_OPENCL=old node auto --opencl-library "$standin" && [ "$(backend_of auto)" = '"backend":"cpu"' ] &&
    grep -q 'computing on the processor: Stand-in GPU 0 cannot be used: it has no OpenCL 1.2' auto.err
report $? "a GPU that cannot be used is a warning, and the node computes on the processor"
kill "$pid"

# --- the same bits ---------------------------------------------------------------------------------
/usr/bin/python3 -c "
import numpy as np
rng = np.random.default_rng(1)
np.save('a.npy', rng.standard_normal((150, 90)))
np.save('b.npy', rng.standard_normal((90, 70)))
np.save('i.npy', rng.integers(-9, 9, (40, 50)))
np.save('x.npy', rng.standard_normal((60, 50)))"
node one --backend cpu --domain one && node two --backend cpu --domain two && node three --backend cpu --domain three &&
    node pocl --backend opencl --domain pocl && node standin --opencl-library "$standin" --domain standin
report $? "nodes on processors, PoCL and the stand-in start"
cat one.txt two.txt three.txt >cpus.txt
cat one.txt pocl.txt standin.txt >mixed.txt
cat pocl.txt >device.txt
use() { # file of nodes, result, then the verb and its options
    nodes=$1 to=$2
    shift 2
    run "$@" -o "$to" --nodes "$nodes" --key c.key
    [ $code = 0 ]
}
good=0
for scheme in plain permute share share1; do
    case $scheme in
    share) how=--same-host-domains ;;
    share1) how="--same-host-domains --public b" ;;
    *) how= ;;
    esac
    for nodes in cpus mixed; do
        # shellcheck disable=SC2086
        use $nodes.txt $nodes.npy multiply a.npy b.npy --scheme $scheme --bits 24 $how || good=1
    done
    cmp -s cpus.npy mixed.npy || good=1
    [ $good = 0 ] || { echo "# $scheme"; break; }
done
report $good "exact products of every kind have the same bits on processors and devices"

good=0
for op in exp tanh sigmoid relu square; do
    use cpus.txt cpus.npy apply $op x.npy && use device.txt device.npy apply $op x.npy &&
        cmp -s cpus.npy device.npy || good=1
done
report $good "element-wise functions have the same bits on processors and devices"

good=0
for nodes in cpus mixed; do
    run train spiral --scheme share --nodes $nodes.txt --key c.key --same-host-domains --seed 3 --epochs 1 -o $nodes.npz
    [ $code = 0 ] || { good=1; break; }
done
[ $good = 0 ] && cmp -s cpus.npz mixed.npz
report $? "a private training has the same bits on processors and devices"

# --- memory ----------------------------------------------------------------------------------------
/usr/bin/python3 -c "
import numpy as np
rng = np.random.default_rng(2)
np.save('tall.npy', rng.integers(-99, 99, (700, 600)))
np.save('wide.npy', rng.integers(-99, 99, (600, 1100)))"
use one.txt cpus.npy multiply tall.npy wide.npy --scheme plain --bits 8 # B has 5.3 MB in float64
node small --opencl-library "$standin" --device-memory 4M
use small.txt mixed.npy multiply tall.npy wide.npy --scheme plain --bits 8 && cmp -s cpus.npy mixed.npy &&
    kill "$pid" && wait "$pid"
report $? "a device with little memory gets smaller cells"

# --- failures --------------------------------------------------------------------------------------
says() { # words, file: multiplies once more, and looks for the words
    use both.txt c.npy multiply a.npy b.npy --scheme plain --bits 24 && cmp -s c.npy want.npy || touch differs
    grep -q "$1" "$2"
}
lost_with() { # the same, until the node has lost its device; every result must be right
    rm -f differs
    await says "$@" && [ ! -e differs ]
}
use cpus.txt want.npy multiply a.npy b.npy --scheme plain --bits 24
for fault in hang lost; do
    SHERD_TEST_OPENCL=$fault=35 node bad --opencl-library "$standin" --device-timeout 1
    cat bad.txt one.txt >both.txt
    lost_with 'the node has no device left' bad.err
    lost=$?
    wait "$pid"
    ended=$?
    [ $lost = 0 ] && [ $ended = 1 ]
    report $? "a node whose device fails ($fault) ends, and the job has the same bits"
done

SHERD_TEST_OPENCL=hang=35 node safe --opencl-library "$standin" --device-timeout 1 --fallback cpu
cat safe.txt one.txt >both.txt
lost_with 'serving on the processor' safe.err && [ "$(backend_of safe)" = '"backend":"cpu"' ] &&
    [ "$(wc -l <safe.txt)" = 1 ]
report $? "with --fallback cpu the node continues with the same key and address"
kill "$pid" && wait "$pid"
report $? "it ends on SIGTERM after that"

SHERD_TEST_OPENCL=lost=35 node safe --opencl-library "$standin" --fallback cpu
cat safe.txt one.txt >both.txt
lost_with 'continuing on the processor' safe.err
kill "$pid"
gone "$pid"
report $? "it ends on SIGTERM while it starts on the processor"

# One lane of the device hangs, and the other one loses the device while that call is in progress.
says_beside() { # words, file: multiplies twice at the same time, and looks for the words
    for i in 1 2; do
        "$S" multiply a.npy b.npy --scheme plain --bits 24 --nodes both.txt --key c.key -o "beside$i.npy" \
            >/dev/null 2>&1 &
        eval "job$i=\$!"
    done
    # shellcheck disable=SC2154
    { wait "$job1" && wait "$job2" && cmp -s beside1.npy want.npy && cmp -s beside2.npy want.npy; } || touch differs
    grep -q "$1" "$2"
}
rm -f differs
SHERD_TEST_OPENCL=hang=45,lost=46 node pair --opencl-library "$standin" --device-timeout 60 --fallback cpu
cat pair.txt one.txt >both.txt
await says_beside 'serving on the processor' pair.err && [ ! -e differs ] &&
    grep -q 'the node has no device left' pair.err && [ "$(backend_of pair)" = '"backend":"cpu"' ]
report $? "with --fallback cpu a node whose device is lost while a call hangs continues"
kill "$pid" && wait "$pid"
node safe --opencl-library "$standin" --fallback cpu && kill "$pid" && wait "$pid"
report $? "and before"

# --- doctor ----------------------------------------------------------------------------------------
run doctor
grep -q '^ok  *gpu  *opencl 0: .*Portable Computing Language' out && grep -q 'GF/s in float64' out
report $? "doctor names devices with driver, memory and rates"
echo "1..$n"
