# Tests that need links between hosts source this before tap.sh. The test then runs in a network namespace
# of its own, where it may make others; without namespaces it is skipped. It defines
#
#   space   makes a namespace that is linked to this one, and whose process is then $space; its arguments
#           are the name of the interface here, the address here, and the address there, of eth0
#   within  runs a command in the namespace of a process
#   spaces  the processes of all namespaces, which exist as long as these
if [ "${SPACES_INSIDE:-}" != yes ]; then
    unshare -r -n true 2>/dev/null || {
        echo "no network namespaces here"
        exit 77
    }
    SPACES_INSIDE=yes exec unshare -r -n "$0" "$@"
fi
spaces=
within() {
    inside=$1
    shift
    nsenter -t "$inside" -n "$@"
}
is_apart() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
is_linked() { within "$1" ip -o link show eth0 | grep -q 'state UP'; }
until_so() { until "$1" $space; do kill -0 $space 2>/dev/null && sleep 0.1 || return 1; done; }
space() {
    unshare -n sleep 3600 &
    space=$!
    spaces="$spaces $space"
    until_so is_apart && ip link set lo up && ip link add "$1" type veth peer name eth0 netns $space &&
        ip address add "$2/24" dev "$1" && ip link set "$1" up && within $space ip link set lo up &&
        within $space ip address add "$3/24" dev eth0 && within $space ip link set eth0 up && until_so is_linked
}
