#!/bin/bash
# sherd cluster up, status, down: nodes outlive the command, and nothing is left after down.
. "$(dirname "$0")/../../support/tap.sh"
export XDG_RUNTIME_DIR="$T"
state=$T/sherd
trap '"$S" cluster down -q >/dev/null 2>&1; rm -rf "$T"' EXIT
is() { # description, condition...
    what=$1; shift
    "$@"; report $? "$what"
}
status_of() { "$@" >out 2>err; echo $?; }

is "without a cluster status exits 7" [ "$(status_of "$S" cluster status)" = 7 ]
is "without a cluster down exits 7" [ "$(status_of "$S" cluster down)" = 7 ]
is "up starts the nodes" [ "$(status_of "$S" cluster up -n 3)" = 0 ]
is "up prints a line for each node" [ "$(wc -l <out)" = 3 ]
pids=$(sed -n 's/.* pid \([0-9]*\) .*/\1/p' out)
is "only the owner has access to the folder" [ "$(stat -c %a "$state")" = 700 ]
is "only the owner has access to the key" [ "$(stat -c %a "$state/key")" = 600 ]
is "the node file names three nodes" [ "$(grep -c key=sha256: "$state/nodes")" = 3 ]
is "status exits 0" [ "$(status_of "$S" cluster status)" = 0 ]
is "status shows all nodes up" [ "$(grep -c ' up ' out)" = 3 ]
is "status prints JSON" [ "$("$S" cluster status --json | grep -c '"up":true')" = 1 ]
/usr/bin/python3 -c 'import numpy as np; np.save("a.npy", np.ones((3, 3)))'
is "a product runs on the nodes" [ "$(status_of "$S" multiply a.npy a.npy -o c.npy --certificate c.json)" = 0 ]
is "a product reports that the nodes are on one host" grep -q 'domains: simulated on one host' out err
is "its certificate reports that the nodes are on one host" grep -q '"domains_simulated": true' c.json
is "its JSON contains no process ids of the nodes" [ "$("$S" multiply a.npy a.npy -o c.npy --json | grep -c '"pid": *null')" = 1 ]
is "its JSON reports that the nodes are on one host" [ "$("$S" multiply a.npy a.npy -o c.npy --json | grep -c '"domains": *"simulated on one host"')" = 1 ]
is "a second up is refused" [ "$(status_of "$S" cluster up -n 2)" = 2 ]
is "the refusal gives a hint" grep -q 'sherd cluster down' err
is "only the owner has access to the files of the folder" [ -z "$(find "$state" -type f ! -perm 600)" ]
is "a product with -v runs on the nodes" [ "$(status_of "$S" multiply a.npy a.npy -o c.npy -v)" = 0 ]
is "-v shows a dash for process ids of nodes of the cluster" [ "$(grep -cE '^(node|simulated)?[^ ]+ +- ' err)" = 3 ]
# shellcheck disable=SC2086
kill -KILL "${pids##*$'\n'}"
gone "${pids##*$'\n'}"
is "if a node has died status exits 7" [ "$(status_of "$S" cluster status)" = 7 ]
is "status names the dead node" grep -q gone out
is "the JSON of status has no process id for the dead node" [ "$("$S" cluster status --json | grep -c '"pid":null,.*"up":false')" = 1 ]
is "down exits 0" [ "$(status_of "$S" cluster down)" = 0 ]
# shellcheck disable=SC2086
is "down ends every node" gone $pids
is "down leaves no folder" [ ! -e "$state" ]

# An up that is killed before it is done leaves no node: nodes become independent in its last step.
staying() { # nodes of this test only
    for p in $(pgrep -f "node .*--stay"); do grep -qzx "XDG_RUNTIME_DIR=$T" "/proc/$p/environ" 2>/dev/null && echo "$p"; done
}
for _ in 1 2 3 4 5; do
    "$S" cluster up -n 12 >out 2>err &
    up=$!
    while [ ! -e "$state/node-3.log" ] && kill -0 $up; do sleep 0.01; done # it has started some of them
    kill -KILL $up
    wait $up 2>/dev/null
    grep -q "nodes are up" out err || break
    "$S" cluster down >/dev/null 2>&1 # it was done before it was killed: once more
done
sleep 0.1
# shellcheck disable=SC2046
is "a killed up leaves no node" gone $(staying)
is "the next up works" [ "$(status_of "$S" cluster up -n 1)" = 0 ]
is "down works after it" [ "$(status_of "$S" cluster down)" = 0 ]

# A process that has reused the pid of a node is not touched.
mkdir -m 700 "$state"
sleep 60 &
stranger=$!
printf '[{"pid": %d, "started": 1, "name": "node-1", "address": "127.0.0.1:1"}]' $stranger >"$state/state"
is "another process with a node's pid does not count as up" [ "$(status_of "$S" cluster status)" = 7 ]
is "down with such a process exits 0" [ "$(status_of "$S" cluster down)" = 0 ]
is "down does not end such a process" kill -0 $stranger
kill $stranger
mkdir -m 755 "$state"
is "a folder that others can read is refused" [ "$(status_of "$S" cluster up -n 1)" = 4 ]
rmdir "$state"
mkdir -m 700 "$state"
echo '{"pid": 1' >"$state/state"
is "a damaged state file is reported" [ "$(status_of "$S" cluster status)" = 3 ]
echo "1..$n"
