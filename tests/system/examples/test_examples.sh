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
example "a script with a cluster that outlives commands" examples/cluster.sh
example "the MNIST layer on drawn digits" examples/mnist-layer.sh "" 500
if [ -d ../shared/data/mnist ]; then
    example "the MNIST layer on MNIST" examples/mnist-layer.sh ../shared/data/mnist 2000
else
    echo "ok - the MNIST layer on MNIST # SKIP no ../shared/data/mnist"
fi

# The examples must fail if the command fails or gives wrong results. This wrapper runs sherd with one
# exception, TRAP: "fail WORD..." ends once with status 3 if the command line begins with these words,
# "lie FILE" changes one entry of an output of that name.
mkdir "$work/trap"
cat >"$work/trap/sherd" <<END
#!/bin/bash
case \$TRAP in
"fail "*) case "\$* " in "\${TRAP#fail } "*) mkdir "$work/failed" 2>/dev/null && exit 3 ;; esac ;;
esac
"$work/bin/sherd" "\$@"
status=\$?
case " \$* " in *" -o \${TRAP#lie } "*)
    [ "\${TRAP%% *}" = lie ] && echo lied >"$work/lied" && python3 -c "
import sys, numpy as np
C = np.load(sys.argv[1])
C[-1, -1] += 1
np.save(sys.argv[1], C)" "\${TRAP#lie }" ;;
esac
exit \$status
END
chmod +x "$work/trap/sherd"
trapped() { # what, command...
    local what=$1 status
    shift
    rm -rf "$work/lied" "$work/failed"
    TRAP=$what PATH=$work/trap:$PATH "$@" >"$work/log" 2>&1
    status=$?
    if [ $status -ne 0 ] && { [ -e "$work/lied" ] || [ -e "$work/failed" ]; } &&
        ! sherd cluster status >>"$work/log" 2>&1; then
        echo "ok - ${1##*/} fails if sherd does: $what"
    else
        echo "not ok - ${1##*/} fails if sherd does: $what (status $status)"
        sed 's/^/# /' "$work/log"; failed=1
        sherd cluster down >/dev/null 2>&1
    fi
}
for what in "fail cluster up" "fail cluster status" "fail multiply" "fail apply" "fail cluster down" \
    "lie C.npy" "lie E.npy" "lie S.npy"; do
    trapped "$what" examples/cluster.sh
done
for what in "fail meta build" "fail multiply" "lie z1.npy"; do
    trapped "$what" examples/mnist-layer.sh "" 200
done
exit $failed
