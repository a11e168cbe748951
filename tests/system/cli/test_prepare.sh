#!/bin/sh
# Masks that were made while B was written to fit no B: they are discarded, and existing masks are kept.
# Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
export XDG_STATE_HOME="$T/state"
python3 - <<'PY'
import numpy as np
np.save('B.npy', np.random.default_rng(1).standard_normal((4000, 12)))
PY
run prepare B.npy --rows 5 -o m; cp m earlier
[ $code = 0 ]; report $? "masks are made"

# After the first progress line the first entry of B is changed; its size stays the same.
rm -f err
"$S" prepare B.npy --rows 16000 -o m --progress plain >out 2>err </dev/null &
pid=$!
while kill -0 $pid 2>/dev/null && ! grep -q rows err 2>/dev/null; do sleep 0.02; done
printf 'x' | dd of=B.npy bs=1 seek=200 conv=notrunc 2>/dev/null
wait $pid
code=$?
[ $code = 4 ] && grep -q 'B.npy.*changed\|B.npy.*written' err && cmp -s m earlier && [ "$(find . -name '.m.*' | wc -l)" = 0 ]
report $? "if B is written to meanwhile, the exit code is 4 and existing masks are kept"
echo "1..$n"
