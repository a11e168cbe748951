#!/bin/sh
# bench/device.py, which measures nodes on a device, with small sizes on PoCL. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

/usr/bin/python3 "$R/bench/device.py" --sherd "$S" --quick --runs 1 -o device.json >out 2>err
code=$?
[ $code = 0 ] && /usr/bin/python3 - device.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
assert r["device"]["usable"] and len(r["nodes"]) == 2, r
assert [p["measurement"] for p in r["products"]] == 2 * ["float64", "exact", "exact-wide", "mixed", "blind", "share"], r
for n in 64, 128:
    by = {p["measurement"]: p for p in r["products"] if p["n"] == n}
    assert by["exact"]["sha256"] == by["blind"]["sha256"] == by["share"]["sha256"], by
    assert by["mixed"]["tasks"] > 1 and by["exact-wide"]["prime_bits"] == 23, by
assert all(t["examples_per_second"] > 0 for t in r["trainings"]) and len(r["trainings"]) == 3, r
assert r["omitted"] == [], r
END
report $? "products and trainings on a device are measured, and exact products have the processor's bits"

measure() { /usr/bin/python3 "$R/bench/device.py" --sherd "$S" -o none.json "$@" >out 2>err; }
measure --quick --seconds 0
[ $? = 0 ] && /usr/bin/python3 -c "import json; r = json.load(open('none.json')); assert r['products'] == r['trainings'] == []"
report $? "nothing is measured without time"
measure --device 99
[ $? = 1 ] && grep -q '^device.py: no usable device' err
report $? "a device that is not there is refused"
echo "1..$n"
