#!/bin/sh
# The line that a node prints: its address is one that others reach, or the advertised one. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

run keygen node.key && key=$(sed 's/^key=//' out) && echo "* key=$key role=coordinator" >allow.txt
report $code "a key is made"

# line WANT ARGUMENTS: checks the line of --print-line
line() {
    want=$1
    shift
    run node --print-line --key node.key "$@"
    [ $code = 0 ] && [ "$(cat out)" = "$want" ]
}
line "10.1.2.3:7001 key=$key" --listen 10.1.2.3:7001 &&
    line "10.9.9.9:7001 key=$key" --listen :7001 --advertise 10.9.9.9 && [ ! -s err ] &&
    line "node.example:99 key=$key domain=x" --listen :7001 --advertise node.example:99 --domain x &&
    line "[2001:db8::5]:7001 key=$key" --listen :7001 --advertise 2001:db8::5 &&
    line "[2001:db8::5]:7002 key=$key" --advertise '[2001:db8::5]:7002'
report $? "--print-line prints the line of a node that is not started, --advertise sets its address"
for bad in :7 x:y 'a b' ''; do
    fails 2 'address to advertise: expected HOST or HOST:PORT' node --print-line --key node.key --listen :7001 --advertise "$bad" || break
done
report $? "an address of another form is refused"
fails 2 'not known before the node listens' node --print-line --key node.key
report $? "without a port there is no line yet"
run node --print-line --key node.key --listen :7001 --json
[ $code = 0 ] && grep -q '"line": *"[^"]*:7001 key=sha256:' out; report $? "--print-line has JSON"

# A node on all addresses prints one of this machine, or the name of a machine that has loopback only.
run node --print-line --key node.key --listen 0.0.0.0:7001
/usr/bin/python3 -c "
import socket, sys
host = open('out').read().split(':7001')[0].strip('[]')
try:
    socket.create_server((host, 0), family=socket.AF_INET6 if ':' in host else socket.AF_INET)
    sys.exit(host.startswith('127.') or host == '0.0.0.0')
except OSError:
    sys.exit(host != socket.gethostname())" 2>>err
report $? "a node that listens on all addresses names an address of this machine"
"$S" node --listen 127.0.0.1:0 --advertise 127.0.0.1 --key node.key --allow allow.txt >nodes.txt 2>err &
pid=$!
trap 'kill $pid 2>/dev/null; rm -rf "$T"' EXIT
await grep -q "^127.0.0.1:[0-9]* key=$key" nodes.txt; report $? "a node prints its advertised address with the port that the system chose"
/usr/bin/python3 -c "import numpy as np; np.save('a.npy', np.ones((4, 4)))"
run multiply a.npy a.npy -o c.npy --nodes nodes.txt --key node.key --check; report $code "a coordinator reaches it there"
kill $pid
wait $pid 2>/dev/null
echo "1..$n"
