#!/bin/bash
# docs/SCHEMES.md is sufficient to decode a recorded product under `share`: a reader that was written
# from it decodes the operand from K + T shares, and the product from 2 (K + T) - 1 answers, or from
# K + 2 T by the inner-product code. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

/usr/bin/python3 - <<'PY'
import numpy
r = numpy.random.default_rng(3)
numpy.save("A.npy", r.standard_normal((11, 7)))
numpy.save("B.npy", r.standard_normal((7, 4)))
PY
read_record() { /usr/bin/python3 "$R/tests/support/shares_record.py" "$1" A.npy B.npy C.npy "$2" "$3" "$4" >out 2>err; }

run multiply A.npy B.npy -o C.npy -n 5 --scheme share --code lagrange --same-host-domains --bits 20 --record one
report $code "a product over five nodes, one of which may collude, is recorded"
read_record one 2 1 lagrange
report $? "operand and product decode as documented"
! read_record one 1 2 lagrange
report $? "they do not decode with other numbers of blocks and masks"

run multiply A.npy B.npy -o C.npy -n 7 --scheme share --code lagrange --colluding 2 \
    --same-host-domains --bits 20 --record two
report $code "a product over seven nodes, two of which may collude, is recorded"
read_record two 2 2 lagrange
report $? "operand and product decode as documented"

run multiply A.npy B.npy -o C.npy -n 7 --scheme share --code inner --colluding 2 \
    --same-host-domains --bits 20 --record three
report $code "a product by the inner-product code is recorded"
read_record three 3 2 inner
report $? "operand and product decode as documented"
! read_record three 2 2 inner
report $? "they do not decode with another number of blocks"

/usr/bin/python3 - <<'PY'
import numpy
r = numpy.random.default_rng(4)
numpy.save("A.npy", r.standard_normal((200, 300)))
numpy.save("B.npy", r.standard_normal((300, 100)))
PY
for by in lagrange inner; do
    run multiply A.npy B.npy -o C.npy -n 7 --scheme share --code $by --colluding 2 --same-host-domains \
        --bits 20 --record four-$by
    [ $by = lagrange ] && k=2 || k=3
    read_record four-$by $k 2 $by && grep -qE '^([4-9]|[1-9][0-9]+) seeds$' out
    report $? "with two shares of each operand from seeds, operand and product decode as documented, by $by"
done

echo "1..$n"
