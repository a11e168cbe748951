#!/bin/sh
# The PTX that the program carries is that of the kernels' sources: by their digest everywhere, by compiling again
# where the same nvcc is, and by assembling it for devices where ptxas is.
. "$(dirname "$0")/../../support/tap.sh"
PATH=$PATH:/usr/local/cuda/bin
ptx="$R/node/backends/kernels/kernels.ptx"

[ "$(sed -n '1s/.* from sources //p' "$ptx")" = "$("$R/tools/ptx" --sources)" ]
report $? "the PTX was made from these sources (else run tools/ptx, which needs nvcc of CUDA 13.0)"

# Operations without a rounding mode may be contracted.
good=0
grep -qx '.version 6.3' "$ptx" && grep -qx '.target sm_75' "$ptx" || good=1
! grep -E '(add|sub|mul|fma|div)\.f(32|64)' "$ptx" >err || good=1
for kernel in map layer peak columns product_f64 product_residues product_bytes convert store centre reduce; do
    grep -qx ".visible .entry sherd__kernel_$kernel(" "$ptx" || good=1
done
report $good "drivers of CUDA 11 read it, and it has all kernels, without contraction"

with=$("$R/tools/ptx" --compiler 2>/dev/null)
if [ -z "$with" ]; then
    skip "compiled again, the kernels give the same PTX" "there is no nvcc"
elif ! head -n 1 "$ptx" | grep -q "with nvcc $with from"; then
    skip "compiled again, the kernels give the same PTX" "nvcc $with is another version"
else
    "$R/tools/ptx" "$T/again.ptx" >out 2>err && cmp "$ptx" again.ptx >>err 2>&1
    report $? "compiled again, the kernels give the same PTX"
fi

from_75() { sort -u | awk -F_ '$2 + 0 >= 75'; } # of names as sm_75, one a line
several() { [ "$(echo "$1" | wc -w)" -ge 2 ]; }

if [ -z "$with" ]; then
    skip "nvcc compiles the kernels for every device from sm_75 on" "there is no nvcc"
else
    targets=$(nvcc --list-gpu-code | from_75)
    # shellcheck disable=SC2046
    several "$targets" && (cd "$R" && nvcc -fatbin --fmad=false -diag-suppress 177 -I. -x cu -o "$T/kernels.fatbin" \
        $(for arch in $targets; do echo "-gencode arch=compute_${arch#sm_},code=$arch"; done) \
        node/backends/kernels/kernels.h) >out 2>err && [ -s kernels.fatbin ]
    report $? "nvcc compiles the kernels for every device from sm_75 on"
fi

if ! command -v ptxas >/dev/null; then
    skip "the PTX is assembled for every device from sm_75 on, without spilling" "there is no ptxas"
else
    good=0
    targets=$(ptxas --help | grep -o "'sm_[0-9]*'" | tr -d "'" | from_75)
    several "$targets" || good=1
    for arch in $targets; do
        ptxas -v "-arch=$arch" -o kernels.cubin "$ptx" >"$arch.txt" 2>&1 &&
            [ "$(grep -c ' 0 bytes spill stores' "$arch.txt")" = "$(grep -c '^.visible .entry' "$ptx")" ] || good=1
        cat "$arch.txt" >>err
    done
    report $good "the PTX is assembled for every device from sm_75 on, without spilling"
fi
echo "1..$n"
