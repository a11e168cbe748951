#!/bin/sh
# A result and its certificate appear together: whichever call that writes fails, and whenever Ctrl-C
# comes, no certificate exists without its result, and the certificate of an earlier result is kept
# until that result is replaced. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
if [ -n "${SAN:-}" ]; then
    skip "a disk that fails" "a sanitizer must be loaded first"
    echo "1..$n"
    exit 0
fi
b=${B:-build/plain}
case $b in /*) ;; *) b=$R/$b ;; esac
python3 - <<'PY'
import numpy as np
r = np.random.default_rng(1)
for name, shape in ('A', (30, 40)), ('A2', (30, 40)), ('B', (40, 20)):
    np.save(name + '.npy', r.standard_normal(shape))
PY
"$S" keygen me.key >out 2>err
run multiply A2.npy B.npy -o C.npy -n 1 --certificate C.json --key me.key
[ $code = 0 ] && cp C.npy old.npy && cp C.json old.json; report $? "an earlier result has its certificate"

# at AT DOES: sets code, and there to the new files
at() {
    cp old.npy C.npy && cp old.json C.json
    DISK_AT=$1 DISK_DOES=$2 DISK_FILE=$T/calls LD_PRELOAD=$b/tests/system/cli/preload_disk.so \
        "$S" multiply A.npy B.npy -o C.npy -n 1 --certificate C.json --key me.key >out 2>err </dev/null
    code=$? there=
    cmp -s C.npy old.npy || there=C
    cmp -s C.json old.json || there="$there certificate"
}
at 0 fail
calls=$(cat calls)
[ $code = 0 ] && [ "$there" = "C certificate" ] && [ "$calls" -ge 8 ]
report $? "without a failure both files are replaced"

bad='' seen=''
i=1
while [ "$i" -le "$calls" ]; do
    at "$i" fail
    seen="$seen/$there"
    case $there in
    '') [ $code = 4 ] ;;
    C) [ $code = 4 ] && grep -q 'C.npy.* written' err ;;
    'C certificate') [ $code = 4 ] && "$S" verify C.json A.npy B.npy C.npy >/dev/null 2>&1 ;;
    *) false ;;
    esac || bad="$bad $i:$code:$there"
    [ "$(find . -name '.*.sherd-*' | wc -l)" = 0 ] || bad="$bad $i:left"
    i=$((i + 1))
done
echo "# $seen"
[ -z "$bad" ]; report $? "no failure of the disk leaves a certificate without its result$bad"

bad='' seen=''
i=1
while [ "$i" -le "$calls" ]; do
    at "$i" interrupt
    seen="$seen/$there"
    case $there in
    '') [ $code = 130 ] && grep -q 'nothing was written' err ;;
    'C certificate') [ $code = 0 ] ;;
    *) false ;;
    esac || bad="$bad $i:$code:$there"
    i=$((i + 1))
done
echo "# $seen"
[ -z "$bad" ]; report $? "no Ctrl-C leaves only one of both$bad"
echo "1..$n"
