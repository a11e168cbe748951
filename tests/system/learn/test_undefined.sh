#!/bin/sh
# What a node computes of its own examples, and how it hides it, is run by memcheck with all examples
# marked as undefined: no branch, index or system call depends on them, but for those below, which go
# the same way for all examples.
PROG=$(realpath "${BUILD:-build/plain}/tests/system/learn/prog_undefined")
. "$(dirname "$0")/../../support/tap.sh"
case ${SAN:-} in ?*) echo "1..0 # SKIP valgrind runs nothing that a sanitizer watches"; exit 77 ;; esac
command -v valgrind >/dev/null || { echo "1..0 # SKIP valgrind is not installed"; exit 77; }
"$PROG" header || { echo "1..0 # SKIP built without valgrind/memcheck.h, or not optimized"; exit 77; }

# Which of these memcheck may name: the file, what the line says, and why that is public.
cat >public.py <<'END'
import pathlib, re, sys

PUBLIC = [
    ("learn/loss.c", "t.labels[r] >= width", "labels were made valid when they were taken"),
    ("learn/local_data_clip.c", "sqrt(", "sums of squares are not negative: errno is not set"),
    ("learn/local_data_clip.c", "!all_bounded(", "whoever is beyond the bound is graded again: none is"),
    ("crypto/aggregate.c", "return over ?", "what is hidden was saturated below the bound"),
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
report $? "a branch on an example would have been named"
echo "1..$n"
