#!/bin/sh
# bench/device.py, which measures nodes on a device, with small sizes on PoCL. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

/usr/bin/python3 "$R/bench/device.py" --sherd "$S" --quick --runs 1 -o device.json >out 2>err
code=$?
[ $code = 0 ] && /usr/bin/python3 - device.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
assert r["device"]["usable"] and len(r["nodes"]) == 2, r
assert all(x > 0 for x in r["resident"].values()) and len(r["resident"]) == 2, r
assert [p["measurement"] for p in r["products"]] == 2 * ["float64", "exact", "exact-wide", "mixed", "blind", "share"], r
for n in 64, 128:
    by = {p["measurement"]: p for p in r["products"] if p["n"] == n}
    assert by["exact"]["sha256"] == by["blind"]["sha256"] == by["share"]["sha256"], by
    assert by["mixed"]["tasks"] > 1 and by["exact-wide"]["prime_bits"] == 23, by
assert all(t["examples_per_second"] > 0 for t in r["trainings"]) and len(r["trainings"]) == 3, r
assert r["omitted"] == [], r
END
report $? "products and trainings on a device are measured, and exact products have the processor's bits"

# A command that hangs in some calls.
cat >slow <<END
#!/bin/sh
case " \$* " in *" \$HANGS "*) exec sleep 1000 ;; esac
exec "$S" "\$@"
END
chmod +x slow
HANGS=--masks /usr/bin/python3 "$R/bench/device.py" --sherd slow --quick --runs 1 --seconds 20 -o late.json >out 2>err
code=$?
[ $code = 0 ] && /usr/bin/python3 - late.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
omitted = set(r["omitted"])
made = [t["recipe"] + " " + t["by"] for t in r["trainings"]] + ["%s %d" % (p["measurement"], p["n"]) for p in r["products"]]
assert {"all of 128", "all of 64"} <= omitted or {"all of 128", "blind 64", "share 64"} <= omitted, r
assert len(r["trainings"]) + len([x for x in omitted if " gradients" in x or " products" in x]) == 3, r
assert "all of 64" in omitted or len([x for x in omitted | set(made) if x.endswith(" 64")]) == 6, r
END
report $? "a command that hangs ends the measurement in time, and what was not measured is named"
HANGS=--domain /usr/bin/python3 "$R/bench/device.py" --sherd slow --quick --start-seconds 5 -o none.json >out 2>err
code=$?
[ $code = 1 ] && grep -q '^device.py: .*takes more than 5' err && [ ! -e none.json ]
report $? "a node that does not start ends it"

measure() { /usr/bin/python3 "$R/bench/device.py" --sherd "$S" -o none.json "$@" >out 2>err; }
measure --quick --seconds 0
[ $? = 0 ] && /usr/bin/python3 -c "import json; r = json.load(open('none.json')); assert r['products'] == r['trainings'] == [] and len(r['omitted']) == 5, r"
report $? "nothing is measured without time"
measure --device 99
[ $? = 1 ] && grep -q '^device.py: no usable device' err
report $? "a device that is not there is refused"
echo "1..$n"
