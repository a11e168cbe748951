#!/bin/sh
# `fetch` from servers on this machine: files that are right, wrong, short, too long, missing; servers
# that are silent or slow; several mirrors; no curl; no disk space. Writes TAP.
SMALL=$(realpath "${BUILD:-build/plain}/tests/system/cli/prog_fetch_small")
. "$(dirname "$0")/../../support/tap.sh"
server=
end() { [ -n "$server" ] && kill "$server" 2>/dev/null; rm -rf "$T"; }
trap end EXIT
unset SHERD_MIRROR SHERD_STALL SHERD_TIMEOUT http_proxy https_proxy ALL_PROXY all_proxy HTTPS_PROXY
export no_proxy='*' FETCH_TABLE="$T/table"

run() { "$SMALL" fetch mnist "$@" >out 2>err </dev/null; code=$?; }
# Checks that DIR contains only complete, correct files, COUNT or more
sound() { # dir, count
    [ "$(ls -A "$1" | wc -l)" = "$2" ] && for f in "$1"/*; do
        [ "$2" = 0 ] || cmp -s "$f" "good/${f##*/}" || return 1; done
}
# fails CODE WORDS COUNT ARGS...: checks the exit code, words on stderr, and that there are only COUNT
# correct files
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
report $? "all files are fetched from a good mirror, and JSON names the source"
: >asked; run -o to --mirror "$U/missing"
[ $code = 0 ] && sound to 4 && [ ! -s asked ] && grep -q 'are the published ones' err
report $? "existing files are not requested again"
rm to/t10k-images.gz; : >asked; run -o to --mirror "$U/good"
[ $code = 0 ] && sound to 4 && [ "$(cat asked)" = /good/t10k-images.gz ]; report $? "only a missing file is fetched"
(cd to && rm -f ./* && "$SMALL" fetch mnist --mirror "$U/moved" -q >../out 2>../err; [ $? = 0 ] && [ ! -s ../err ]) && sound to/mnist 4
report $? "without -o the folder has the set's name; redirections are followed; --quiet prints nothing"
rm -rf to; mkdir to; echo mine >to/t10k-labels.gz; run -o to --mirror "$U/good"
[ $code = 3 ] && grep -q 't10k-labels.gz: exists and is not' err && [ "$(cat to/t10k-labels.gz)" = mine ] && [ "$(ls -A to | wc -l)" = 1 ]
report $? "an existing wrong file is kept, and nothing is fetched"

fails 3 'train-images.gz: is not the published file' 0 --mirror "$U/wrong"; report $? "one flipped bit is detected, exit code 3"
fails 3 'longer than the 300000 bytes' 0 --mirror "$U/long"; report $? "a longer file is refused by its announced length"
fails 3 'longer than the 300000 bytes' 0 --mirror "$U/endless"; report $? "without an announced length a longer file is refused by the received bytes"
fails 5 'truncated: received 150000 of 300000' 0 --mirror "$U/short"; report $? "half a file is reported as truncated, exit code 5"
fails 5 'train-images.gz: .*[0-9]* bytes' 0 --mirror "$U/cut"; report $? "a closed connection is reported with the number of bytes"
fails 5 'returned error: 404' 0 --mirror "$U/missing"; report $? "status 404 is reported, exit code 5"
fails 5 'redirect' 0 --mirror "$U/round"; report $? "endless redirections are given up"
fails 5 'rotocol' 0 --mirror "$U/file"; report $? "redirections to file: are refused"
fails 5 '127.0.0.1' 0 --mirror http://127.0.0.1:1; report $? "a refused connection is reported, exit code 5"
began=$(date +%s)
fails 5 'received less than 500 bytes in 0.5 s' 0 --mirror "$U/stall" --stall 500ms; report $? "a server that stalls is given up"
fails 5 'received less than 500 bytes in 0.5 s' 0 --mirror "$U/silent" --stall 500ms; report $? "a server that sends nothing is given up"
fails 5 'received less than 700 bytes in 0.7 s' 0 --mirror "$U/drip" --stall 700ms; report $? "a server that sends single bytes slowly is given up"
fails 124 'timeout expired' 0 --mirror "$U/stall" --timeout 500ms; report $? "--timeout ends it, exit code 124"
[ $(($(date +%s) - began)) -lt 30 ]; report $? "each of these failures is found within seconds"

: >asked; rm -rf to; run -o to --mirror "$U/missing,$U/wrong,$U/short,$U/good"
[ $code = 0 ] && sound to 4 && [ "$(grep -c 'trying the next' err)" = 3 ] && [ "$(wc -l <asked)" = 7 ]
report $? "mirrors are tried in turn, and the first that succeeds is used first for later files"
fails 5 'no mirror has it; the last error: .*wrong' 0 --mirror "$U/missing,$U/wrong"; report $? "one missing and one wrong file give exit code 5"
fails 3 'no mirror has it' 0 --mirror "$U/long,$U/wrong"; report $? "wrong files on all mirrors give exit code 3"
rm -rf to; run -o to --mirror "$U/last,$U/missing"; [ $code = 5 ] && sound to 0; report $? "if no mirror has the first file, nothing is fetched"

fails 5 '[Pp]rotocol.*http\|http.*[Pp]rotocol\|disabled' 0 --mirror "https://127.0.0.1:$(cat port)/good" || grep -qi 'ssl\|tls' err
report $? "https to a server without TLS fails"
for u in file:///etc/ ftp://x/ "" good "http://a b/" "$U/good,,"; do
    rm -rf to; run -o to --mirror "$u"; [ $code = 2 ] && [ ! -e to ] || { report 1 "--mirror '$u'"; }
done
report 0 "invalid addresses give exit code 2"
"$S" fetch mnits >out 2>err; code=$?; [ $code = 2 ] && grep -q 'did you mean mnist' err; report $? "a misspelt name is reported with the nearest"
: >plain; rm -rf to; run -o plain --mirror "$U/good"; [ $code = 4 ] && grep -q 'plain: cannot make this folder' err; report $? "a file in place of the folder gives exit code 4"
run -o no/such --mirror "$U/good"; [ $code = 4 ]; report $? "a missing parent folder gives exit code 4"
if [ "$(id -u)" != 0 ]; then
    mkdir closed; chmod 500 closed; run -o closed --mirror "$U/good"; [ $code = 4 ]; report $? "a folder without write permission gives exit code 4"
fi
(ulimit -f 100; trap '' XFSZ; rm -rf to; run -o to --mirror "$U/good"; [ $code = 4 ] && sound to 0); report $? "a full disk gives exit code 4"

mkdir bin; rm -rf to
PATH=$T/bin "$SMALL" fetch mnist -o to --mirror "$U/good" >out 2>err; code=$?
[ $code = 4 ] && grep -q 'curl.*not installed' err && grep -q 'install curl' err && sound to 0; report $? "without curl the message names what to install"
printf '#!/bin/sh\nsleep 60\n' >bin/curl; chmod +x bin/curl
PATH=$T/bin:$PATH "$SMALL" fetch mnist -o to --stall 300ms >out 2>err; code=$?
[ $code = 5 ] && sound to 0; report $? "a curl that hangs is killed"
printf '#!/bin/sh\nprintf "%%s\\n" "$@" >%s/args\ncat %s/good/"${*##*/}"\n' "$T" "$T" >bin/curl
rm -rf to; PATH=$T/bin:$PATH "$SMALL" fetch mnist -o to -q >out 2>err; code=$?
[ $code = 0 ] && sound to 4 && grep -qx '=https' args && ! grep -q 'http,' args && [ "$(head -1 args)" = -q ]
report $? "built-in mirrors are requested by https only, without the user's curlrc"

rm -rf to; "$SMALL" fetch mnist -o to --mirror "$U/stall" >out 2>err & pid=$!
i=0; while [ "$(tail -1 asked 2>/dev/null)" != /stall/train-images.gz ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i + 1)); done
: >asked; sleep 0.2; kill -TERM $pid; wait $pid; code=$?; [ $code = 130 ] && sound to 0; report $? "an interruption gives exit code 130 and leaves nothing"
"$SMALL" fetch mnist -o to --mirror "$U/stall" >out 2>err & pid=$!
i=0; while [ ! -s asked ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i + 1)); done
kill -KILL $pid; wait $pid 2>/dev/null; code=$?; sound to 0; report $? "a killed fetch leaves nothing"
echo "1..$n"
