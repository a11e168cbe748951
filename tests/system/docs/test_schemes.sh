#!/bin/bash
# docs/SCHEMES.md is enough to understand a recorded product under `share`: a reader that was written
# from it finds the operand in K + T shares, and the product in 2 (K + T) - 1 answers. Speaks TAP.
. "$(dirname "$0")/../../support/tap.sh"

/usr/bin/python3 - <<'PY'
import numpy
r = numpy.random.default_rng(3)
numpy.save("A.npy", r.standard_normal((11, 7)))
numpy.save("B.npy", r.standard_normal((7, 4)))
PY
read_record() { /usr/bin/python3 "$R/tests/support/shares_record.py" "$1" A.npy B.npy C.npy "$2" "$3" >out 2>err; }

run multiply A.npy B.npy -o C.npy -n 5 --scheme share --same-host-domains --bits 20 --record one
report $code "a product by five nodes, one of which may collude, is recorded"
read_record one 2 1
report $? "operand and product are found as described"
! read_record one 1 2
report $? "and not for another number of blocks and masks"

run multiply A.npy B.npy -o C.npy -n 7 --scheme share --colluding 2 --same-host-domains --bits 20 \
    --record two
report $code "the same with seven nodes, two of which may collude"
read_record two 2 2
report $? "operand and product are found as described"

echo "1..$n"
