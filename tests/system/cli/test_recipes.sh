#!/bin/sh
# Each recipe by name, trained in each way over nodes, on generated digits: gradients of nodes give the bits
# of one thread, private products the bits of the same arithmetic computed locally. The logs conform to
# docs/train-log.schema.json. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
head -c 32 /dev/zero | tr '\0' s >seed

for name in mnist mnist-proper spiral lenet deep; do
    of="--examples 50 --batch 20"
    case $name in lenet|deep) of="--examples 20 --batch 10" ;; esac
    # shellcheck disable=SC2086
    set -- train $name $of --epochs 2 --seed seed -q
    run "$@" --by gradients --in-process -n 1 -o one.npz --log one.jsonl
    [ $code = 0 ] && run "$@" --by gradients -n 2 -o nodes.npz --log nodes.jsonl
    [ $code = 0 ] && cmp one.npz nodes.npz >>err 2>&1 && is_log one.jsonl nodes.jsonl
    report $? "$name by gradients of 2 nodes gives the bits of one thread"
    run "$@" --by products -n 3 --scheme share --check --json --log products.jsonl -o products.npz
    [ $code = 0 ] && grep -q '"check":{"equal":true,"epochs":2}' out && is_log products.jsonl
    report $? "$name by private products of 3 nodes gives all parameters of the same training computed locally"
    rm -f ./*.jsonl ./*.npz
done
set -- train parabola --epochs 2 --seed seed -q
run "$@" --by gradients --in-process -n 1 -o one.npz
[ $code = 0 ] && run "$@" --by gradients -n 2 -o nodes.npz --log nodes.jsonl
[ $code = 0 ] && cmp one.npz nodes.npz >>err 2>&1 && is_log nodes.jsonl
report $? "parabola by gradients of 2 nodes has no accuracies in its log"
echo "1..$n"
