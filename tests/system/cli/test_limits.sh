#!/bin/sh
# Limits of a process (ulimit): the command names the limit that it meets, with the right exit code and
# in bounded time, and loses nothing. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

/usr/bin/python3 -c "
import numpy as np
r = np.random.default_rng(1)
np.save('A.npy', r.standard_normal((300, 200)))
np.save('B.npy', r.standard_normal((200, 100)))"

# under KIB ARGUMENTS: runs the command with this address space, for at most 20 seconds
under() {
    room=$1
    shift
    (ulimit -v "$room" && exec timeout -s KILL 20 "$S" "$@") >out 2>err </dev/null
    code=$?
}

# ---- address space: OpenBLAS would retry without end
if [ -n "${SAN:-}" ]; then
    skip "address space" "sanitizers need all of it"
else
    # One thread's stack fits, its buffer does not; on one core there is no such thread.
    if [ "$(nproc)" -ge 2 ]; then
        under 100000 version
        [ $code = 1 ] && grep -q 'too little address space: OpenBLAS needs' err && grep -q 'ulimit -v' err
        report $? "too little address space for BLAS's threads is reported, and the process ends"
        under 100000 version --json
        [ $code = 1 ] && grep -q '"code": *1' out && [ ! -s err ]
        report $? "--json prints it as an object"
    fi
    OPENBLAS_NUM_THREADS=1 under 150000 multiply A.npy B.npy -o C.npy -n 1 --check
    [ $code != 0 ] && [ $code != 137 ] && [ ! -e C.npy ]
    report $? "nodes without memory for a buffer are lost, and the command ends"
    OPENBLAS_NUM_THREADS=1 under 150000 prepare B.npy --rows 40 -o m.masks
    [ $code = 1 ] && grep -q 'memory' err && [ ! -e m.masks ]
    report $? "a product without memory for its result fails"
    # 30 x 30 numbers a row, of which each becomes a window of 900: 7 GB for a thousand rows
    /usr/bin/python3 -c "
import io, numpy as np, zipfile
recipe = b'input = 1 x 1 x 1\\nlayer = conv2d 1 window 30 padding 29\\nlayer = conv2d 30 window 1\\nloss = squared\\n' \\
    b'data = idx\\ndivide_inputs = 256\\nbatch = 64\\norder = batches\\nepochs = 1\\nmethod = sgd\\nrate = 0.1\\n'
np.savez('wide.npz', recipe=np.frombuffer(recipe, np.uint8), w1=np.zeros((900, 1)), b1=np.zeros(1), w2=np.zeros((1, 30)), b2=np.zeros(30))
np.save('rows.npy', np.ones((1000, 1)))"
    OPENBLAS_NUM_THREADS=1 under 3000000 predict wide.npz rows.npy -o y.npy
    [ $code = 1 ] && grep -q 'a pass of 1000 rows takes [67].* GB of memory, and .* are available' err && [ ! -e y.npy ]
    report $? "a prediction that takes more memory than there is ends before it takes any"
fi

# ---- the size of files, as on a full disk
/usr/bin/python3 -c "
import numpy as np
np.save('N.npy', np.ones((3, 2)))"
(ulimit -f 1000 && "$S" train deep --epochs 1000 -o m.npz) >out 2>err </dev/null
code=$?
[ $code = 4 ] && grep -q 'm.npz: no room for 2[0-9]* bytes: File too large' err && [ ! -e m.npz ]
report $? "disk space for the model is checked before the training"

/usr/bin/python3 -c "
import numpy as np
np.save('A.npy', np.ones((1000, 1)))
np.save('B.npy', np.ones((1, 1000)))"
(ulimit -f 1000 && "$S" multiply A.npy B.npy -o C.csv -n 9) >out 2>err </dev/null
code=$?
[ $code = 4 ] && grep -q 'C.csv: no room for 2000000 bytes: File too large' err && ! grep -q starting err && [ ! -e C.csv ]
report $? "so it is for a result in .csv, before nodes start"
"$S" multiply A.npy B.npy -o C.csv -n 1 -q >out 2>err && [ "$(wc -c <C.csv)" = 2000000 ] && [ "$(sort -u C.csv | wc -c)" = 2000 ]
report $? "which takes no less than was reserved"

mkdir gone tmp
TMPDIR="$T/tmp" "$S" train spiral -q --epochs 2500 --log log -o gone/m.npz >out 2>err </dev/null &
i=0
while [ ! -s log ] && [ $i -lt 500 ]; do sleep 0.01; i=$((i + 1)); done
rm -r gone
wait $!
code=$?
[ $code = 4 ] && saved=$(sed -n 's/.*warning: the model was saved as \(.*\) instead$/\1/p' err) &&
    case $saved in "$T"/tmp/sherd-model-*.npz) ;; *) false ;; esac &&
    "$S" predict "$saved" N.npy -o P.npy >>out 2>>err && grep -q 'gone/m.npz: cannot open for writing' err
report $? "a model that no longer fits on the disk is saved in the temporary folder, which is reported"

echo "1..$n"
