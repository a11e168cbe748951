#!/bin/sh
# What a user in a hurry does: ends commands while they start, names one file twice, runs two commands
# at once, mistypes the environment. Each is found before anything is computed, and told. Speaks TAP.
set -u
S=$(realpath "${SHERD:-build/sherd}")
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
unset SHERD_JSON SHERD_QUIET SHERD_CONFIG SHERD_NODES SHERD_LOCAL
export HOME="$T" XDG_CONFIG_HOME="$T/config" XDG_RUNTIME_DIR="$T/run"
cd "$T" || exit 1
n=0 code=0

report() { # status, name
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else
        echo "not ok $n - $2"
        echo "# exit $code"; sed 's/^/# out: /' out; sed 's/^/# err: /' err
    fi
}
run() { "$S" "$@" >out 2>err </dev/null; code=$?; }
py() { /usr/bin/python3 -c "import json, os, signal, subprocess, sys, time, numpy as np
$1" >>err 2>&1; }
# fails CODE WORDS ARGS...: exit code, words on stderr
fails() {
    want=$1 words=$2; shift 2
    run "$@"
    [ $code = "$want" ] && grep -q -- "$words" err
}

: >out; : >err
py "
r = np.random.default_rng(3)
np.save('A.npy', r.standard_normal((30, 20)))
np.save('B.npy', r.standard_normal((20, 10)))
np.save('A2.npy', r.standard_normal((30, 20)))
"; report $? "operands are made with numpy"
"$S" keygen me.key >fingerprint 2>err
sed -n 's/.*\(sha256:[A-Za-z0-9+\/=_-]*\).*/* key=\1 role=coordinator/p' fingerprint | head -1 >allow

# --- signals while it starts --------------------------------------------------------------------

py "
for i in range(12):
    p = subprocess.Popen(['$S', 'node', '--key', 'me.key', '--allow', 'allow'],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    time.sleep(0.004 * i)
    p.send_signal(signal.SIGTERM)
    try: p.wait(10)
    except subprocess.TimeoutExpired: p.kill(); raise
"; report $? "a node that is told to end while it starts ends"

py "
for count, after in ((400, 0.3), (400, 1.0)):
    p = subprocess.Popen(['$S', 'multiply', 'A.npy', 'B.npy', '-o', 'C.npy', '-n', str(count)],
                         stderr=subprocess.PIPE, text=True)
    time.sleep(after)
    t = time.monotonic()
    p.send_signal(signal.SIGINT)
    try: err = p.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired: p.kill(); raise
    took = time.monotonic() - t
    print(count, after, took, err)
    assert p.returncode == 130 and took < 3 and not os.path.exists('C.npy')
    assert err.count('starting 400 nodes') == 1
"; report $? "local nodes are given up while they start"

# --- the end ------------------------------------------------------------------------------------
echo "1..$n"
