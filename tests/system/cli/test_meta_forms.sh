#!/bin/sh
# Every form of a metadata file with every command and option that reads one, with and without a known
# seed. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

python() { /usr/bin/python3 -W ignore - "$@" >>out 2>>err; }
expect() { # code, what, of the run before
    [ $code = "$1" ] && return
    echo "$form: $2: exit $code" >>wrong
    tail -n 3 err >>wrong
    return 1
}

cluster 3
report $? "three nodes are started"
head -c 32 /dev/urandom >seed.bin
python <<'END'
import numpy as np
r = np.random.default_rng(12)
for path, shape in (("A.npy", (12, 6)), ("B.npy", (6, 4)), ("X.npy", (12, 6))):
    np.save(path, r.standard_normal(shape))
END

python <<'END'
import numpy as np
np.save("V.npy", np.ones((1, 1500))); np.save("W.npy", np.ones((1500, 3000)))
END
run meta build z=dot:1x1500x3000 --nodes 3 --group 1 --form expanded -o large.npz
[ $code = 0 ] && run multiply V.npy W.npy -o C.npy --meta large.npz && [ $code = 0 ] &&
    grep -q 'large.npz: recording its first use writes all of its .* MB again' err &&
    run multiply V.npy W.npy -o C.npy --meta large.npz && [ $code = 0 ] && ! grep -q 'first use' err
report $? "the first product with a large expanded file says what takes the time"
rm -f large.npz V.npy W.npy C.npy

build() { # file, options
    file=$1
    shift
    run meta build z=dot:12x6x4 e=exp:12x6 --nodes 3 --exposure balanced --seed seed.bin "$@" -o "$file"
    [ $code = 0 ]
}
mkdir forms rows
for dir in forms rows; do
    more=
    [ $dir = forms ] || more=--shuffle-rows
    # shellcheck disable=SC2086
    build $dir/seed.npz $more && build $dir/arrays.npz --form expanded $more &&
        build $dir/packed.npz --form expanded --deflate $more &&
        build $dir/bare.npz --form expanded --without-seed $more &&
        build $dir/bare-packed.npz --form expanded --without-seed --deflate $more &&
        python $dir <<'END'
import sys, numpy as np
z = dict(np.load(sys.argv[1] + "/arrays.npz"))
np.savez(sys.argv[1] + "/numpy.npz", **z)
del z["seed"]
np.savez_compressed(sys.argv[1] + "/numpy-bare.npz", **z)
END
    report $? "seven forms are made${more:+ with }$more"
done

: >wrong
product() { # options; the file stays valid and records its use
    cp "$form" used.npz
    rm -f C.npy cert.json
    run multiply A.npy B.npy -o C.npy --meta used.npz "$@"
    expect 0 "multiply $*" || return
    run meta verify used.npz
    expect 0 "meta verify after multiply $*"
    run meta show used.npz
    grep -q '^z .* used$' out || echo "$form: multiply $*: not used" >>wrong
    [ -e cert.json ] || return 0
    run verify cert.json A.npy B.npy C.npy
    expect 0 "verify of its certificate"
}
for form in forms/*.npz rows/*.npz; do
    product --exposure-max 1 --certificate cert.json
    product --exposure-max 0.34 --mode exact --check
    cp "$form" used.npz
    case $form in # a forecast reads the file as the product does, but also measures the machine
    */seed.npz | */bare.npz)
        run multiply A.npy B.npy --meta used.npz --dry-run --exposure-max 0.34
        expect 0 "multiply --dry-run"
        ;;
    esac
    run multiply A.npy B.npy -o never.npy --meta used.npz --exposure-max 0.2
    expect 10 "multiply beyond the bound" && grep -q "domain 0.333 of A" err ||
        echo "$form: another bound" >>wrong
    [ ! -e never.npy ] || echo "$form: a refused product" >>wrong
    known=
    case $form in *bare*) known="--seed seed.bin" ;; esac
    rm -f new.npz
    for verb in show verify "expand -o new.npz" "compact $known -o new.npz"; do
        # shellcheck disable=SC2086
        run meta $verb "$form"
        expect 0 "meta $verb"
    done
done
cat wrong >err
[ ! -s wrong ]
report $? "each form works with products under --exposure-max, forecasts, certificates and the verbs of meta"

: >wrong
for form in forms/*.npz; do
    cp "$form" used.npz
    run apply exp A.npy -o F.npy --meta used.npz --exposure-max 0.34 --check --certificate cert.json
    expect 0 "apply"
    rm -f cert.json
    run apply exp A.npy -o never.npy --meta used.npz --exposure-max 0.2
    expect 10 "apply beyond the bound"
done
cat wrong >err
[ ! -s wrong ]
report $? "each form works with element-wise operations"

# A used file can be used for other operands only with --reuse-metadata, and keeps the record of the first.
: >wrong
for form in forms/*.npz rows/*.npz; do
    cp "$form" used.npz
    run multiply A.npy B.npy -o C.npy --meta used.npz --exposure-max 1
    expect 0 "multiply" || continue
    cp used.npz first.npz
    run multiply X.npy B.npy -o never.npy --meta used.npz --exposure-max 1
    expect 10 "other operands" && grep -q 'reuse-metadata' err || echo "$form: the option is not named" >>wrong
    rm -f C.npy cert.json
    run multiply X.npy B.npy -o C.npy --meta used.npz --exposure-max 1 --mode exact \
        --reuse-metadata --certificate cert.json
    expect 0 "other operands, --reuse-metadata"
    grep -q '"reused_metadata": *true' cert.json || echo "$form: the certificate does not say it" >>wrong
    run verify cert.json X.npy B.npy C.npy
    expect 0 "verify of its certificate"
    cmp -s first.npz used.npz || echo "$form: other operands are noted" >>wrong
    rm -f cert.json
    run multiply A.npy B.npy -o C.npy --meta used.npz --exposure-max 1
    expect 0 "the first operands again"
done
cat wrong >err
[ ! -s wrong ] && [ ! -e never.npy ]
report $? "each form accepts other operands only with --reuse-metadata"

# One changed number: nothing is sent, and the file is neither repaired nor marked as used.
: >wrong
for member in exposures enshuffles unshuffles rows unrows; do
    for from in arrays bare numpy-bare; do
        python rows/$from.npz "z.$member" bad.npz <<'END'
import sys, numpy as np
z = {k: v.copy() for k, v in np.load(sys.argv[1]).items()}
t = z[sys.argv[2]].reshape(-1)
other = next(i for i in range(len(t)) if t[i] != t[0])
t[0], t[other] = t[other], t[0]
np.savez(sys.argv[3], **z)
END
        cp bad.npz used.npz
        form=$from-$member
        run multiply A.npy B.npy -o never.npy --meta used.npz --exposure-max 1
        expect 3 "multiply" && grep -q 'operation z, row' err || echo "$form: not named" >>wrong
        cmp -s bad.npz used.npz || echo "$form: is rewritten" >>wrong
        run multiply A.npy B.npy --meta used.npz --dry-run
        expect 3 "multiply --dry-run"
    done
done
cat wrong >err
[ ! -s wrong ] && [ ! -e never.npy ]
report $? "a changed array is refused before anything is sent, with and without the seed"

for verb in audit predict plan; do # these accept none, and report it
    run $verb --meta used.npz
    [ $code = 2 ] || break
done
report $? "no other command accepts a metadata file"
echo "1..$n"
