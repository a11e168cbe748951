#!/bin/sh
# What private schemes must not reveal, seen from outside: in the bytes that nodes are sent, in their
# number, in files, messages and descriptors; and protection is never reduced silently. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
export XDG_STATE_HOME="$T/state"
umask 000 # so that only the program determines modes

cat >rules.py <<'PY'
import json, os, resource, struct, subprocess, sys, time
import numpy as np

PUT, TASK = 3, 4

def records(path):
    """(type, job, part, body) of each record that was sent."""
    data, at = open(path, 'rb').read(), 0
    while at < len(data):
        magic, kind, _, job, _, part, size = struct.unpack_from('<IHHQIIQ', data, at)
        assert magic == 0x44524853, path
        yield kind, job, part, data[at + 32:at + 32 + size]
        at += 32 + size

def bodies(folder):
    """What each node was sent of operands, without the descriptions that begin a body."""
    return [b''.join(b for k, _, part, b in records(folder + '/' + f) if k == PUT and part > 0)
            for f in sorted(os.listdir(folder)) if f.endswith('.sent')]

def jobs(folder):
    return {j for f in os.listdir(folder) if f.endswith('.sent')
            for k, j, _, _ in records(folder + '/' + f) if k == TASK}

def alike(one, other):
    """The fraction of bytes that are equal where they stand."""
    x, y = (np.frombuffer(b''.join(bodies(f)), np.uint8) for f in (one, other))
    assert len(x) == len(y) > 10000, (len(x), len(y))
    return (x == y).mean()

def said():
    return json.load(open('out'))

def open_to(path):
    return os.stat(path).st_mode & 0o077

def watch(argv):
    """Runs it; what of itself and its nodes could be seen on the way."""
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    p, looks = subprocess.Popen(argv, stdin=subprocess.DEVNULL), 0
    leaks, cores, secrets = set(), {}, set()
    while p.poll() is None:
        try:
            kids = open('/proc/%d/task/%d/children' % (p.pid, p.pid)).read().split()
        except OSError:
            kids = []
        for pid in [str(p.pid)] + kids:
            mine = pid == str(p.pid)
            try:
                if not mine and b'--name' not in open('/proc/' + pid + '/cmdline', 'rb').read(): continue # no node yet
                names = os.listdir('/proc/' + pid + '/fd')
                for line in open('/proc/' + pid + '/limits'):
                    if line.startswith('Max core file size'): cores[pid] = line.split()[4:6] # the last one
            except OSError:
                continue
            for fd in names:
                try:
                    info = open('/proc/%s/fdinfo/%s' % (pid, fd)).read()
                    to = os.readlink('/proc/%s/fd/%s' % (pid, fd))
                except OSError:
                    continue
                flags = int(info.split('flags:')[1].split()[0], 8)
                handed = not mine and to.startswith('pipe:') # the pipe with its key
                handed = handed or to.startswith(('/etc/', '/proc/', '/sys/', '/usr/', '/lib')) # libraries' own
                if int(fd) > 2 and not flags & 0o2000000 and not handed: leaks.add((mine, to))
                own = to.startswith(os.getcwd() + '/.cache/sherd') # the list of self-tests that passed
                if not mine and to.startswith(os.getcwd()) and not own: secrets.add(to)
            looks += len(names) > 3
        time.sleep(0.002)
    return p.returncode, leaks, cores, secrets, looks
PY
py() { PYTHONPATH=. /usr/bin/python3 -c "from rules import *
$1" >>err 2>&1; }

py "
r = np.random.default_rng(7)
np.save('A.npy', r.standard_normal((60, 50))); np.save('B.npy', r.standard_normal((50, 40)))
np.save('A0.npy', np.zeros((60, 50))); np.save('B0.npy', np.zeros((50, 40)))
for f, shape in [('I', (60, 50)), ('J', (50, 40))]:
    np.save(f + '.npy', r.integers(-60000, 60000, shape, np.int32)); np.save(f + '0.npy', np.zeros(shape, np.int32))
a = r.standard_normal((60, 50)); a[3, 7] = 271828.125; np.save('told.npy', a)
np.save('K.npy', r.standard_normal((64, 64))); np.save('L.npy', r.standard_normal((64, 48))) # complete tiles: no padding
np.save('big.npy', r.standard_normal((700, 700)))
open('seed', 'wb').write(bytes(range(160, 192)))"
report $? "operands are made with numpy"

# --- two sources of randomness: the seed does not determine masks -------------------------------------------
export SHERD_SEED="$T/seed" # never read
for i in 1 2; do
    run multiply A.npy B.npy -o "P$i.npy" -n 3 --mode exact --seed seed --record "permute$i"
    [ $code = 0 ] && run multiply K.npy L.npy -o "S$i.npy" -n 3 --scheme share --record "share$i"
    [ $code = 0 ] && run prepare B.npy --rows 60 -o "masks$i" &&
        [ $code = 0 ] && run multiply A.npy B.npy -o "R$i.npy" -n 1 --scheme blind --masks "masks$i" --record "blind$i"
    [ $code = 0 ] || break
done
unset SHERD_SEED
report $code "products run twice with one seed"
py "assert alike('permute1', 'permute2') > 0.99"
report $? "under permute a seed makes two runs send the same bytes"
py "x = alike('share1', 'share2'); assert x < 0.02, x"
report $? "under share two runs with one seed have no bytes in common"
py "x, y = (bodies('blind%d' % i)[0] for i in (1, 2)); assert len(x) == len(y)
n = 60 * 50 * 3
def runs(b, other): return sum(b[i:i + 30] in other for i in range(0, len(b) - 30, 30)) / (len(b) / 30)
of_b = 50 * 40 * 4 / len(x); seen = runs(x, y); assert seen <= of_b + 0.1, (seen, of_b, len(x))"
report $? "under blind two runs with one seed have only B in common"
run multiply A.npy B.npy -o C.npy -n 3 --scheme share --seed seed
[ $code = 2 ] && grep -q 'no effect under --scheme share' err
report $? "--seed is refused under share"
py "a, b = jobs('share1'), jobs('share2'); assert len(a) == len(b) == 1 and not a & b
assert all(j > 1 << 32 for j in a | b), (a, b)"
report $? "job numbers are random, and not used again"

# --- sizes do not depend on values ----------------------------------------------------------------------
sizes() { # folder, arguments: writes the sizes to FOLDER.size
    f=$1; shift
    run multiply "$@" -o Z.npy --json -q && [ $code = 0 ] &&
        py "d = said(); print([d[k] for k in ('work_out', 'work_in', 'tasks', 'fragments', 'panels', 'tiles', 'primes')],
    file=open('$f.size', 'w'))"
}
ok=0
for scheme in share share1; do
    how="-n 5 --scheme share"; [ $scheme = share1 ] && how="$how --public b"
    # shellcheck disable=SC2086
    sizes v A.npy B.npy $how && sizes z A0.npy B0.npy $how && cmp -s v.size z.size &&
        sizes v I.npy J.npy $how --bits 17 && sizes z I0.npy J0.npy $how --bits 17 && cmp -s v.size z.size || ok=1
done
report $ok "under share and share1 zeros take as many bytes, messages and primes as any other value"
run prepare B.npy --rows 200 -o m && sizes v A.npy B.npy -n 2 --scheme blind --masks m &&
    sizes z A0.npy B.npy -n 2 --scheme blind --masks m && cmp -s v.size z.size
report $? "under blind zeros take as many bytes, messages and primes as any other value"
run plan 60x50x40 --masks m --remote 1 --node-gflops 10
[ $code = 0 ] && grep -q '^  blind  *[0-9]' out; report $? "a plan from shapes alone accepts masks of any B of that shape"
run plan A.npy B.npy --masks m --bits 20 --remote 1 --node-gflops 10
tr -s '\n ' ' ' <out | grep -q 'not possible: .*requested 20 of A; try: '; report $? "a plan from shapes alone reports the requested width"
limited() { (exec timeout -s KILL 30 "$S" "$@") >out 2>err </dev/null; code=$?; }
limited plan 40000x40000x40000 --remote 7 --node-gflops 50
[ $code = 0 ] && grep -q '^  permute, 1  *10 TB .* [0-9]* d  *>999x' out; report $? "a plan of a hundred million tasks takes no minutes"
run prepare B.npy --rows 9 -o few --progress plain; [ $code = 0 ] && grep -q '100 %, 9/9 rows' err
report $? "prepare shows its progress up to the end"
chmod 644 A.npy; run prepare --show A.npy; [ $code = 3 ] && grep -q 'is not a file of masks' err
report $? "the error for a file without masks does not mention its mode"
sizes v A.npy B.npy -n 3 --group 1 && sizes z A0.npy B.npy -n 3 --group 1 && ! cmp -s v.size z.size
report $? "under permute --group 1 zeros take fewer bytes, so the comparison can detect it"

# --- descriptors and files of a process ---------------------------------------------------------
run keygen me.key && run meta build z=dot:60x50x40 --nodes 3 -o meta.npz &&
    run multiply told.npy B.npy -o told-C.npy -n 3 --scheme share --record rec --certificate cert --key me.key
report $code "a product writes its files"
py "for f in ['me.key', 'cert', 'rec', 'm', 'masks1', 'meta.npz'] + ['rec/' + x for x in os.listdir('rec')]:
    assert open_to(f) == 0, f
for d, _, files in os.walk('state'):
    assert open_to(d) == 0 or d == 'state', d
    assert all(open_to(d + '/' + x) == 0 for x in files), d"
report $? "records, certificates, metadata, keys and masks are accessible to their owner only, for any umask"
py "for t in range(9): # repeated, since on a busy machine a run can end between two observations
    code, leaks, cores, secrets, looks = watch(['$S', 'multiply', 'big.npy', 'big.npy', '-q', '-o', 'W.npy', '-n', '3',
        '--scheme', 'share', '--record', 'watched%d' % t, '--certificate', 'watched%d.json' % t, '--key', 'me.key'])
    assert code == 0, code
    assert not leaks, leaks
    assert not secrets, secrets
    assert all(c == ['0', '0'] for c in cores.values()), cores
    if looks > 20 and len(cores) == 4: break
else: raise AssertionError((looks, cores))"
report $? "all descriptors close on exec, nodes inherit no file, and no process dumps core"

# --- messages ----------------------------------------------------------------------------------------------
: >words
for more in '--verbose' '--json' '--dry-run' '--bits 12'; do
    # shellcheck disable=SC2086
    run multiply told.npy B.npy -o told-C.npy -n 3 --scheme share $more; cat out err >>words
done
run multiply told.npy B.npy -o told-C.npy -n 3 --mode exact --seed seed --verbose --certificate seeded; cat out err seeded >>words
run multiply told.npy B.npy -o told-C.npy -n 2 --scheme share --verbose; cat out err >>words
py "w = open('words', 'rb').read().lower(); seed = bytes(range(160, 192)); assert len(w) > 1000
for form in (b'271828', seed, seed.hex().encode(), seed[:6].hex().encode(), seed[:4][::-1].hex().encode()):
    assert form not in w, form"
report $? "no message of a command contains an entry of an operand or a part of the seed"

# --- protection is not reduced silently ----------------------------------------------------------------------
rm -f C.npy
run multiply A.npy B.npy -o C.npy -n 2 --scheme share --record few
[ $code = 7 ] && [ ! -e C.npy ] && py "assert not os.path.isdir('few') or not b''.join(bodies('few'))"
report $? "with too few nodes share fails and sends nothing"
run multiply A.npy B.npy -o C.npy -n 3 --scheme share --mode float; [ $code = 2 ] && [ ! -e C.npy ]
report $? "share refuses --mode float"
run multiply A.npy B.npy -o C.npy -n 5 --scheme share --colluding 1 --certificate stated --json
[ $code = 0 ] && py "d = said()
assert (d['scheme'], d['colluding'], d['primes'], d['bits'], d['domains']) == ('share', 1, 2, 17, 'simulated on one host'), d
assert 2.0 ** -44 < d['check_error'] < 2.0 ** -42 and not d['check_tolerant']
c = json.load(open('stated')); s, v, n, a = c['scheme'], c['verification'], c['nodes'], c['arithmetic']
assert s['name'] == 'share' and s['colluding'] == 1 and n['domains'] == 5 and n['domains_simulated'] is True, c
assert v['method'] == 'freivalds' and v['freivalds_trials'] == 2 and v['freivalds_error_log2'] == -43, v
assert a['primes'] == [5931641, 5931637], a"
report $? "results and certificates state scheme, T, primes, bits, verification and simulated domains"
echo "1..$n"
