#!/bin/sh
# Nodes on devices, as processes: PoCL's device as an OpenCL device like any other, and stand-ins for
# libOpenCL and libcuda whose faults an environment variable chooses (standin.h).
. "$(dirname "$0")/../../support/tap.sh"
B=$(cd "$R" && realpath "${BUILD:-build/plain}")
pids=
over() { # opencl or cuda: the stand-in that is used from here on
    driver=$1 library=--$1-library standin="$B/tests/system/node/preload_$1.so"
    variable=SHERD_TEST_$(echo "$1" | tr '[:lower:]' '[:upper:]')
}
with() { # faults of the stand-in, then a command
    export "$variable=$1"
    shift
    "$@"
    set -- $?
    unset "$variable"
    return "$1"
}
trap 'kill $pids 2>/dev/null; rm -rf "$T"' EXIT

{ "$S" keygen c.key && "$S" keygen n.key; } >/dev/null 2>&1 || exit 1
echo "* key=$("$S" keygen --show c.key | grep -o 'sha256:[^ ]*') role=coordinator" >allow.txt
listens_or_ended() { [ -s "$1" ] || none_lives "$pid"; }
node() { # name, then options: starts a node, whose line is in NAME.txt and whose messages are in NAME.err
    name=$1
    shift
    rm -f "$name.txt"
    [ -f "$name.key" ] || "$S" keygen "$name.key" >/dev/null 2>&1
    "$S" node --key "$name.key" --allow allow.txt "$@" >"$name.txt" 2>"$name.err" </dev/null &
    pid=$!
    pids="$pids $pid"
    await listens_or_ended "$name.txt"
    [ -s "$name.txt" ]
}
refuses() { # faults, exit code, words, then options
    faults=$1 want=$2 words=$3
    shift 3
    with "$faults" run node --key n.key --allow allow.txt "$library" "$standin" "$@"
    [ $code = "$want" ] && grep -q -- "$words" err && [ ! -s out ] && ! grep -q -- ' --memory' err
}

# --- lists and bad input ---------------------------------------------------------------------------
run node --list-devices
grep -q '^opencl 0 .* processor  ' out && [ $code = 0 ]
report $? "the system's OpenCL, which the set-up installs, has a device"

for driver in opencl cuda; do
    over $driver
    with devices=2 run node --list-devices "$library" "$standin"
    grep -q "^$driver 0  *1.1 GB  ok  *Stand-in GPU 0\$" out && grep -q "^$driver 1 .*Stand-in GPU 1\$" out &&
        [ "$(awk 'length > 80' out err | wc -l)" = 0 ]
    report $? "devices of $driver are listed in 80 columns"

    with devices=2 run node --list-devices "$library" "$standin" --json
    /usr/bin/python3 - out $driver <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
assert [x["number"] for x in r["devices"]] == [0, 1] and r["missing"] is None, r
driver = {"opencl": "Stand-in 1.0", "cuda": "CUDA 12.4, compute capability 9.0, no cuBLAS"}[sys.argv[2]]
assert r["devices"][1]["driver"] == driver and r["devices"][1]["usable"], r
END
    report $? "--json lists them, too"

    with abort run node --list-devices "$library" "$standin"
    [ $code = 0 ] && grep -q "the driver of $driver ends the process" err
    report $? "a driver of $driver that aborts ends another process"
done

over cuda
mkdir blas
ln -s "$B/tests/system/node/preload_cuda.so" blas/libcublas.so.12
ln -s "$B/tests/system/node/preload_cuda.so" blas/libcublasLt.so.12
SHERD_CUDA_PATH=$T/blas run node --list-devices "$library" "$standin" --json
grep -q '"driver":"CUDA 12.4, compute capability 9.0, cuBLAS 12.4"' out
report $? "the list names the cuBLAS that a device has"

# Columns: faults, exit code, options, words.
good=0
for driver in opencl cuda; do
    over $driver
    while IFS='|' read -r faults want options words; do
        [ "$want" ] || continue
        # shellcheck disable=SC2086
        refuses "$faults" "$want" "$words" --backend $driver $options || { good=1 && echo "# $driver $faults $options"; }
    done <<END
|2|--device 3|there is no device 3: .* has 1 device
|2|--device a|expected up to .* numbers, found 'a'
|2|--device 0,0|expected up to .* numbers, found '0,0'
|2|--device 0,|expected up to .* numbers, found '0,'
|2|--device 99999|there is no device 99999
|2|--device-memory 5G|5368709120 bytes of Stand-in GPU 0
|2|--device-memory 1K|1024 bytes of Stand-in GPU 0, and a node needs
|2|--fallback cpu --record seen|--record cannot be combined with --fallback cpu
|2|--fallback cpu --listen :0 --advertise 10.0.0.5:7001|must listen on the same port
|2|--fallback cpu --listen :0 --advertise [::1]:7001|must listen on the same port
none|2||has no device
wrong=10|1||computes wrongly
abort|1||the driver of $driver ends the process
crash=3|1||ends the process
stuck|1|--probe-timeout 0.5|does not answer
$([ $driver = opencl ] || cat <<'CUDA'
old|2||its compute capability is 7.0, and 7.5 is required
driver=10020|2||supports CUDA 10.2: CUDA 11.0 is required
prohibited|2||its compute mode is prohibited
exclusive|2||another process has it, and its compute mode is exclusive
nobuild|1||INVALID_PTX: ptxas fatal: no memory
init=304|1||CUDA_ERROR_OPERATING_SYSTEM
init=803|1||CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
lost=1,code=214|1||CUDA_ERROR_ECC_UNCORRECTABLE
taken=1000000000|1|--device-memory 500M|that others do not use
taken=1073000000|1||Stand-in GPU 0 has 741824 of its 1073741824 bytes free
room=9000|1||cannot allocate memory of the device: CUDA_ERROR_OUT_OF_MEMORY
CUDA
)
$([ $driver = cuda ] || cat <<'OPENCL'
old|2||it has no OpenCL 1.2
busy|2||others may use it alone
nobuild|1||cannot write to the cache
list=6|1||cannot list its devices: CL_OUT_OF_HOST_MEMORY
OPENCL
)
END
    standin=$B/tests/system/node/preload_${driver}_lacking.so
    refuses '' 2 "has no function c[lu]" --backend $driver || good=1
    standin=/nothing
    refuses '' 2 "cannot be loaded: /nothing" --backend $driver || good=1
done
refuses '' 2 'backend cpu has no devices' --backend cpu --device 0 || good=1
report $good "what cannot be used is one sentence and the right exit code"

POCL_CACHE_DIR=/proc/none run node --key n.key --allow allow.txt --backend opencl
[ $code = 1 ] && grep -q '"Portable Computing Language" cannot list its devices: CL_DEVICE_NOT_FOUND' err &&
    grep -q 'POCL_CACHE_DIR' err
report $? "PoCL that cannot write its cache is named with the remedy"

run node --list-devices --backend cpu
[ $code = 2 ] && grep -q 'backend cpu has no devices to list' err && [ ! -s out ]
report $? "the processor's devices cannot be listed"

for driver in opencl cuda; do
    over $driver
    export "$variable=stuck"
    "$S" node --list-devices --backend "$driver" "$library" "$standin" >out 2>err &
    pid=$!
    child_of() { child=$(pgrep -P "$pid") && grep -q -- '--probe' "/proc/$child/cmdline" 2>/dev/null; }
    await child_of && pids="$pids $child" && kill -KILL "$pid" && wait "$pid" 2>/dev/null
    unset "$variable"
    await none_lives "$child"
    report $? "a killed command leaves no process behind in which $driver hangs"
done

# --- choice ----------------------------------------------------------------------------------------
backend_of() { "$S" cluster status --nodes "$1.txt" --key c.key --json >state 2>>err && grep -o '"backend":"[a-z]*"' state; }
for driver in opencl cuda; do
    over $driver
    old='its compute capability is 7.0, and 7.5 is required'
    [ $driver = cuda ] || old='it has no OpenCL 1.2'
    node auto "$library" "$standin" && [ "$(backend_of auto)" = "\"backend\":\"$driver\"" ]
    report $? "auto chooses a GPU of $driver that passes its self-test"
    kill "$pid" && wait "$pid" # its status: 0
    report $? "a node on a device ends on SIGTERM"

    with abort node auto "$library" "$standin" && [ "$(backend_of auto)" = '"backend":"cpu"' ] &&
        grep -q "computing on the processor: the driver of $driver ends the process" auto.err
    report $? "a driver that fails is a warning, and the node computes on the processor"
    kill "$pid"

    with chatty node auto "$library" "$standin" && [ "$(backend_of auto)" = "\"backend\":\"$driver\"" ] &&
        [ "$(wc -l <auto.txt)" = 1 ] && grep -q '^driver$' auto.err
    report $? "what a driver prints goes to standard error"
    kill "$pid"
    with devices=3,old=2 node auto "$library" "$standin" && [ "$(backend_of auto)" = "\"backend\":\"$driver\"" ] &&
        grep -q "computing on $driver 2, Stand-in GPU 2: Stand-in GPU 0 cannot be used: $old" auto.err
    report $? "auto uses the first GPU that is usable, and says why it is not the first one"
    kill "$pid"
    with old node auto "$library" "$standin" && [ "$(backend_of auto)" = '"backend":"cpu"' ] &&
        grep -q "computing on the processor: Stand-in GPU 0 cannot be used: $old" auto.err
    report $? "a GPU that cannot be used is a warning, and the node computes on the processor"
    kill "$pid"
done

over opencl
with cpu node auto "$library" "$standin" -v && [ "$(backend_of auto)" = '"backend":"cpu"' ] &&
    grep -q 'computing on the processor: opencl has no device but the processor' auto.err
report $? "auto does not choose a processor, and says why it computes without a GPU"
kill "$pid"

both() { node auto "$library" "$standin" --opencl-library "$B/tests/system/node/preload_opencl.so" "$@"; }
over cuda
both && [ "$(backend_of auto)" = '"backend":"cuda"' ] && ! grep -q 'computing on' auto.err
report $? "auto tries CUDA before OpenCL"
kill "$pid"
with abort both && [ "$(backend_of auto)" = '"backend":"opencl"' ] &&
    grep -q 'computing on opencl: the driver of cuda ends the process' auto.err
report $? "auto uses OpenCL where CUDA's driver fails, and says why"
kill "$pid"
export SHERD_TEST_OPENCL=devices=2,memory=8000000000
both --device 1 && [ "$(backend_of auto)" = '"backend":"opencl"' ] &&
    grep -q 'computing on opencl: there is no device 1: CUDA has 1 device' auto.err
report $? "auto uses OpenCL where CUDA lacks the named device, and says so"
kill "$pid"
both --device-memory 2G && [ "$(backend_of auto)" = '"backend":"opencl"' ] &&
    grep -q 'computing on opencl: .* 2147483648 bytes of Stand-in GPU 0' auto.err
report $? "auto uses OpenCL where CUDA lacks the memory, and says so"
kill "$pid"
! both --device 2 && grep -q 'there is no device 2: CUDA has 1 device' auto.err
report $? "a device that none has is refused with the first backend's sentence"
with devices=2,old=1 both --device 0 && [ "$(backend_of auto)" = '"backend":"opencl"' ] &&
    grep -q 'its compute capability is 7.0' auto.err
report $? "auto uses OpenCL where CUDA cannot use the named device, and says so"
kill "$pid"
unset SHERD_TEST_OPENCL

over cuda
SHERD_CUDA_PATH=$T/blas with slowkernels node blas "$library" "$standin" -v &&
    grep -q 'GPU 0: cuBLAS 12.4 multiplies: in float64 all, modulo primes all, bytes all' blas.err
report $? "a node says with -v which library multiplies"
kill "$pid"
node blas "$library" "$standin" -v && grep -q 'cuBLAS is not used: SHERD_CUDA_PATH is empty' blas.err &&
    kill "$pid" && node blas "$library" "$standin" && ! grep -q cuBLAS blas.err
report $? "... or why none does, which is no warning if it is missing"
kill "$pid"
SHERD_CUDA_PATH=$T/nothing node blas "$library" "$standin" &&
    grep -q "GPU 0: cuBLAS cannot be loaded: SHERD_CUDA_PATH has no .* lib64 or lib: $T/nothing" blas.err
report $? "... but one if a folder is named that has none"
kill "$pid"

# The loader finds a file that is no library, as it finds one that lacks another library.
mkdir half
echo none >half/libcublas.so.12
(
    unset SHERD_CUDA_PATH
    export LD_LIBRARY_PATH="$T/half${LD_LIBRARY_PATH+:$LD_LIBRARY_PATH}"
    with "" run node --list-devices "$library" "$standin" --measure --json
)
grep -q "cuBLAS cannot be loaded: $T/half/libcublas.so.12: .* (the driver has CUDA 12.4)" out
report $? "a cuBLAS of the system that cannot be loaded is named with the CUDA of the driver"

# --- the same bits ---------------------------------------------------------------------------------
/usr/bin/python3 -c "
import numpy as np
rng = np.random.default_rng(1)
np.save('a.npy', rng.standard_normal((150, 90)))
np.save('b.npy', rng.standard_normal((90, 70)))
np.save('i.npy', rng.integers(-9, 9, (40, 50)))
np.save('x.npy', rng.standard_normal((60, 50)))"
node one --backend cpu --domain one && node two --backend cpu --domain two && node three --backend cpu --domain three &&
    node pocl --backend opencl --domain pocl && node cuda "$library" "$standin" --domain cuda &&
    SHERD_CUDA_PATH=$T/blas with slowkernels node blas "$library" "$standin" --domain blas
good=$?
over opencl
node standin "$library" "$standin" --domain standin || good=1
report $good "nodes on processors, PoCL and the stand-ins start"
cat one.txt two.txt three.txt >cpus.txt
cat one.txt pocl.txt cuda.txt blas.txt standin.txt >mixed.txt
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
    use cpus.txt cpus.npy apply $op x.npy || good=1
    for device in pocl cuda; do
        use $device.txt device.npy apply $op x.npy && cmp -s cpus.npy device.npy || good=1
    done
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
node small "$library" "$standin" --device-memory 4M
use small.txt mixed.npy multiply tall.npy wide.npy --scheme plain --bits 8 && cmp -s cpus.npy mixed.npy &&
    kill "$pid" && wait "$pid"
report $? "a device with little memory gets smaller cells"

# Others take the device's memory after the node has started, which has declared all of it.
good=0
for driver in opencl cuda; do
    over $driver
    rm -f armed
    SHERD_TEST_ARMED=$T/armed with room=500000 node crowded "$library" "$standin" --domain crowded || good=1
    : >armed
    cat crowded.txt one.txt two.txt >both.txt
    use crowded.txt mixed.npy multiply tall.npy wide.npy --scheme plain --bits 8 && cmp -s cpus.npy mixed.npy || good=1
    use both.txt mixed.npy multiply tall.npy wide.npy --scheme share --bits 8 --public b --same-host-domains &&
        cmp -s cpus.npy mixed.npy || good=1
    grep -q '^stand-in: room=500000' crowded.err && ! grep -q refuses err || good=1
    kill "$pid"
done
report $good "a device whose memory others have taken computes tasks in parts, with the same bits"

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
for driver in opencl cuda; do
    over $driver
    for fault in hang lost; do
        with $fault=152 node bad "$library" "$standin" --device-timeout 1
        cat bad.txt one.txt >both.txt
        lost_with 'the node has no device left' bad.err
        lost=$?
        wait "$pid"
        ended=$?
        [ $lost = 0 ] && [ $ended = 1 ]
        report $? "a node whose device of $driver fails ($fault) ends, and the job has the same bits"
    done
done

# Faults that begin with a job, of its only node and of one of two. Columns: fault, who computes, exit code
# of the job, words of its messages, exit code of the node, words of its messages.
fails_in_job() {
    rm -f armed c.npy
    SHERD_TEST_ARMED=$T/armed with "$fault" node bad "$library" "$standin" -v --device-timeout 1 || return 1
    cat bad.txt >both.txt
    [ "$who" = alone ] || cat one.txt >>both.txt
    : >armed
    use both.txt c.npy multiply a.npy b.npy --scheme plain --bits 24
    [ "$ends" != 0 ] || kill "$pid"
    wait "$pid"
    [ $? = "$ends" ] && [ $code = "$want" ] && grep -q -- "$words" err && grep -q -- "$why" bad.err &&
        grep -q "^stand-in: ${fault%%,*}\$" bad.err || return 1 # the fault has occurred
    [ "$want" != 0 ] || cmp -s c.npy want.npy
}
bye='lost: peer closed the session with ECLOSED: the node is ending: its device failed'
good=0
for driver in opencl cuda; do
    over $driver
    while IFS='|' read -r fault who want words ends why; do
        [ "$fault" ] || continue
        fails_in_job || { good=1 && echo "# $driver $fault $who" && sed 's/^/# /' bad.err; }
    done <<END
lost=1|both|0|$bye|1|no device is left
hang=1|alone|7|$bye|1|does not respond for
fail=1|alone|0|by 1 node|0|
room=1|both|0|node-1 .*refuses its work (not enough memory)|0|(ENOMEM)
$([ $driver = opencl ] || cat <<CUDA
lost=1|alone|7|$bye|1|no device is left
lost=1,code=214|both|0|$bye|1|no device is left: .*CUDA_ERROR_ECC_UNCORRECTABLE
lost=1,code=214|alone|7|no node is left for the work|1|no device is left: .*CUDA_ERROR_ECC_UNCORRECTABLE
fail=1|both|0|by 2 nodes|0|
full=1|both|0|by 2 nodes|0|
full=1|alone|0|by 1 node|0|
room=1|alone|7|end other programs that use the memory of these nodes or of their devices|0|GPU 0 lacks .*(ENOMEM)
CUDA
)
END
done
report $good "a launch that fails, a lost device and no memory during a job: the same bits, or one sentence"

with hang=152 node safe "$library" "$standin" --device-timeout 1 --fallback cpu
cat safe.txt one.txt >both.txt
lost_with 'serving on the processor' safe.err && [ "$(backend_of safe)" = '"backend":"cpu"' ] &&
    [ "$(wc -l <safe.txt)" = 1 ]
report $? "with --fallback cpu the node continues with the same key and address"
kill "$pid" && wait "$pid"
report $? "it ends on SIGTERM after that"

with lost=152 node safe "$library" "$standin" --fallback cpu
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
with hang=160,lost=161 node pair "$library" "$standin" --device-timeout 60 --fallback cpu
cat pair.txt one.txt >both.txt
await says_beside 'serving on the processor' pair.err && [ ! -e differs ] &&
    grep -q 'the node has no device left' pair.err && [ "$(backend_of pair)" = '"backend":"cpu"' ]
report $? "with --fallback cpu a node whose device is lost while a call hangs continues"
kill "$pid" && wait "$pid"
node safe "$library" "$standin" --fallback cpu && kill "$pid" && wait "$pid"
report $? "and before"

# --- doctor ----------------------------------------------------------------------------------------
run doctor
grep -q '^ok  *gpu  *opencl 0: .*Portable Computing Language' out && grep -q 'GF/s in float64' out
report $? "doctor names devices with driver, memory and rates"

over cuda
mkdir system
ln -s "$standin" system/libcuda.so.1
doctor() { # faults, then options
    faults=$1
    shift
    LD_LIBRARY_PATH="$T/system${LD_LIBRARY_PATH+:$LD_LIBRARY_PATH}" with "$faults" run doctor "$@"
    tr -s ' \n' ' ' <out >flat
}
doctor '' && grep -q 'ok gpu cuda 0: Stand-in GPU 0, 1.1 GB of memory, CUDA 12.4.* GF/s in float64' flat
report $? "so it does on CUDA"
doctor old && grep -q 'WARNING gpu cuda 0: .* cannot be used: its compute capability is 7.0' flat
report $? "doctor warns of a device that cannot be used"
doctor abort -q && grep -q 'WARNING gpu the driver of cuda ends the process' flat && ! grep -q '^ok' out
report $? "doctor warns of a driver that fails"
doctor none && grep -q 'ok gpu cuda has no device' flat && [ $code = 0 ]
report $? "... and not where there is no device"
echo "1..$n"
