#!/bin/bash
# docs/PROTOCOL.md is sufficient to follow sums among nodes: a reader that was written from it
# recomputes signatures, digests, sums, lists and hashes of recorded trainings. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

run train spiral --by gradients --aggregate secure --simulate --examples 60 --survivors 3 -n 4 \
    --same-host-domains --clip 1 --epochs 2 --record sums -o m.npz
report $code "a training with secure sums is recorded"
/usr/bin/python3 "$R/tests/support/sums_record.py" secure sums 60 >out 2>err
report $? "cards, digests, confirmations and sums are as documented"
/usr/bin/python3 "$R/tests/support/sums_record.py" secure sums 61 >out 2>err
[ $? = 1 ] && grep -q AssertionError err
report $? "the reader detects a different sum"

run train spiral --by gradients --aggregate halving-doubling -n 3 --epochs 2 --record allreduce -o m.npz \
    --checkpoint chain
report $code "a training by all-reduce is recorded"
/usr/bin/python3 "$R/tests/support/sums_record.py" allreduce allreduce >out 2>err
report $? "lists of rows and hashes of states are as documented"

run train spiral --by gradients --aggregate ring -n 3 --epochs 1 --record again -o m.npz
/usr/bin/python3 "$R/tests/support/sums_record.py" names allreduce again >out 2>err
report $? "the meetings of two trainings have different random ids"

echo "1..$n"
