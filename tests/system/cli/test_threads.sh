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

# No thread at all, not even one for the end of the time. Half a minute for what takes two seconds.
mkfifo silent full
sleep 600 >silent &
holder=$!
sleep 600 <full &
reader=$!
trap 'kill $holder $reader 2>/dev/null; wait; rm -rf "$T"' EXIT
export THREADS_NONE=1
alone() { (unset OPENBLAS_NUM_THREADS; LD_PRELOAD=$b/tests/system/cli/preload_threads.so exec timeout -s KILL 30 "$S" "$@") >out 2>err </dev/null; code=$?; }
alone plan silent B.npy -n 2 --timeout 1; [ $code = 124 ] && grep -q 'the time of --timeout is over; silent: .*its writer' err
report $? "--timeout ends what waits for a silent pipe where no thread can be started"
catches_int() { # a process: the command's, which has started by then
    caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
    [ $((0x${caught:-0} & 2)) != 0 ]
}
head -c 65536 /dev/zero >full
i="env --default-signal=INT"
LD_PRELOAD=$b/tests/system/cli/preload_threads.so $i "$S" help >full 2>err </dev/null &
pid=$!
await catches_int $pid
kill -INT $pid
await none_lives $pid || kill -KILL $pid
wait $pid; code=$?
[ $code = 130 ]
report $? "and the first Ctrl-C what writes to a pipe that nobody reads"
echo "1..$n"
