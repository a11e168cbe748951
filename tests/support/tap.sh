# Sourced first by tests of the command, from the top of the repository: a folder of the test's own,
# an environment without settings of whoever runs it, and TAP. It gives
#
#   S       the command             T    the folder, where the test is from now on; gone at its end
#   R       the repository          MNIST   the folder of its files, where there is one
#   run     the command once: out, err and $code
#   report  a status and a name as a line of TAP, and what was said last where it is not 0
#   skip    a name, and why that was not asked
#   fails   exit code, words that stderr has, arguments of run
#   await   a command, again and again until it says yes; a minute at most
#   is_log  whether each line of these files is as docs/train-log.schema.json says
#   gone    until no process has one of these numbers; a minute at most
#
# A test that leaves processes behind sets a trap of its own, which removes "$T" too.
set -u
S=$(realpath "${SHERD:-build/sherd}")
R=$(pwd)
# shellcheck disable=SC2034
MNIST=$(realpath "${SHERD_MNIST:-../shared/data/mnist}" 2>/dev/null)
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
unset SHERD_CONFIG SHERD_DATA SHERD_JSON SHERD_LOCAL SHERD_NODES SHERD_QUIET SHERD_SEED NO_COLOR
export HOME="$T" XDG_CONFIG_HOME="$T/config" XDG_RUNTIME_DIR="$T/run"
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
none_lives() { for p; do grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$p/status" && return 1; done; return 0; }
is_log() { /usr/bin/python3 "$R/tests/support/log_schema.py" "$@" >>err 2>&1; }
gone() { await none_lives "$@"; }
fails() {
    want=$1 words=$2
    shift 2
    run "$@"
    [ $code = "$want" ] && grep -q -- "$words" err
}
