#!/bin/bash
# The example scripts, run as a user would, with the command of this build on the PATH. (The program
# in C is built and run against an installed copy by tests/system/install.)
set -u
cd "$(dirname "$0")/../../.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/run"
ln -s "${SHERD:-$PWD/build/sherd}" "$work/bin/sherd"
export PATH=$work/bin:$PATH XDG_RUNTIME_DIR=$work/run TMPDIR=$work
failed=0
example() { # name, command...
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then echo "ok - $name"; else
        echo "not ok - $name"; sed 's/^/# /' "$work/log"; failed=1
    fi
}
example "a cluster that outlives commands" examples/cluster.sh
example "the MNIST layer on drawn digits" examples/mnist-layer.sh "" 500
if [ -d ../shared/data/mnist ]; then
    example "the MNIST layer on MNIST" examples/mnist-layer.sh ../shared/data/mnist 2000
else
    echo "ok - the MNIST layer on MNIST # SKIP no ../shared/data/mnist"
fi
exit $failed
