#!/bin/sh
# Metadata on the command line: size and output of each form, numpy, damage, products that use it.
# Writes TAP.
# In a memory file system if there is one: an expanded file of a training step is 242 MB.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/../../support/tap.sh"
unset TMPDIR

out_has() { grep -q -- "$1" out; }
err_has() { grep -q -- "$1" err; }
json() { /usr/bin/python3 -c 'import json, sys
d = json.loads(sys.stdin.read())
assert eval("(" + sys.argv[1] + ")"), d' "$1" <out 2>>err; }
python() { /usr/bin/python3 -W ignore - "$@" >>out 2>>err; }

run meta build --network 784,128,10 --samples 60000 --nodes 7 -o seed.npz
[ $code = 0 ] && [ "$(stat -c %s seed.npz)" -lt 2048 ] && [ "$(stat -c %a seed.npz)" = 600 ] &&
    [ "$(grep -c '^[a-z0-9_]*  *A.* 1-7 ' out)" = 11 ] && out_has '^z1  *dot  *784 x 128 ' &&
    out_has '^z2_da  *dot  *10 x 60000 '
report $? "eleven operations of a training step take less than 2 KiB"

for try in 1 2 3 4 5; do # the machine may be busy
    run meta build --network 784,128,10 --samples 60000 --nodes 7 -o again.npz --json
    json 'd["seconds_made"] < 1e-3' && break
done
[ $code = 0 ] && json 'd["seconds_made"] < 1e-3 and len(d["operations"]) == 11 and
    all(len(o["exposures"]) == 7 for o in d["operations"]) and
    sum(d["operations"][0]["exposures"]) == 784 and d["schema"] == "sherd/meta-build/1"'
report $? "they are made within a millisecond, and JSON has a count for each node"

run meta expand seed.npz -o arrays.npz
[ $code = 0 ] && run meta verify arrays.npz && [ $code = 0 ] && out_has 'all numbers match the seed' &&
    run meta compact arrays.npz -o again.npz && [ $code = 0 ] &&
    cmp -s seed.npz again.npz
report $? "a training step expands to arrays that are verified and compact to the same bytes"

python arrays.npz <<'EOF'
import sys, numpy as np
z = np.load(sys.argv[1])
assert z["z1_dw.enshuffles"].shape == (60000, 784) and z["z1_dw.enshuffles"].dtype == "<u2"
assert z["z1.unshuffles"].shape == (784, 128) and z["z1.unshuffles"].dtype == "u1"
b = np.arange(128.)
assert (b[z["z1.enshuffles"][5]][z["z1.unshuffles"][5]] == b).all()
assert z["z2_dw.exposures"].shape == (60000,) and z["z2_dw.exposures"].max() == 6
EOF
code=$?; report $code "numpy.load opens the arrays, and unshuffles undo enshuffles"
rm -f arrays.npz

head -c 32 /dev/urandom >seed.bin
run meta build z=dot:60x50x40 a=tanh:60x40 --nodes 3 --seed seed.bin --form expanded --shuffle-rows \
    --exposure balanced -o z.npz
[ $code = 0 ] && /usr/bin/python3 -W ignore "$R/tests/oracle/perm_v1.py" z.npz >out 2>err
report $? "another program regenerates every array from the seed"

run meta show z.npz --json
[ $code = 0 ] && json 'd["form"] == "expanded" and d["exposure"] == "balanced" and d["shuffle_rows"]
    and sorted(d["operations"][0]["exposures"]) == [16, 17, 17] and d["operations"][0]["shape"] == [60, 50, 40]'
report $? "show prints form, shapes and exposures"

# forge PYTHON: writes z.npz to bad.npz with one change to the dictionary z
forge() { python z.npz bad.npz <<EOF
import sys, numpy as np
z = {k: v.copy() for k, v in np.load(sys.argv[1]).items()}
$1
np.savez(sys.argv[2], **z)
EOF
}
named() { # what, pattern
    run meta verify bad.npz
    [ $code = 3 ] && err_has "$2"
    report $? "$1 is detected: exit code 3, with operation and row"
}
forge 't = z["z.enshuffles"]; t[31, [4, 9]] = t[31, [9, 4]]'
named "a swapped pair in enshuffles" 'operation z, row 31'
forge 't = z["a.unshuffles"]; t[59, [0, 1]] = t[59, [1, 0]]'
named "a swapped pair in unshuffles" 'operation a, row 59'
forge 't = z["z.unrows"]; t[2, [0, 1]] = t[2, [1, 0]]'
named "a swapped pair in unrows" 'operation z, row 2'
forge 'z["z.exposures"][7] = 3'
named "an exposure out of range" 'operation z, row 7'
forge 'z["seed"][31] ^= 128'
named "a changed seed bit" 'operation z, row [0-9]'
run meta compact bad.npz -o never.npz; [ $code = 3 ] && [ ! -e never.npz ]
report $? "a file that does not verify is not compacted"

run meta expand z.npz --without-seed -o shared.npz
[ $code = 0 ] && run meta verify shared.npz && [ $code = 0 ] && out_has 'seed is not known' &&
    run meta compact shared.npz -o never.npz && [ $code = 3 ] && [ ! -e never.npz ] &&
    err_has -- '--seed'
report $? "a file without its seed is not compacted"
run meta compact shared.npz --seed seed.bin -o compact.npz
[ $code = 0 ] && run meta compact z.npz -o same.npz && cmp -s compact.npz same.npz
report $? "--seed compacts it"
head -c 32 /dev/zero >zero.bin
run meta compact shared.npz --seed zero.bin -o never.npz; [ $code = 3 ] && [ ! -e never.npz ]
report $? "another seed does not compact it"

# A manifest from elsewhere can name any shape. Writes the peak memory of a verb in KB to peak.
peak() { /usr/bin/python3 - "$S" "$@" >peak 2>>err <<'EOF'
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
EOF
    read -r code kb <peak; }
run meta build z=dot:600x4000x4000 --nodes 3 -o small.npz
python small.npz huge.npz <<'EOF'
import sys, numpy as np
z = dict(np.load(sys.argv[1]))
text = bytes(z["manifest"]).replace(b"4000", b"4000000000")
z["manifest"] = np.frombuffer(text, np.uint8)
np.savez(sys.argv[2], **z)
EOF
for verb in "show huge.npz" "verify huge.npz" "expand huge.npz -o never.npz" "compact huge.npz -o never.npz"; do
    run meta $verb
    [ $code = 3 ] && err_has 'operation 0: operation z: a dimension is 4000000000, at most 67108864' && [ ! -s out ]
    report $? "meta ${verb%% *} refuses dimensions beyond the documented limits"
done
peak meta show huge.npz; [ $code = 3 ] && [ "$kb" -lt 60000 ]
report $? "nothing is allocated for them"
run meta build z=dot:5x67108864x3 b=exp:3x67108864 --nodes 3 -o wide.npz
peak meta show wide.npz; [ $code = 0 ] && [ "$kb" -lt 60000 ]
report $? "show counts the longest exposures in little memory"

run meta expand z.npz --deflate -o packed.npz
[ $code = 0 ] && [ "$(stat -c %s packed.npz)" -lt "$(stat -c %s z.npz)" ] && run meta verify packed.npz && [ $code = 0 ]
report $? "--deflate makes it smaller"

cp seed.npz keep.npz
for bad in "z=dot:6x5" "z=cosine:6x5" "=dot:1x2x3" "z=dot:-1x2x3" "z=exp:1x2x3" "z=exp:1x2x" "z=dot:1x2x4294967296"; do
    run meta build "$bad" --nodes 3 -o keep.npz
    [ $code = 2 ] && cmp -s seed.npz keep.npz || echo "$bad" >>wrong
done
run meta build --network 784,,10 --samples 3 --nodes 3 -o keep.npz; [ $code = 2 ] || echo network >>wrong
run meta build --network 784,10 --nodes 3 -o keep.npz; [ $code = 2 ] || echo samples >>wrong
run meta build --nodes 3 -o keep.npz; [ $code = 2 ] || echo none >>wrong
run meta build z=dot:1x2x3 --nodes 3 --seed seed.npz -o keep.npz; [ $code = 3 ] || echo seed >>wrong
[ ! -e wrong ]; report $? "contradictory arguments are usage errors, and an existing file is kept"

run meta show none.npz; [ $code = 4 ]
report $? "a missing file gives exit code 4"
for bad in "$R"/tests/fuzz/corpus/npz/*; do
    case $bad in */seed | */expanded | */numpy | */deflated) continue ;; esac
    run meta verify "$bad"
    [ $code = 3 ] && [ "$(grep -c '^sherd: ' err)" = 1 ] || echo "$bad $code" >>wrong
done
[ ! -e wrong ]; report $? "damaged, inconsistent and hostile archives give exit code 3 with one message"

python A.npy B.npy X.npy <<'EOF'
import sys, numpy as np
r = np.random.default_rng(1)
for path, shape in zip(sys.argv[1:], ((60, 50), (50, 40), (60, 50))):
    np.save(path, r.standard_normal(shape))
EOF
run multiply A.npy B.npy -o C.npy -n 3 --mode exact --seed seed.bin --exposure balanced --shuffle-rows
[ $code = 0 ]; report $? "a product runs with a seed"
product() { # meta, name
    rm -f D.npy
    run multiply A.npy B.npy -o D.npy -n 3 --mode exact --meta "$1" --check
    [ $code = 0 ] && cmp -s C.npy D.npy
    report $? "$2"
}
cp z.npz z1.npz; cp compact.npz z2.npz
product z1.npz "the same product from arrays is the same, bit for bit"
product z2.npz "and from the seed form"
product z1.npz "the same operands again are no reuse"
run meta show z1.npz; out_has ' used$' && run meta verify z1.npz && [ $code = 0 ]
report $? "the file records its use and still verifies"
run multiply X.npy B.npy -o never.npy -n 3 --mode exact --meta z1.npz
[ $code = 10 ] && [ ! -e never.npy ] && err_has 'reuse-metadata'
report $? "other operands are refused with exit code 10"
run multiply X.npy B.npy -o E.npy -n 3 --mode exact --meta z1.npz --reuse-metadata \
    --certificate cert.json --json
[ $code = 0 ] && grep -q '"reused_metadata": *true' cert.json
report $? "--reuse-metadata allows other operands, and the certificate states it"
echo "1..$n"
