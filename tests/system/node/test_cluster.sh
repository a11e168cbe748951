#!/bin/bash
# sherd cluster up, status, down: nodes that outlive a command, and nothing left of them after.
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
is "up prints a line for each" [ "$(wc -l <out)" = 3 ]
pids=$(sed -n 's/.* pid \([0-9]*\) .*/\1/p' out)
is "the folder is ours alone" [ "$(stat -c %a "$state")" = 700 ]
is "the key is ours alone" [ "$(stat -c %a "$state/key")" = 600 ]
is "the node file names three nodes" [ "$(grep -c key=sha256: "$state/nodes")" = 3 ]
is "status exits 0" [ "$(status_of "$S" cluster status)" = 0 ]
is "status shows all of them up" [ "$(grep -c ' up ' out)" = 3 ]
is "status speaks JSON" [ "$("$S" cluster status --json | grep -c '"up":true')" = 1 ]
/usr/bin/python3 -c 'import numpy as np; np.save("a.npy", np.ones((3, 3)))'
is "a product runs on them" [ "$(status_of "$S" multiply a.npy a.npy -o c.npy --certificate c.json)" = 0 ]
is "and says that they are one host" grep -q 'domains: simulated on one host' out err
is "as its certificate does" grep -q '"domains_simulated": true' c.json
is "whose processes no other command knows" [ "$("$S" multiply a.npy a.npy -o c.npy --json | grep -c '"pid": *null')" = 1 ]
is "and its JSON" [ "$("$S" multiply a.npy a.npy -o c.npy --json | grep -c '"domains": *"simulated on one host"')" = 1 ]
is "a second up is refused" [ "$(status_of "$S" cluster up -n 2)" = 2 ]
is "and says what to do" grep -q 'sherd cluster down' err
is "every file of the folder is ours alone" [ -z "$(find "$state" -type f ! -perm 600)" ]
is "-v shows no process id of nodes that others started" [ "$(status_of "$S" multiply a.npy a.npy -o c.npy -v)" = 0 ]
is "but a dash" [ "$(grep -cE '^(node|simulated)?[^ ]+ +- ' err)" = 3 ]
# shellcheck disable=SC2086
kill -KILL "${pids##*$'\n'}"
gone "${pids##*$'\n'}"
is "with a node gone status exits 7" [ "$(status_of "$S" cluster status)" = 7 ]
is "and names it" grep -q gone out
is "without the number that was its own" [ "$("$S" cluster status --json | grep -c '"pid":null,.*"up":false')" = 1 ]
is "down exits 0" [ "$(status_of "$S" cluster down)" = 0 ]
# shellcheck disable=SC2086
is "down ends every node" gone $pids
is "down leaves no folder" [ ! -e "$state" ]

# An up that is killed before it is done leaves no node: they are released last.
staying() { pgrep -f "node .*--stay" | sort; }
staying >before
"$S" cluster up -n 12 >out 2>err &
up=$!
while [ ! -e "$state/node-3.log" ] && kill -0 $up; do sleep 0.01; done # it has begun to start them
kill -KILL $up
wait $up 2>/dev/null
sleep 0.1
# shellcheck disable=SC2046
is "a killed up leaves no node of its own" gone $(staying | comm -13 before -)
is "and the next one works" [ "$(status_of "$S" cluster up -n 1)" = 0 ]
is "and goes down" [ "$(status_of "$S" cluster down)" = 0 ]

# A pid that the system has given away since is not touched.
mkdir -m 700 "$state"
sleep 60 &
stranger=$!
printf '[{"pid": %d, "started": 1, "name": "node-1", "address": "127.0.0.1:1"}]' $stranger >"$state/state"
is "a stranger's process does not count as up" [ "$(status_of "$S" cluster status)" = 7 ]
is "and down leaves it alone" [ "$(status_of "$S" cluster down)" = 0 ]
is "alive" kill -0 $stranger
kill $stranger
mkdir -m 755 "$state"
is "a folder that others can read is not trusted" [ "$(status_of "$S" cluster up -n 1)" = 4 ]
rmdir "$state"
mkdir -m 700 "$state"
echo '{"pid": 1' >"$state/state"
is "a damaged state file is told" [ "$(status_of "$S" cluster status)" = 3 ]
echo "1..$n"
