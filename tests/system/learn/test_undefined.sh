#!/bin/sh
# Runs a node's computation on its own examples, and the hiding of the result, under memcheck with all
# examples marked as undefined: no branch, index or system call depends on them, except for those
# below, whose outcome is the same for all examples.
PROG=$(realpath "${BUILD:-build/plain}/tests/system/learn/prog_undefined")
. "$(dirname "$0")/../../support/tap.sh"
case ${SAN:-} in ?*) echo "1..0 # SKIP valgrind cannot run programs built with a sanitizer"; exit 77 ;; esac
command -v valgrind >/dev/null || { echo "1..0 # SKIP valgrind is not installed"; exit 77; }
"$PROG" header || { echo "1..0 # SKIP built without valgrind/memcheck.h, or not optimized"; exit 77; }

# Reports that are permitted: the file, a text of the line, and the reason.
cat >public.py <<'END'
import pathlib, re, sys

PUBLIC = [
    ("learn/loss.c", "t.labels[r] >= width", "labels were made valid when they were read"),
    ("learn/local_data_clip.c", "sqrt(", "sums of squares are not negative: errno is not set"),
    ("learn/local_data_clip.c", "!all_bounded(", "examples beyond the bound are computed again: there are none"),
    ("crypto/aggregate.c", "return over ?", "hidden values were saturated below the bound"),
]

def public(frame):
    at = re.search(r"\(([^:()]+):(\d+)\)$", frame)
    for path, words, _ in PUBLIC:
        if at and path.endswith("/" + at[1]):
            line = pathlib.Path(sys.argv[1], path).read_text().split("\n")[int(at[2]) - 1]
            if words in line:
                return True
    return False

text = pathlib.Path(sys.argv[2]).read_text()
log = [re.sub(r"^==\d+== *", "", line) for line in text.split("\n")]
frames = [log[i + 1] if ": sqrt" in line else line
          for i, line in enumerate(log) if line.startswith("at 0x")]
secret = sorted({f for f in frames if not public(f)})
print(f"{len(frames)} places, {len(secret)} of them secret", *secret, sep="\n")
sys.exit(1 if secret else 0)
END

check() {
    OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE=Nehalem valgrind -q --error-limit=no --log-file=log \
        "$PROG" "$@" >out 2>err
    code=$?
    [ $code = 0 ] && python3 public.py "$R" log >out 2>err
}

check examples
report $? "no branch, index or system call depends on an example"
check control
[ $? != 0 ] && grep -q 'secret_branch' out
report $? "memcheck reports a branch on an example in a control"
echo "1..$n"
