#!/bin/sh
# The commands for nodes on other machines, as README.md and docs/TRAINING.md print them: each node is
# in a network namespace of its own, with its own folder. Writes TAP.
. "$(dirname "$0")/../../support/spaces.sh"
. "$(dirname "$0")/../../support/tap.sh"
ln -s "$S" sherd
export PATH="$T:$PATH"
nodes=
# Ends the nodes, which are children of the shells that run their commands.
# shellcheck disable=SC2046,SC2086
stop() {
    ended=$(for p in $nodes; do cat "/proc/$p/task/$p/children"; done 2>/dev/null)
    kill ${ended:-$nodes} 2>/dev/null
    gone $ended $nodes
    nodes=
}
trap 'stop; kill $spaces 2>/dev/null; rm -rf "$T"' EXIT
trap 'exit 1' HUP INT TERM

# Namespace i has the address 10.78.i.2. It reaches the others through this one.
host() {
    space veth$1 10.78.$1.1 10.78.$1.2 && eval "space$1=$space" &&
        within $space ip route add default via 10.78.$1.1 && mkdir host$1
}
# Becomes a shell that runs commands at node i, as its operator would type them.
at() { eval "cd host$1 && exec nsenter -t \$space$1 -n sh -ec \"\$2\""; }
if ! (echo 1 >/proc/sys/net/ipv4/ip_forward) 2>>err || ! host 1 2>>err || ! host 2 2>>err || ! host 3 2>>err; then
    sed 's/^/# /' err
    echo "no links between network namespaces"
    exit 77
fi

# Prints the n-th block of a language of a document.
block() { awk -v head="\140\140\140$2" -v n="$3" '$0 == head { inside = ++seen == n; next } /^\140\140\140/ { inside = 0 } inside' "$R/$1"; }
for side in sh node coordinator; do block README.md $side 1 >$side.block; done
grep -x 'sherd keygen me.key .*' "$R/README.md" >first
[ "$(cat first node.block coordinator.block | wc -l)" -eq 6 ]
report $? "README has three commands for the coordinator and three for a node"
sh -e first >out 2>err && me=$(grep -o 'sha256:[^ ]*' out)
report $? "the coordinator's first command prints its fingerprint"

: >nodes.txt
for i in 1 2 3; do
    block README.md node 1 | sed "s|key=sha256:\.\.\.|key=$me|; s|site-1|site-$i|" >node$i.sh
    at $i "$(cat node$i.sh)" >line$i 2>log$i </dev/null &
    nodes="$nodes $!"
done
three() { cat line1 line2 line3 2>/dev/null | grep domain= >nodes.txt; [ "$(wc -l <nodes.txt)" = 3 ]; }
await three && [ "$(grep -c '^10.78.[123].2:7001 key=sha256:.* domain=site-[123]$' nodes.txt)" = 3 ] && ! grep -q warning log1
report $? "the nodes print lines with addresses that others reach"
/usr/bin/python3 -c "
import numpy as np
r = np.random.default_rng(1)
np.save('A.npy', r.standard_normal((300, 200))); np.save('B.npy', r.standard_normal((200, 100)))
for i in (1, 2, 3): np.savez('host%d/mine.npz' % i, x=r.standard_normal((120, 4)), y=r.integers(0, 3, 120))"
sed -n 1p coordinator.block >second
sh -e second >out 2>err
code=$?
[ $code = 0 ] && [ "$(grep -c ' idle$' out)" = 3 ]
report $? "the coordinator's second command lists the three nodes"
sed -n 2p coordinator.block >third
sh -e third >out 2>err
code=$?
[ $code = 0 ] && grep -q 'equal: yes, bit for bit' err && grep -q 'by 3 nodes, share' err
report $? "the coordinator's third command multiplies privately"
stop
rm line1 line2 line3

# docs/TRAINING.md: each node's line is known before any of them starts.
: >all.txt
for i in 1 2 3; do
    (at $i "$(block docs/TRAINING.md node 1 | sed "s|site-1|site-$i|")") >>all.txt 2>>err
done
[ "$(grep -c '^10.78.[123].2:7001 key=' all.txt)" = 3 ]
report $? "--print-line prints the lines of nodes that do not run yet"
for i in 1 2 3; do
    cp all.txt host$i/
    at $i "$(block docs/TRAINING.md node 2 | sed "s|site-1|site-$i|; s|mine.npz|mine.npz --epsilon none --ledger l|")" >line$i 2>log$i </dev/null &
    nodes="$nodes $!"
done
await three && [ "$(sort nodes.txt)" = "$(sort all.txt)" ]
report $? "they print the same lines when they start"
cat >my.conf <<END
data = file
input = 4
layer = dense 3
loss = cross-entropy
rate = 0.1
batch = all
epochs = 2
END
run train my.conf --by gradients --aggregate secure --nodes all.txt --key me.key --examples 120 -o model.npz
[ $code = 0 ] && [ -s model.npz ]
report $? "they accept each other as members of secure sums"
echo "1..$n"
