#!/bin/sh
# `fetch` against servers of this machine: what is right, wrong, short, too long, missing, silent,
# slow; mirrors in turn; no curl; no space to write. Speaks TAP.
SMALL=$(realpath "${BUILD:-build/plain}/tests/system/cli/prog_fetch_small")
. "$(dirname "$0")/../../support/tap.sh"
server=
end() { [ -n "$server" ] && kill "$server" 2>/dev/null; rm -rf "$T"; }
trap end EXIT
unset SHERD_MIRROR SHERD_STALL SHERD_TIMEOUT http_proxy https_proxy ALL_PROXY all_proxy HTTPS_PROXY
export no_proxy='*' FETCH_TABLE="$T/table"

run() { "$SMALL" fetch mnist "$@" >out 2>err </dev/null; code=$?; }
# Nothing but whole files, right ones, under DIR; at least COUNT
sound() { # dir, count
    [ "$(ls -A "$1" | wc -l)" = "$2" ] && for f in "$1"/*; do
        [ "$2" = 0 ] || cmp -s "$f" "good/${f##*/}" || return 1; done
}
# fails CODE WORDS COUNT ARGS...: exit code, words on stderr, COUNT right files and nothing else
fails() {
    want=$1 words=$2 count=$3; shift 3
    rm -rf to; run -o to "$@"
    [ $code = "$want" ] && grep -q -- "$words" err && sound to "$count"
}

cat >server.py <<'END'
import hashlib, http.server, os, random, sys, time
r = random.Random(1)
names = ['train-images.gz', 'train-labels.gz', 't10k-images.gz', 't10k-labels.gz']
sizes = [300000, 1000, 70000, 1]
os.mkdir('good')
files = {}
with open('table', 'w') as t:
    for name, size in zip(names, sizes):
        files[name] = r.randbytes(size)
        open('good/' + name, 'wb').write(files[name])
        t.write('%s %d %s\n' % (name, size, hashlib.sha256(files[name]).hexdigest()))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, name = self.path.strip('/').split('/')
        open('asked', 'a').write(self.path + '\n')
        b = files[name]
        if kind == 'missing' or kind == 'last' and name != names[3]:
            return self.send_error(404)
        if kind == 'moved':
            self.send_response(302)
            self.send_header('Location', '/good/' + name)
            return self.end_headers()
        if kind == 'file':
            self.send_response(302)
            self.send_header('Location', 'file://' + os.getcwd() + '/good/' + name)
            return self.end_headers()
        if kind == 'round':
            self.send_response(302)
            self.send_header('Location', self.path)
            return self.end_headers()
        claimed = len(b)
        if kind == 'wrong': b = b[:-1] + bytes([b[-1] ^ 1])
        if kind == 'long': b += b'x'; claimed += 1
        if kind == 'endless': b = b * 100; claimed = None
        if kind == 'short': b = b[:len(b) // 2]; claimed = len(b)
        self.send_response(200)
        if claimed is not None: self.send_header('Content-Length', str(claimed))
        self.end_headers()
        if kind in ('cut', 'stall', 'drip'):
            self.wfile.write(b[:len(b) // 2]); self.wfile.flush()
        if kind == 'cut': return
        if kind == 'stall': time.sleep(60); return
        if kind == 'drip':
            for i in range(600): self.wfile.write(b[:1]); self.wfile.flush(); time.sleep(.1)
            return
        if kind == 'silent': time.sleep(60); return
        self.wfile.write(b)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
s.daemon_threads = True
open('port.new', 'w').write(str(s.server_address[1])); os.rename('port.new', 'port')
s.serve_forever()
END
/usr/bin/python3 server.py >server.out 2>&1 &
server=$!
i=0; while [ ! -s port ] && [ $i -lt 200 ]; do sleep 0.05; i=$((i + 1)); done
U=http://127.0.0.1:$(cat port)

run -o to --mirror "$U/good/" --json
[ $code = 0 ] && sound to 4 && /usr/bin/python3 -c "
import json, sys
d = json.load(open('out'))
assert d['schema'] == 'sherd/fetch/1' and d['ok'] and d['bytes_in'] == 371001 and len(d['files']) == 4, d
assert all(f['url'].startswith('$U/good/t') for f in d['files']), d" 2>>err
report $? "a good mirror gives all files, and JSON says from where"
: >asked; run -o to --mirror "$U/missing"
[ $code = 0 ] && sound to 4 && [ ! -s asked ] && grep -q 'are the published ones' err
report $? "files that are there are not asked for again"
rm to/t10k-images.gz; : >asked; run -o to --mirror "$U/good"
[ $code = 0 ] && sound to 4 && [ "$(cat asked)" = /good/t10k-images.gz ]; report $? "one that lacks is fetched alone"
(cd to && rm -f ./* && "$SMALL" fetch mnist --mirror "$U/moved" -q >../out 2>../err; [ $? = 0 ] && [ ! -s ../err ]) && sound to/mnist 4
report $? "without -o the folder has the set's name; a redirection is followed; --quiet is quiet"
rm -rf to; mkdir to; echo mine >to/t10k-labels.gz; run -o to --mirror "$U/good"
[ $code = 3 ] && grep -q 't10k-labels.gz: is there already, and is not' err && [ "$(cat to/t10k-labels.gz)" = mine ] && [ "$(ls -A to | wc -l)" = 1 ]
report $? "a file that is there and another is left, and nothing is fetched beside it"

fails 3 'train-images.gz: is not the published file' 0 --mirror "$U/wrong"; report $? "one flipped bit is refused: exit 3"
fails 3 'longer than the 300000 bytes' 0 --mirror "$U/long"; report $? "a longer file is refused by what is announced"
fails 3 'longer than the 300000 bytes' 0 --mirror "$U/endless"; report $? "and by what comes, where nothing is announced"
fails 5 'truncated: 150000 of 300000' 0 --mirror "$U/short"; report $? "half a file is truncated: exit 5"
fails 5 'train-images.gz: .*[0-9]* bytes' 0 --mirror "$U/cut"; report $? "a connection that is cut is told"
fails 5 'returned error: 404' 0 --mirror "$U/missing"; report $? "404 is told: exit 5"
fails 5 'redirect' 0 --mirror "$U/round"; report $? "a server that redirects for ever is left"
fails 5 'rotocol' 0 --mirror "$U/file"; report $? "no redirection leads to this machine's files"
fails 5 '127.0.0.1' 0 --mirror http://127.0.0.1:1; report $? "nobody there is told: exit 5"
began=$(date +%s)
fails 5 'less than 500 bytes came in 0.5 s' 0 --mirror "$U/stall" --stall 500ms; report $? "a server that stalls is left"
fails 5 'less than 500 bytes came in 0.5 s' 0 --mirror "$U/silent" --stall 500ms; report $? "and one that says nothing"
fails 5 'less than 700 bytes came in 0.7 s' 0 --mirror "$U/drip" --stall 700ms; report $? "and one that sends a byte now and then"
fails 124 'the time is over' 0 --mirror "$U/stall" --timeout 500ms; report $? "--timeout ends it: exit 124"
[ $(($(date +%s) - began)) -lt 30 ]; report $? "none of them took long"

: >asked; rm -rf to; run -o to --mirror "$U/missing,$U/wrong,$U/short,$U/good"
[ $code = 0 ] && sound to 4 && [ "$(grep -c 'trying the next' err)" = 3 ] && [ "$(wc -l <asked)" = 7 ]
report $? "mirrors are tried in turn, and the one that served is asked first from then on"
fails 5 'no mirror has it; the last: .*wrong' 0 --mirror "$U/missing,$U/wrong"; report $? "where one is missing and one wrong, it is exit 5"
fails 3 'no mirror has it' 0 --mirror "$U/long,$U/wrong"; report $? "where all are wrong, exit 3"
rm -rf to; run -o to --mirror "$U/last,$U/missing"; [ $code = 5 ] && sound to 0; report $? "no mirror for the first file: nothing"

fails 5 '[Pp]rotocol.*http\|http.*[Pp]rotocol\|disabled' 0 --mirror "https://127.0.0.1:$(cat port)/good" || grep -qi 'ssl\|tls' err
report $? "https to a server without it fails"
for u in file:///etc/ ftp://x/ "" good "http://a b/" "$U/good,,"; do
    rm -rf to; run -o to --mirror "$u"; [ $code = 2 ] && [ ! -e to ] || { report 1 "--mirror '$u'"; }
done
report 0 "addresses that are none are exit 2"
"$S" fetch mnits >out 2>err; code=$?; [ $code = 2 ] && grep -q 'did you mean mnist' err; report $? "a slip of the name is told"
: >plain; rm -rf to; run -o plain --mirror "$U/good"; [ $code = 4 ] && grep -q 'plain: cannot make this folder' err; report $? "a file in the folder's place: exit 4"
run -o no/such --mirror "$U/good"; [ $code = 4 ]; report $? "a folder in none: exit 4"
if [ "$(id -u)" != 0 ]; then
    mkdir closed; chmod 500 closed; run -o closed --mirror "$U/good"; [ $code = 4 ]; report $? "a folder that is closed: exit 4"
fi
(ulimit -f 100; trap '' XFSZ; rm -rf to; run -o to --mirror "$U/good"; [ $code = 4 ] && sound to 0); report $? "a file that the disk does not take: exit 4"

mkdir bin; rm -rf to
PATH=$T/bin "$SMALL" fetch mnist -o to --mirror "$U/good" >out 2>err; code=$?
[ $code = 4 ] && grep -q 'curl.*not installed' err && grep -q 'install curl' err && sound to 0; report $? "without curl a sentence says what to install"
printf '#!/bin/sh\nsleep 60\n' >bin/curl; chmod +x bin/curl
PATH=$T/bin:$PATH "$SMALL" fetch mnist -o to --stall 300ms >out 2>err; code=$?
[ $code = 5 ] && sound to 0; report $? "a curl that hangs is left"
printf '#!/bin/sh\nprintf "%%s\\n" "$@" >%s/args\ncat %s/good/"${*##*/}"\n' "$T" "$T" >bin/curl
rm -rf to; PATH=$T/bin:$PATH "$SMALL" fetch mnist -o to -q >out 2>err; code=$?
[ $code = 0 ] && sound to 4 && grep -qx '=https' args && ! grep -q 'http,' args && [ "$(head -1 args)" = -q ]
report $? "mirrors that come with it are asked by https alone, without the user's curlrc"

rm -rf to; "$SMALL" fetch mnist -o to --mirror "$U/stall" >out 2>err & pid=$!
i=0; while [ "$(tail -1 asked 2>/dev/null)" != /stall/train-images.gz ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i + 1)); done
: >asked; sleep 0.2; kill -TERM $pid; wait $pid; code=$?; [ $code = 130 ] && sound to 0; report $? "interrupted it is exit 130, and leaves nothing"
"$SMALL" fetch mnist -o to --mirror "$U/stall" >out 2>err & pid=$!
i=0; while [ ! -s asked ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i + 1)); done
kill -KILL $pid; wait $pid 2>/dev/null; code=$?; sound to 0; report $? "killed it leaves nothing"
echo "1..$n"
