# Tests of the command source this first, from the top of the repository. It makes a temporary folder
# and an environment without the user's settings, and writes TAP. It defines
#
#   S       the command
#   R       the repository
#   T       the temporary folder, which becomes the working folder and is removed at the end
#   MNIST   the folder of the MNIST files, if it exists
#   run     runs the command once: out, err and $code
#   report  prints a status and a name as a line of TAP, and the latest output if the status is not 0
#   skip    prints a skipped name and the reason
#   fails   checks an exit code and words of stderr, for the arguments of run
#   catches checks that a process is the command and handles a signal: 2 is SIGINT, 0x4000 SIGTERM
#   await   repeats a command until it succeeds, for at most a minute
#   is_log  checks each line of these files against docs/train-log.schema.json
#   gone    waits until none of these processes exists, for at most a minute
#   beside  starts a case in the background: its name, then a command, which is run in a folder of its own
#           that has a link to each file of the temporary folder. It succeeds if the case is good.
#   joined  waits for the cases that are in the background, and reports them in their order
#   cluster starts N nodes, which commands use that name none, and which end with the test
#
# A test that starts background processes sets its own trap, which must also remove "$T".
set -u
S=$(realpath "${SHERD:-build/sherd}")
R=$(pwd)
# shellcheck disable=SC2034
MNIST=$(realpath "${SHERD_MNIST:-../shared/data/mnist}" 2>/dev/null)
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
# No library of the machine.
export SHERD_CUDA_PATH=
unset SHERD_CONFIG SHERD_DATA SHERD_JSON SHERD_LOCAL SHERD_NODES SHERD_QUIET SHERD_SEED NO_COLOR
export HOME="$T" XDG_CONFIG_HOME="$T/config" XDG_RUNTIME_DIR="$T/run"
# Kernels that PoCL compiles are kept between runs.
POCL_CACHE_DIR=$(realpath "${BUILD:-build/plain}")/tests/pocl
export POCL_CACHE_DIR
mkdir -p "$POCL_CACHE_DIR"
cd "$T" || exit 1
n=0 code=0
: >out
: >err

run() { "$S" "$@" >out 2>err </dev/null; code=$?; }
report() {
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
        return
    fi
    echo "not ok $n - $2"
    echo "# exit $code"
    tail -n 40 "$T/out" | sed 's/^/# out: /'
    tail -n 40 "$T/err" | sed 's/^/# err: /'
}
skip() {
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}
await() {
    looks=0
    until "$@"; do
        [ $looks -lt 600 ] || return 1
        looks=$((looks + 1))
        sleep 0.1
    done
}
catches() { # process, signal as a mask: checks that the process is the command and has a handler of the signal
    # A shell that has not executed the command yet may have a handler of its own.
    caught=$(sed -n '/^Name:[[:space:]]*sherd$/,$s/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
    [ $((0x${caught:-0} & $2)) != 0 ]
}
none_lives() { for p; do grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$p/status" && return 1; done; return 0; }
is_log() { /usr/bin/python3 "$R/tests/support/log_schema.py" "$@" >>err 2>&1; }
gone() { await none_lives "$@"; }
cluster() { # number of nodes: their start takes most of the time of a small product
    trap '"$S" cluster down -q >/dev/null 2>&1; rm -rf "$T"' EXIT
    trap 'exit 1' HUP INT TERM
    mkdir -p -m 700 "$XDG_RUNTIME_DIR" && "$S" cluster up -n "$1" -q >/dev/null 2>>err
}
besides=0 joined=0
beside() {
    besides=$((besides + 1))
    mkdir "$T/beside.$besides"
    echo "$1" >"$T/beside.$besides.name"
    shift
    (
        cd "$T/beside.$besides" && : >out && : >err || exit 1
        for file in ../*; do
            case $file in ../out | ../err | ../beside.*) ;; *) ln -s "$file" . ;; esac
        done
        "$@" >"../beside.$besides.said" 2>&1
        echo "$? $code" >"../beside.$besides.code"
    ) &
    beside_pids="${beside_pids:-} $!"
}
joined() {
    # shellcheck disable=SC2086
    wait $beside_pids
    beside_pids=
    while [ $joined -lt $besides ]; do
        joined=$((joined + 1)) good=1
        read -r good code <"beside.$joined.code"
        cat "beside.$joined.said"
        cp "beside.$joined/out" "beside.$joined/err" .
        report "$good" "$(cat "beside.$joined.name")"
    done
}
fails() {
    want=$1 words=$2
    shift 2
    run "$@"
    [ $code = "$want" ] && grep -q -- "$words" err
}
