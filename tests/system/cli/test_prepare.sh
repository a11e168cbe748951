#!/bin/sh
# Masks of a B that somebody wrote to while they were made are of no B at all: they do not appear, and
# what was there before stands. Speaks TAP.
. "$(dirname "$0")/../../support/tap.sh"
export XDG_STATE_HOME="$T/state"
python3 - <<'PY'
import numpy as np
np.save('B.npy', np.random.default_rng(1).standard_normal((4000, 12)))
PY
run prepare B.npy --rows 5 -o m; cp m earlier
[ $code = 0 ]; report $? "masks are made"

# While the rows are made, their first line told: B is as large as before, and its first entry another.
rm -f err
"$S" prepare B.npy --rows 16000 -o m --progress plain >out 2>err </dev/null &
pid=$!
while kill -0 $pid 2>/dev/null && ! grep -q rows err 2>/dev/null; do sleep 0.02; done
printf 'x' | dd of=B.npy bs=1 seek=200 conv=notrunc 2>/dev/null
wait $pid
code=$?
[ $code = 4 ] && grep -q 'B.npy.*changed\|B.npy.*written' err && cmp -s m earlier && [ "$(find . -name '.m.*' | wc -l)" = 0 ]
report $? "B is written to meanwhile: exit 4, and the earlier masks stand"
echo "1..$n"
