#!/bin/sh
# The command from outside: exit codes, which messages go to stdout and stderr, --json on failure, and
# output that is not read. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"

out_has() { grep -q -- "$1" out; }
err_has() { grep -q -- "$1" err; }
silent() { [ ! -s "$1" ]; }
# json EXPRESSION: succeeds if the one object on stdout, as d, satisfies the expression
json() { /usr/bin/python3 -c 'import json, sys
d = json.loads(sys.stdin.read())
assert eval(sys.argv[1]), d' "$1" <out 2>>err; }

run
[ $code = 2 ] && silent out && [ "$(wc -l <err)" -le 12 ] && [ "$(wc -l <err)" -ge 9 ] && err_has 'sherd demo'
report $? "no arguments print a short help on stderr, exit code 2"

run help; [ $code = 0 ] && silent err && out_has '  keygen' && out_has '  doctor' && out_has '  version'
report $? "help lists the verbs on stdout"

# Each page, and those of verbs below a verb.
long=
for page in "" $("$S" help | sed -n 's/^  \([a-z]*\) .*/\1/p') $("$S" help meta | sed -n 's/^  meta \([a-z]*\) .*/meta:\1/p') \
    $("$S" help cluster | sed -n 's/^  cluster \([a-z]*\) .*/cluster:\1/p'); do
    # shellcheck disable=SC2046
    run help $(echo "$page" | tr : ' ')
    [ $code = 0 ] && ! grep -q '.\{81\}' out || long="$long help:$page"
done
echo "$long" >err
[ -z "$long" ] && "$S" help node | tr -s '\\\n ' ' ' | grep -q ' --allow allow.txt --memory 8G >>nodes.txt '
report $? "no line of any help page is longer than 80 columns, and examples are complete"

run --help; [ $code = 0 ] && out_has '  keygen'
report $? "--help prints the same as help"

run --version; [ $code = 0 ] && out_has '^sherd [0-9]'
report $? "--version prints the same as version"

bad=
for verb in $("$S" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    run help "$verb"
    [ $code = 0 ] && [ "$(head -6 out | grep -c '^  [^ ]')" = 3 ] || bad="$bad $verb"
    cp out help
    run "$verb" --help
    cmp -s help out || bad="$bad $verb--help"
done
[ -z "$bad" ]; report $? "help of each verb begins with three examples, and --help prints the same:$bad"

run keygn; [ $code = 2 ] && silent out && err_has "unknown verb 'keygn'" && err_has 'try: did you mean .sherd keygen'
report $? "a misspelt verb is reported with the nearest"

run help zzz; [ $code = 2 ] && err_has "unknown verb 'zzz'"
report $? "help of an unknown verb gives exit code 2"

run --quiet version; [ $code = 2 ] && err_has "expected a verb"
report $? "an option before the verb gives exit code 2"

run version --jsno; [ $code = 2 ] && err_has 'unknown option --jsno' && err_has 'did you mean --json'
report $? "a misspelt option is reported with the nearest"

run version --json --zzz; [ $code = 2 ] && silent err &&
    json 'd["ok"] is False and d["schema"] == "sherd/version/1" and d["error"]["code"] == 2 and d["error"]["name"] == "usage" and "--zzz" in d["error"]["message"] and d["error"]["hint"]'
report $? "with --json a usage error is one object, and stderr is empty"

run keygn --json; [ $code = 2 ] && json 'd["schema"] == "sherd/sherd/1" and d["error"]["name"] == "usage"'
report $? "with --json an unknown verb is also an object"

SHERD_JSON=yes "$S" version x >out 2>err; code=$?
[ $code = 2 ] && json 'd["ok"] is False'
report $? "SHERD_JSON has the effect of --json"

run version --json; [ $code = 0 ] && json 'd["ok"] and d["version"] and "openssl" in d["libraries"]'
report $? "version prints JSON"

run doctor --json; [ $code = 0 ] && json 'd["ok"] and {"blas", "memory", "loopback", "temporary"} <= {c["name"] for c in d["checks"]}'
report $? "doctor prints JSON"

run doctor; [ $code = 0 ] && out_has 'loopback' && out_has 'opencl 0: '
report $? "doctor finds no problem on this machine"

OPENBLAS_CORETYPE='' SHERD_TYPO=1 "$S" doctor -q >out 2>err; code=$?
[ $code = 0 ] && out_has 'SHERD_TYPO sets no option' && ! out_has '^ok'
report $? "doctor -q prints only problems, such as an unknown variable"

TMPDIR="$T/nowhere" "$S" doctor --json >out 2>err; code=$?
[ $code = 4 ] && json 'not d["ok"] and d["error"]["name"] == "file" and [c for c in d["checks"] if c["level"] == "failed"][0]["name"] == "temporary"'
report $? "a failed check determines the exit code, and the object still lists all checks"

run keygen key; [ $code = 0 ] && out_has '^key=sha256:' && [ "$(stat -c %a key)" = 600 ]
report $? "keygen writes a private file and prints the fingerprint"

cp out print; sum=$(cksum <key)
run keygen key; [ $code = 4 ] && silent out && [ "$(cksum <key)" = "$sum" ]
report $? "keygen never overwrites a key"

run keygen --show key; [ $code = 0 ] && cmp -s print out
report $? "keygen --show prints the same fingerprint"

chmod 644 key; run keygen --show key --json
[ $code = 6 ] && json 'd["error"]["name"] == "authentication"'
report $? "a key that others can read gives exit code 6"

"$S" help >/dev/full 2>err; code=$?; : >out
[ $code = 4 ] && err_has 'cannot write to standard output: No space left'
report $? "a full stdout gives exit code 4"

"$S" version --json >/dev/full 2>err; code=$?
[ $code = 4 ] && err_has 'No space left'
report $? "a full stdout gives exit code 4 with --json too"

/usr/bin/python3 - "$S" >err 2>&1 <<'END'
import os, subprocess, sys
for args in ["help", "train"], ["version", "--json"], ["version", "-q"], ["version", "--no-such-option", "--json"]:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([sys.argv[1], *args], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    good = ended.returncode == 2 and b"unknown option" in ended.stderr if "--no-such-option" in args else \
        ended.returncode == 141 and not ended.stderr
    assert good, ended
END
report $? "a reader that closed the pipe gives exit code 141 without a message; other errors are printed"

"$S" help >&- 2>err; code=$?
[ $code = 4 ] && err_has 'cannot write to standard output'
report $? "a closed stdout gives exit code 4"

"$S" keygen key2 >&- 2>/dev/null; code=$?
[ $code = 4 ] && [ "$(head -c 10 key2)" = '-----BEGIN' ]
report $? "no file is opened as a closed standard descriptor"

mkdir -p config/sherd; echo 'json = yes' >config/sherd/config
run version; [ $code = 0 ] && json 'd["ok"]'
report $? "the user's configuration file is read"
run version --no-json; [ $code = 0 ] && out_has '^sherd [0-9]'
report $? "the command line cancels a flag of the file"
printf '\nquite = yes\n' >config/sherd/config
run version; [ $code = 3 ] && err_has "$T/config/sherd/config:2: no verb has an option 'quite'" && err_has 'did you mean quiet'
report $? "a wrong line gives exit code 3 with file, line and the nearest name"
cp config/sherd/config sherd.conf; rm config/sherd/config
mkdir -p .config/sherd && cp sherd.conf .config/sherd/config && cp sherd.conf .sherd
run version; [ $code = 0 ]
report $? "no configuration is read from the working directory"
run version --config none; [ $code = 4 ] && err_has 'none: cannot open'
report $? "a missing file of --config gives exit code 4"

run cluster up -n 2 --timeout 1ms; [ $code = 2 ] && err_has 'sherd cluster up has no --timeout' && ! err_has belongs
report $? "for an option of several other verbs the hint names none of them"
bad=
for v in cluster meta; do
    run $v --json; [ $code = 2 ] && grep -q "after .sherd $v., found '--json'.*options follow the verb" out || bad=$v
done
[ -z "$bad" ]; report $? "an option in the place of a sub-verb is reported as such ($bad)"
rm -f k; run keygen k
for f in "plan 2x2x2 --nodes nosuch --key k" "node --key k --allow nosuch" "audit nosuch"; do
    # shellcheck disable=SC2086
    run $f; [ $code = 4 ] && err_has 'nosuch: cannot open: ' || bad=$f
done
[ -z "$bad" ]; report $? "files that do not exist are reported in one form ($bad)"
echo "* $("$S" keygen --show k) role=coordinator" >allow
"$S" node --key k --allow allow --memory 999T --selftest quick >out 2>err </dev/null &
pid=$!
await grep -q 'warning: --memory is more than the .* of memory' err; code=$?
kill $pid; wait $pid 2>/dev/null
report $code "a node warns if --memory exceeds the memory of the machine"
bad=
for f in "help --json" "help plan --json" "completion bash --json"; do
    # shellcheck disable=SC2086
    run $f; [ $code = 2 ] && grep -q 'has no --json' out || bad=$f
done
SHERD_JSON=1 "$S" help >out 2>err; code=$?
[ -z "$bad" ] && [ $code = 0 ] && grep -q multiply out
report $? "verbs that print text refuse --json, and ignore it in the environment ($bad)"
run keygen one.key; [ $code = 0 ] && err_has 'fingerprint went to standard output' &&
    run keygen two.key --json && [ $code = 0 ] && err_has two.key && ! err_has fingerprint
report $? "keygen states where the fingerprint is"
run multiply A.npy; [ $code = 2 ] && err_has 'expected 2 arguments'
report $? "missing arguments are reported before a missing option"
run multiply - B.npy -o C.npy -n 1; [ $code = 4 ] && err_has 'use /dev/stdin'
report $? "for an operand - the hint names /dev/stdin"

"$S" completion bash >out 2>err; code=$?
if command -v bash >/dev/null; then
    # shellcheck disable=SC2016
    words=$(bash -c '. "$1"; COMP_WORDS=(sherd keygen --s); COMP_CWORD=2; _sherd; echo "${COMPREPLY[*]}"
        COMP_WORDS=(sherd ver); COMP_CWORD=1; _sherd; echo "${COMPREPLY[*]}"' - out 2>err)
    echo "$words" | head -1 | grep -q -- --show && echo "$words" | sed -n 2p | grep -qw version
fi
report $? "completion offers verbs and options"

if command -v bash >/dev/null; then
    : >'A one.npy'
    # shellcheck disable=SC2016
    words=$(bash -c '. "$1"; COMP_WORDS=(sherd multiply --scheme = sha); COMP_CWORD=4; _sherd; echo "${COMPREPLY[*]}"
        COMP_WORDS=(sherd multiply --scheme =); COMP_CWORD=3; _sherd; echo "${COMPREPLY[*]}"
        COMP_WORDS=(sherd multiply A); COMP_CWORD=2; _sherd; echo "${#COMPREPLY[*]}"' - out 2>err)
    rm 'A one.npy'
    echo "$words" | sed -n 1p | grep -qx 'share share1' && echo "$words" | sed -n 2p | grep -qw blind &&
        [ "$(echo "$words" | sed -n 3p)" = 1 ]
fi
report $? "completion offers values behind =, and names of files that contain spaces"

"$S" help --man >out 2>err; code=$?
cmp out "$R/docs/sherd.1" >>err 2>&1; same=$?; : >out
report $same "docs/sherd.1 is up to date (sherd help --man >docs/sherd.1)"

if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning "$R/docs/sherd.1" >out 2>&1; report $? "the man page is well formed"
else
    skip "the man page is well formed" "no mandoc"
fi

echo "1..$n"
