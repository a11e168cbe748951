#!/bin/sh
# No thread can be started: OpenBLAS would end the process by SIGINT before main. Speaks TAP.
b=$(realpath "${B:-build/plain}")
. "$(dirname "$0")/../../support/tap.sh"
case ${SAN:-} in ?*) echo "1..0 # SKIP sanitizers start threads of their own"; exit 77 ;; esac
[ "$(nproc)" -gt 1 ] || { echo "1..0 # SKIP one processor: OpenBLAS starts no thread"; exit 77; }

/usr/bin/python3 - <<'END'
import numpy as np
np.save("A.npy", np.ones((30, 20)))
np.save("B.npy", np.ones((20, 10)))
END
limited() { (unset OPENBLAS_NUM_THREADS; LD_PRELOAD=$b/tests/system/cli/preload_threads.so "$S" "$@" >out 2>err </dev/null); code=$?; }

limited version; [ $code = 0 ] && grep -q 'warning: no thread can be started beside this one' err && grep -q 'try: raise the limit' err
report $? "the command falls back to one thread and says so"
limited multiply A.npy B.npy -o C.npy -n 2 --check; [ $code = 0 ] && [ -s C.npy ] && [ "$(grep -c 'no thread can be started' err)" = 1 ]
report $? "and computes"
limited train spiral --epochs 2; [ $code = 0 ]; report $? "and trains"
run version; [ $code = 0 ] && [ ! -s err ]; report $? "with threads nothing is said"
(OPENBLAS_NUM_THREADS=1; export OPENBLAS_NUM_THREADS; LD_PRELOAD=$b/tests/system/cli/preload_threads.so "$S" version >out 2>err); code=$?
[ $code = 0 ] && [ ! -s err ]; report $? "nor where one was asked for"
echo "1..$n"
