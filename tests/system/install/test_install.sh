#!/bin/bash
# `make install` is sufficient for other programs: examples/product.c is built against an installed copy
# through pkg-config, shared and static, and run on seven nodes; examples/node.c has a node and its
# coordinator in one process.
set -u
cd "$(dirname "$0")/../../.." || exit 2
if [ -n "${SAN:-}" ]; then
    echo "# the installed copy is always the plain build"
    exit 77
fi
unset MAKEFLAGS MAKEOVERRIDES MFLAGS MAKELEVEL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
case_of() { # name, command...
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1; then echo "ok - $name"; else
        echo "not ok - $name"; sed 's/^/# /' "$work/log"; failed=1
    fi
}
b=${BUILD:-build/plain}
# An absolute prefix, staged elsewhere: nothing may be written to the prefix itself.
staged() {
    make B="$b" PREFIX="$work/final" DESTDIR="$work/stage" install || return 1
    [ ! -e "$work/final" ] || { echo "wrote past DESTDIR"; return 1; }
    mv "$work/stage$work/final" "$work/final"
}
# Without an update of the cache, README's program ends with "libsherd.so.0: cannot open shared object file".
cache_is_updated() {
    mkdir "$work/sbin"
    printf '#!/bin/sh\necho told >>"%s/told"\n' "$work" >"$work/sbin/ldconfig"
    chmod +x "$work/sbin/ldconfig"
    PATH=$work/sbin:$PATH make B="$b" PREFIX="$work/mine" DESTDIR="$work/staged" install || return 1
    [ ! -e "$work/told" ] || { echo "ldconfig ran for a staged copy"; return 1; }
    PATH=$work/sbin:$PATH make B="$b" PREFIX="$work/mine" install && [ "$(wc -l <"$work/told")" -eq 1 ] || return 1
    PATH=$work/sbin:$PATH make B="$b" PREFIX="$work/mine" uninstall && [ "$(wc -l <"$work/told")" -eq 2 ]
}
everything_is_there() {
    local f ok=0
    for f in bin/sherd include/sherd/sherd.h lib/libsherd.a lib/libsherd.so lib/pkgconfig/sherd.pc share/man/man1/sherd.1 \
        share/doc/sherd/README.md share/doc/sherd/examples/train/mnist.conf; do
        [ -s "$work/final/$f" ] || { echo "missing: $f"; ok=1; }
    done
    for f in $(grep -rhoE 'docs/[A-Z]+\.md' cli lib learn scheduler store node --include=*.c | sort -u); do
        cmp "$f" "$work/final/share/doc/sherd/$f" || ok=1
    done
    for f in include/sherd/*.h; do
        cmp "$f" "$work/final/$f" || ok=1
    done
    [ "$(find "$work/final/include" -type f | wc -l)" -eq "$(ls include/sherd/*.h | wc -l)" ] || ok=1
    return $ok
}
export PKG_CONFIG_PATH=$work/final/lib/pkgconfig
version() {
    [ "$(pkg-config --modversion sherd)" = "$(sed -n 's/^.define SHERD_VERSION "\(.*\)"/\1/p' include/sherd/version.h)" ]
}
# A prefix with a space, as the output of pkg-config is read by a shell's eval or a build tool.
spaced() {
    local flags
    make B="$b" PREFIX="$work/my own" install || return 1
    flags=$(PKG_CONFIG_PATH="$work/my own/lib/pkgconfig" pkg-config --cflags --libs sherd) || return 1
    eval "cc -std=c11 examples/product.c $flags -o '$work/spaced'" || return 1
    make B="$b" PREFIX="$work/my own" uninstall && [ -z "$(find "$work/my own" ! -type d)" ]
}
shared() {
    # shellcheck disable=SC2046
    cc -std=c11 -Wall -Wextra -Werror examples/product.c $(pkg-config --cflags --libs sherd) -o "$work/shared" &&
        readelf -d "$work/shared" | grep -q 'NEEDED.*libsherd\.so\.[0-9]' &&
        ! readelf -d "$work/shared" | grep -qE 'NEEDED.*(libuv|libssl|openblas|libsodium)'
}
static() {
    # shellcheck disable=SC2046
    cc -std=c11 examples/product.c $(pkg-config --cflags sherd) "$work/final/lib/libsherd.a" \
        $(pkg-config --static --libs sherd | sed 's/-lsherd//') -o "$work/static" &&
        ! readelf -d "$work/static" | grep -q 'NEEDED.*libsherd'
}
# A training on arrays, a model that is saved, loaded and used.
trains() {
    # shellcheck disable=SC2046
    cc -std=c11 -Wall -Wextra -Werror examples/training.c $(pkg-config --cflags --libs sherd) -lm -o "$work/training" || return 1
    LD_LIBRARY_PATH=$work/final/lib "$work/training" "$work/final/bin/sherd" "$work/model.npz" >"$work/out" || { cat "$work/out"; return 1; }
    cat "$work/out"
    [ "$(grep -c '^epoch' "$work/out")" = 4 ] && grep -qE 'epoch 40: .*other points (0\.9|1\.0)' "$work/out" &&
        grep -q '^240 steps in .*no data and no weights$' "$work/out" && [ "$(grep -c 'is inside$' "$work/out")" = 2 ] &&
        [ "$(grep -c 'is outside$' "$work/out")" = 2 ] && [ -s "$work/model.npz" ]
}
# A product with a certificate, which is verified, and a result that was changed.
certifies() {
    # shellcheck disable=SC2046
    cc -std=c11 -Wall -Wextra -Werror examples/certificate.c $(pkg-config --cflags --libs sherd) -o "$work/certificate" || return 1
    LD_LIBRARY_PATH=$work/final/lib "$work/certificate" "$work/final/bin/sherd" "$work/C.json" >"$work/out" || { cat "$work/out"; return 1; }
    cat "$work/out"
    grep -q '^product by 5 nodes (share), signed by sha256:.*: 1500 entries, equal bit for bit$' "$work/out" &&
        grep -q '^changed: the result is not the result that the certificate names' "$work/out" && [ -s "$work/C.json" ]
}
# The same from Python, by the installed headers.
from_python() {
    PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 examples/product.py "$work/final/bin/sherd" "$work/P.json" >"$work/out" ||
        { cat "$work/out"; return 1; }
    cat "$work/out"
    grep -q '^product by 5 nodes (share): 1500 entries, equal bit for bit; .*: [1-9].[0-9]e-0[56]$' "$work/out" &&
        grep -q '^changed: the result is not the result that the certificate names' "$work/out" && [ -s "$work/P.json" ]
}
node_inside() {
    # shellcheck disable=SC2046
    cc -std=c11 -Wall -Wextra -Werror examples/node.c $(pkg-config --cflags --libs sherd) -o "$work/node" &&
        LD_LIBRARY_PATH=$work/final/lib "$work/node" 2>"$work/said" | tee "$work/out" &&
        grep -q '^127.0.0.1:[0-9]* key=sha256:[^ ]* name=example$' "$work/out" &&
        grep -q '^the node computed [1-9]' "$work/out" && grep -q 'equal: yes' "$work/out" &&
        grep -q 'coordinator .* connected' "$work/said"
}
# sherd.h declares all functions of all headers, also in C++, under the names that the library exports.
from_cpp() {
    cat >"$work/product.cpp" <<'EOF'
#include <sherd/sherd.h>
#include <csignal>
#include <cstdio>
static_assert(sizeof(sherd_forecast_options) && sizeof(sherd_masks_options) && sizeof(sherd_multiplier) &&
                  sizeof(sherd_train_options) && sizeof(sherd_predict_options) && sizeof(sherd_certified),
              "");
int main(int argc, char **argv)
{
    std::signal(SIGPIPE, SIG_IGN);
    double a[] = { 1, 2, 3, 4 }, b[] = { 5, 6, 7, 8 }, c[4];
    sherd_diag d = {};
    sherd_cluster_options where = {};
    where.size = sizeof where;
    where.local_nodes = 3;
    if (argc > 1) where.program = argv[1];
    sherd_product_options how = {};
    how.size = sizeof how;
    how.scheme = SHERD_SHARE;
    how.exact = true;
    sherd_cluster *nodes = nullptr;
    int err = sherd_cluster_open(&nodes, &where, &d);
    if (!err)
        err = sherd_multiply(nodes, sherd_view_c(a, SHERD_F64, 2, 2), sherd_view_c(b, SHERD_F64, 2, 2),
                             c, 2, &how, nullptr, &d);
    sherd_cluster_close(nodes);
    if (err) std::printf("%s\n", d.message);
    else std::printf("%g %g %g %g, %s\n", c[0], c[1], c[2], c[3], sherd_version());
    return err ? sherd_err_exit(err) : 0;
}
EOF
    # shellcheck disable=SC2046
    c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror "$work/product.cpp" $(pkg-config --cflags --libs sherd) -o "$work/cpp" &&
        LD_LIBRARY_PATH=$work/final/lib "$work/cpp" "$work/final/bin/sherd" | tee "$work/out" &&
        grep -q '^19 22 43 50, ' "$work/out"
}
# Without a program the command is found by the path of the library, not by PATH or the current folder.
finds_command() {
    (cd / && PATH=/usr/bin:/bin LD_LIBRARY_PATH=$work/final/lib "$work/cpp") | tee "$work/out" &&
        grep -q '^19 22 43 50, ' "$work/out"
}
run_shared() { LD_LIBRARY_PATH=$work/final/lib "$work/shared" "$work/final/bin/sherd" | tee "$work/out" && grep -q 'equal: yes' "$work/out"; }
run_static() { "$work/static" "$work/final/bin/sherd" | tee "$work/out" && grep -q 'equal: yes' "$work/out"; }
# A preloaded library changes one entry of the result.
run_wrong() {
    if LD_PRELOAD=$(realpath "$b")/tests/system/install/preload_wrong.so LD_LIBRARY_PATH=$work/final/lib \
        "$work/shared" "$work/final/bin/sherd" >"$work/out" 2>&1; then
        cat "$work/out"; return 1
    fi
    cat "$work/out"
    grep -q 'entry (1, 1)' "$work/out" && ! grep -q 'equal: yes' "$work/out"
}
clean() {
    make B="$b" PREFIX="$work/final" uninstall || return 1
    [ -z "$(find "$work/final" ! -type d)" ] || { find "$work/final" ! -type d; return 1; }
}
case_of "make install stages a copy under DESTDIR" staged
case_of "installing and removing the library updates the linker's cache" cache_is_updated
case_of "headers, libraries, command, man page and pkg-config file are installed" everything_is_there
case_of "pkg-config reports the version" version
case_of "a prefix may contain a space" spaced
case_of "a program builds with the flags of the shared library only" shared
case_of "the same program builds with the static library" static
case_of "with the shared library it multiplies on seven nodes" run_shared
case_of "with the static library it multiplies on seven nodes" run_static
case_of "the program reports a wrong product and fails" run_wrong
case_of "a program trains a network over nodes, saves it and uses it" trains
case_of "a program certifies a product and verifies the certificate" certifies
case_of "a program in Python certifies a product of numpy's arrays and verifies it" from_python
case_of "a node and its coordinator run in one program" node_inside
if command -v c++ >/dev/null; then case_of "a program in C++ builds without a warning and multiplies" from_cpp
else echo "ok - a program in C++ builds without a warning and multiplies # SKIP there is no c++"; fi
if [ -x "$work/cpp" ]; then case_of "local nodes run the command that was installed with the library" finds_command
else echo "ok - local nodes run the command that was installed with the library # SKIP there is no c++"; fi
case_of "make uninstall leaves no file" clean
exit $failed
