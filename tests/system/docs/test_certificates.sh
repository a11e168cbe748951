#!/bin/bash
# docs/CERTIFICATES.md is sufficient to verify certificates: its code runs on the command's output.
# Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"
D=$R/docs/CERTIFICATES.md

# Prints the n-th code block of a language.
block() {
    awk -v head="\140\140\140$1" -v n="$2" \
        '$0 == head { inside = ++seen == n; next } /^\140\140\140/ { inside = 0 } inside' "$D"
}
py() { /usr/bin/python3 "$@" >out 2>err; code=$?; return $code; }

/usr/bin/python3 - <<'PY'
import numpy
r = numpy.random.default_rng(1)
numpy.save("A.npy", r.standard_normal((5, 7)))
numpy.save("B.npy", r.standard_normal((7, 3)).astype(numpy.float32))
PY
block python 1 >digest.py
block python 2 >certificate.py
block python 3 >chain.py
block sh 1 >openssl.sh

run keygen me.key
grep -o 'sha256:.*' out >signer
run multiply A.npy B.npy -o C.npy -n 2 --scheme plain --bits 20 --key me.key --certificate C.json
report $code "the command writes a certificate"

py digest.py && grep -qf out C.json
report $? "the digest of a matrix is as documented"

py certificate.py && cmp -s out signer
report $? "the signature and the signer are as documented"

sed 's/"count": 2/"count": 3/' C.json >edited.json
sed 's/C.json/edited.json/' certificate.py >edited.py
! py edited.py && grep -q InvalidSignature err
report $? "an edited certificate does not verify"

py - <<'PY'
import json
o = json.load(open("C.json"))
s = o.pop("signature")
text = json.dumps(o, sort_keys=True, separators=(",", ":")).encode()
open("message", "wb").write(b"sherd-certificate-v1\n" + text)
open("value", "wb").write(bytes.fromhex(s["value"]))
open("spki", "wb").write(bytes.fromhex("302a300506032b6570032100" + s["key"]))
PY
bash -e openssl.sh >out 2>err
code=$?
report $code "the openssl command verifies the same bytes"

# The document describes every member of a certificate.
py - "$D" <<'PY'
import json, sys
text = open(sys.argv[1]).read()
o = json.load(open("C.json"))
names = list(o) + [g + "." + m for g in o if isinstance(o[g], dict) and g not in ("result", "signature")
                   for m in o[g]]
missing = [n for n in names if "`%s`" % n not in text and "`.%s`" % n.split(".")[-1] not in text
           and not isinstance(o.get(n), dict)]
sys.exit("not described: %s" % missing if missing else 0)
PY
report $? "the document describes every member"

# An exact product can be computed from the document alone.
py - <<'PY'
import json, sys, numpy
from fractions import Fraction

def fixed(x, b):
    m, s = float(abs(x).max()), b - 1
    while round(Fraction(m) * Fraction(2) ** s) > 2 ** (b - 1) - 1: s -= 1
    return [[round(Fraction(float(v)) * Fraction(2) ** s) for v in row] for row in x], s

bits = json.load(open("C.json"))["arithmetic"]["bits"]
(a, sa), (b, sb) = (fixed(numpy.load(f), w) for f, w in zip(("A.npy", "B.npy"), bits))
c = [[float(sum(u * v for u, v in zip(row, col))) * 2.0 ** -(sa + sb) for col in zip(*b)] for row in a]
sys.exit(0 if (numpy.array(c) == numpy.load("C.npy")).all() else "the product differs")
PY
report $? "an exact product is as documented"

run train spiral --checkpoint run --epochs 3 -o model.npz
report $code "a training writes checkpoints"
py chain.py
report $? "the chain of checkpoints is as documented"
for f in run/checkpoint-*.npz; do printf x | dd of="$f" bs=1 seek=200 conv=notrunc status=none; break; done
! py chain.py
report $? "a changed byte breaks the chain"

# The same for docs/METADATA.md.
D=$R/docs/METADATA.md
block python 1 >operands.py
run meta build z=dot:5x7x3 --nodes 2 -o z.npz && run multiply A.npy B.npy -n 2 --meta z.npz -o C.npy
py operands.py
report $? "metadata names its operands as documented"

echo "1..$n"
