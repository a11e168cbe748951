#!/bin/sh
# bench/device.py, which measures a device and nodes on it, with small sizes on PoCL and on the
# stand-ins for CUDA and cuBLAS. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
B=$(cd "$R" && realpath "${BUILD:-build/plain}")
cat >read.py <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
rates = {(x["name"], x["n"]): x["value"] for x in r["device"]["rates"]} if "device" in r else {}
omitted, failed = set(r["omitted"]), {x["what"]: x["why"] for x in r["failed"]}
found = {x["row"].split(" ")[0]: x["value"] for x in r.get("table", [])}
exec(sys.stdin.read())
END
check() { /usr/bin/python3 read.py "$1"; }
measure() { # name of the result, then options
    result=$1
    shift
    /usr/bin/python3 "$R/bench/device.py" --sherd "${COMMAND:-$S}" --contract "$B/tests/contract/node" --quick --runs 1 \
        -o "$result" "$@" >out 2>err
    code=$?
}

measure device.json --programs test_calls
[ $code = 0 ] && check device.json <<'END'
assert r["device"]["usable"] and len(r["nodes"]) == 2 and not omitted and not failed, r
assert all(rates[x, 0] > 0 for x in ("copy-in", "copy-out", "upload", "download")), rates
kinds = "float64", "residues", "six-bytes"
assert all(rates[k, 256] > 0 and rates["answers-" + k, 256] > 0 for k in kinds), rates
assert all(0 < rates["busy-" + k, 256] <= 1 for k in kinds), rates
assert all(abs(sum(rates[x + "-" + k, 256] for x in ("computing", "copying", "idle")) - 1) < 1e-9 for k in kinds), rates
assert found["23-bit"] is found["six"] is None and found["uploads"] > 0 and 0 < found["device"] <= 1, found
assert [(c["device"], c["passed"] > 5) for c in r["contract"]] == [("opencl:0", True)], r
assert [p["measurement"] for p in r["products"]] == 2 * ["float64", "exact", "exact-wide", "mixed", "blind", "share"], r
for n in 64, 128:
    by = {p["measurement"]: p for p in r["products"] if p["n"] == n}
    assert by["exact"]["sha256"] == by["blind"]["sha256"] == by["share"]["sha256"], by
    assert by["mixed"]["tasks"] > 1 and by["exact-wide"]["prime_bits"] == 23 and by["share"]["nodes"] == 3, by
    parts = by["share"]["parts"]
    assert parts["node_link_cpu_seconds"] > 0 and parts["node_cpu_seconds"] > 0 and parts["link_share"] > 0, parts
assert r["kept"]["seconds"] > 0 and r["kept"]["first_seconds"] > 0, r
assert all(t["examples_per_second"] > 0 for t in r["trainings"]) and len(r["trainings"]) == 3, r
END
report $? "a device, products and trainings on it are measured, and exact products have the processor's bits"

mkdir blas
for library in libcublas libcublasLt; do ln -s "$B/tests/system/node/preload_cuda.so" blas/$library.so.12; done
export SHERD_CUDA_LIBRARY="$B/tests/system/node/preload_cuda.so"
SHERD_CUDA_PATH=$T/blas SHERD_TEST_CUDA=slowkernels measure cuda.json --only rates,contract,emulation \
    --device-memory 800000000 --programs test_backend_residues
[ $code = 0 ] && check cuda.json <<'END'
assert r["device"]["backend"] == "cuda" and not omitted and not failed, r
assert rates["library-dgemm", 256] > 0 and rates["library-int8", 256] > 0, rates
assert found["23-bit"] == rates["residues", 256] / rates["library-dgemm", 256], (found, rates)
assert found["six"] == rates["six-bytes", 256] / rates["library-dgemm", 256], (found, rates)
assert [(c["device"], c["passed"] > 5) for c in r["contract"]] == [("cuda:0", True), ("cublas:0", True)], r
assert "multiplies: in float64 all, modulo primes all" in r["emulation"]["library"], r
assert r["emulation"]["float64"] is True and r["emulation"]["exact-wide"] is True, r
END
report $? "the table of a CUDA device is filled, its backend passes the suite, and emulation changes no bits"
unset SHERD_CUDA_LIBRARY

# A command that hangs in some calls.
cat >slow <<END
#!/bin/sh
case " \$* " in *" \$HANGS "*) exec sleep 1000 ;; esac
exec "$S" "\$@"
END
chmod +x slow
HANGS=--masks COMMAND=./slow measure late.json --seconds 20 --only products,kept
[ $code = 0 ] && check late.json <<'END'
assert not failed and {"kept", "all of 128"} <= omitted, r
assert {"blind 64", "share 64"} <= omitted or "all of 64" in omitted, r
assert r["seconds"] < 40, r
END
report $? "a command that hangs ends the measurement in time, and what was not measured is named"
HANGS=--domain COMMAND=./slow measure none.json --start-seconds 1 --only products
[ $code = 1 ] && grep -q '^device.py: node cpu: omitted: .*takes more than 1 s to start' err && check none.json <<'END'
assert {"node cpu", "node device", "node device2", "node device3"} <= omitted and r["products"] == [], r
assert "did not start" in failed["all of 64"], r
END
report $? "a node that does not start is named, and so is what it would have done"

measure none.json --seconds 0
[ $code = 0 ] && check none.json <<'END'
assert "device" in omitted and "device" not in r and not failed, r
END
report $? "nothing is measured without time"
measure none.json --device 99
[ $code = 1 ] && grep -q '^device.py: device: no usable device' err
report $? "a device that is not there is refused"

mkdir broken
printf '#!/bin/sh\necho 1..2; echo "ok 1 - one"; echo "not ok 2 - two_device"; exit 1\n' >broken/test_calls
chmod +x broken/test_calls
measure none.json --only contract --contract broken --programs test_calls
[ $code = 1 ] && check none.json <<'END'
assert failed == {"contract opencl:0 test_calls": "two_device"} and rates and r["contract"] == [], r
END
report $? "a device that fails the suite is named with the case, and its rates are there"
echo "1..$n"
