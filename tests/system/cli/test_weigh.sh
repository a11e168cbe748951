#!/bin/sh
# Impossible runs are reported at once: too little memory, before the first step and before nodes are
# started; a duration of more than a day, with the figure. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

recipe() { # units, epochs
    cat <<END
data = spiral
classes = 2
examples = 100
input = 2
layer = dense $1
layer = relu
layer = dense $1
layer = relu
layer = dense 2
loss = cross-entropy
rate = 0.1
batch = 10
epochs = $2
END
}
recipe 1000000 3 >large.conf
recipe 5 100000000000 >long.conf
recipe 5 20 | sed 's/spiral/random/; s/^examples.*/examples = 1000000000/; s/input = 2/input = 100000/' >many.conf
recipe 1000000000 3 >beyond.conf

: >wrong
for how in "" "-n 2" "-n 3 --scheme share" "-n 2 --by gradients" "-n 2 --by gradients --in-process" \
    "-n 3 --by gradients --aggregate ring" "-n 3 --by gradients --aggregate secure --simulate --examples 40"; do
    # shellcheck disable=SC2086
    run train large.conf $how
    [ $code = 1 ] && grep -q 'takes [0-9]* TB of memory or more (1000006000002 parameters), and .* are available' err &&
        [ "$(grep -c '^sherd: ' err)" = 1 ] || { echo "$how: $code" >>wrong; cat err >>wrong; }
done
cat wrong >err
[ ! -s wrong ]; report $? "weights larger than memory are refused in each way to train, with both figures"
fails 1 'takes 800 TB of memory' train many.conf; report $? "generated examples larger than memory are refused"
fails 1 'takes .* of memory or more (10000000' train beyond.conf; report $? "a network larger than any memory is refused"
(ulimit -v 4000000 && OPENBLAS_NUM_THREADS=1 "$S" train many.conf --examples 8000 >out 2>err </dev/null); code=$?
[ $code = 1 ] && grep -q 'takes 6.4 GB of memory or more' err; report $? "limits of the address space are respected"

# warns WHAT OPTIONS...: waits for the warning, then ends the run
warns() {
    words=$1
    shift
    : >err # the job below empties it at an unknown time
    "$S" train long.conf "$@" >out 2>>err </dev/null &
    pid=$!
    await grep -q "warning: this training takes $words" err
    told=$?
    kill -TERM $pid
    wait $pid
    code=$?
    [ $told = 0 ] && grep -q "takes $words[0-9.e+]* \(days\|years\)" err && [ "$(grep -c 'this training takes' err)" = 1 ]
}
warns '' -q; report $? "a duration of more than a day is reported with the figure, by the speed of local products"
for how in "-n 2 --batch 1" "-n 2 --by gradients --batch 2" "-n 2 --by gradients --in-process --batch 2" \
    "-n 3 --by gradients --aggregate ring --batch 3" "-n 3 --scheme share --batch 1" \
    "-n 3 --by gradients --aggregate secure --simulate --batch 3"; do
    # shellcheck disable=SC2086
    warns '' $how; report $? "a duration of more than a day is reported under train $how"
done
run train spiral --epochs 2 -q; [ $code = 0 ] && ! grep -q 'this training takes' err
report $? "a short training causes no warning"

/usr/bin/python3 - <<'END'
import numpy as np
np.save("A.npy", np.ones((60000, 2)))
np.save("B.npy", np.ones((2, 60000)))
END
"$S" keygen me.key >pin 2>err
echo "127.0.0.1:9 $(cat pin) name=gone domain=gone" >nodes # connecting to it would give exit code 7
(ulimit -v 4000000 && OPENBLAS_NUM_THREADS=1 "$S" multiply A.npy B.npy -o C.npy --nodes nodes --key me.key >out 2>err </dev/null)
code=$?
[ $code = 1 ] && grep -q 'out of memory for the result: 60000 x 60000 are 29 GB, and [1-9][0-9.]* [GM]B are available' err && [ ! -e C.npy ]
report $? "a product whose result does not fit is refused with both figures, before any connection"
echo "1..$n"
