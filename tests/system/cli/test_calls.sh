#!/bin/sh
# System calls that fail, from the first or a later one on: each run ends in bounded time and with a
# message, and keeps an earlier output. Writes TAP.
b=$(realpath "${B:-build/plain}")
. "$(dirname "$0")/../../support/tap.sh"
case ${SAN:-} in ?*) echo "1..0 # SKIP sanitizers end the process where a call fails"; exit 77 ;; esac

/usr/bin/python3 - <<'END'
import numpy as np
np.save("A.npy", np.arange(600.0).reshape(30, 20))
np.save("B.npy", np.ones((20, 10)))
END
run multiply A.npy B.npy -o right.npy -n 2 --bits 20
[ $code = 0 ]; report $? "a product is computed if all calls succeed"

failing() { # process, call, from, arguments
    CALLS_IN=$1 CALLS_NAME=$2 CALLS_FROM=$3 LD_PRELOAD=$b/tests/system/cli/preload_calls.so
    export CALLS_IN CALLS_NAME CALLS_FROM LD_PRELOAD
    shift 3
    exec timeout -s KILL 60 "$S" "$@"
}
# process, call, from: the run succeeds, or fails with a message; C is unchanged or complete.
broken() {
    cp B.npy C.npy
    (failing "$@" multiply A.npy B.npy -o C.npy -n 1 --bits 20 --timeout 20) >out 2>err </dev/null
    code=$?
    if [ $code = 0 ]; then cmp -s C.npy right.npy; return; fi
    [ $code -ne 124 ] || return 1
    [ $code -ne 137 ] && grep -q '^sherd: ' err && { cmp -s C.npy B.npy || cmp -s C.npy right.npy; }
}

for at in command node; do
    for call in epoll_ctl epoll_create1 epoll_pwait epoll_wait eventfd socket ftruncate mmap getrandom pwrite write \
        pipe2 read writev sigaction; do
        worst=0
        for from in 1 2 5 12; do
            broken $at $call $from || { worst=1; echo "# $at: $call fails from call $from on: exit $code"; break; }
        done
        report $worst "$at: if $call fails, there is a message, and the output is unchanged or complete"
    done
done

few() { # descriptors, arguments
    ulimit -n "$1"
    shift
    exec timeout -s KILL 60 "$S" "$@"
}
# Few descriptors: neither the command nor a node that it starts aborts.
worst=0 done=0
for most in 5 6 7 8 9 10 11 12 13 14 15 16 18 20 24 32 48; do
    cp B.npy C.npy
    (few $most multiply A.npy B.npy -o C.npy -n 2 --bits 20 --timeout 20) >out 2>err </dev/null
    code=$?
    [ $code = 0 ] && cmp -s C.npy right.npy && { done=$((done + 1)); continue; }
    [ $code != 0 ] && [ $code -lt 124 ] && ! grep -q 'a library aborted' err && cmp -s C.npy B.npy && continue
    worst=1
    echo "# $most descriptors: exit $code: $(head -1 err)"
done
[ $worst = 0 ] && [ $done -gt 0 ]
report $? "with few descriptors a product is computed, or fails with a message and without an abort"
echo "1..$n"
