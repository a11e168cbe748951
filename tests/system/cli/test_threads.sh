#!/bin/sh
# No thread can be started: OpenBLAS would end the process with SIGINT before main. Writes TAP.
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

limited version; [ $code = 0 ] && grep -q 'warning: cannot start another thread' err && grep -q 'try: raise the limit' err
report $? "the command falls back to one thread and prints a warning"
limited multiply A.npy B.npy -o C.npy -n 2 --check; [ $code = 0 ] && [ -s C.npy ] && [ "$(grep -c 'cannot start another thread' err)" = 1 ]
report $? "a product is computed with one thread"
limited train spiral --epochs 2; [ $code = 0 ]; report $? "a training runs with one thread"
run version; [ $code = 0 ] && [ ! -s err ]; report $? "if threads can be started, there is no warning"
(OPENBLAS_NUM_THREADS=1; export OPENBLAS_NUM_THREADS; LD_PRELOAD=$b/tests/system/cli/preload_threads.so "$S" version >out 2>err); code=$?
[ $code = 0 ] && [ ! -s err ]; report $? "if one thread was requested, there is no warning"

# No thread at all, not even the one that enforces --timeout. Half a minute is allowed for two seconds.
mkfifo silent full
sleep 600 >silent &
holder=$!
sleep 600 <full &
reader=$!
trap 'kill $holder $reader 2>/dev/null; wait; rm -rf "$T"' EXIT
export THREADS_NONE=1
alone() { (unset OPENBLAS_NUM_THREADS; LD_PRELOAD=$b/tests/system/cli/preload_threads.so exec timeout -s KILL 30 "$S" "$@") >out 2>err </dev/null; code=$?; }
alone plan silent B.npy -n 2 --timeout 1; [ $code = 124 ] && grep -q 'timeout expired; silent: .*its writer' err
report $? "without threads --timeout ends a command that waits for a silent pipe"
head -c 65536 /dev/zero >full
i="env --default-signal=INT"
LD_PRELOAD=$b/tests/system/cli/preload_threads.so $i "$S" help >full 2>err </dev/null &
pid=$!
await catches $pid 2; started=$?
kill -INT $pid
await none_lives $pid || kill -KILL $pid
wait $pid; code=$?
[ $started = 0 ] && [ $code = 130 ]
report $? "without threads the first Ctrl-C ends a command that writes to a full pipe"
echo "1..$n"
