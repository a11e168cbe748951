#!/bin/sh
# A training over nodes whose coordinator is killed (-9) at any time and resumed ends with the bits of an
# undisturbed one, by products under share and by gradients. No part of a share is sent twice by its
# processes, though seed, data and weights are the same: each process has fresh masks. Writes TAP.
. "$(dirname "$0")/../../support/tap.sh"
cat >driver.py <<'PY'
import filecmp, os, random, shutil, struct, subprocess, sys, time
import numpy as np

PUT, WINDOW = 3, 32
rng = random.Random(5)

def command(*more):
    return [os.environ['S'], 'train', 'my.conf', '--seed', 'seed', '-q', '-n', '3'] + list(more)

def whole(*how):
    """The run that nothing happens to."""
    subprocess.run(command('-o', 'whole.npz', *how), check=True)

def kept(folder):
    return len(os.listdir(folder)) if os.path.isdir(folder) else 0

def killed(times, record, *how):
    """Killed so many times, some checkpoints further on each time, then left alone. How often."""
    kills = 0
    shutil.rmtree('run', ignore_errors=True)
    while True:
        more = ['--record', 'record%d' % kills] if record else []
        p = subprocess.Popen(command('--checkpoint', 'run', '--checkpoint-every', '2', '--resume',
                                     '-o', 'model.npz', *how, *more))
        if kills == times: break
        enough = kept('run') + rng.randint(1, 4) if kills else 1 # the first time at the beginning
        while kept('run') < enough and p.poll() is None: time.sleep(0.001)
        time.sleep(rng.random() * 0.03)
        if p.poll() is not None: break
        p.kill()
        p.wait()
        kills += 1
    assert p.wait() == 0
    assert kills == times, 'it ended after %d kills' % kills
    assert filecmp.cmp('model.npz', 'whole.npz', shallow=False), 'the weights differ'

def shares(folder):
    """Bytes of operands that all nodes were sent, in the order of each."""
    for f in sorted(os.listdir(folder)):
        if not f.endswith('.sent'): continue
        data, at = open(folder + '/' + f, 'rb').read(), 0
        while at + 32 <= len(data): # the last one may be cut off
            magic, kind, _, _, _, part, size = struct.unpack_from('<IHHQIIQ', data, at)
            assert magic == 0x44524853, f
            if kind == PUT and part > 0: yield data[at + 32:at + 32 + size]
            at += 32 + size

def windows(folder):
    """A hash of the WINDOW bytes that begin at each byte."""
    x = b''.join(shares(folder))
    if len(x) < WINDOW: return np.zeros(0, np.uint64) # killed before it sent any
    words = np.zeros(len(x) - 7, np.uint64)
    for i in range(8):
        some = np.frombuffer(x[i:i + (len(x) - i) // 8 * 8], '<u8')
        words[i::8] = some
    out = np.zeros(len(x) - WINDOW + 1, np.uint64)
    for i in range(0, WINDOW, 8):
        out = out * np.uint64(0x9e3779b97f4a7c15) + words[i:i + len(out)]
    return np.unique(out)

def repeated(runs):
    """Windows of each run that an earlier one had, by run, and how many there are of all."""
    seen, again = windows('record0'), []
    for i in range(1, runs):
        w = windows('record%d' % i)
        again.append(len(np.intersect1d(seen, w, assume_unique=True)))
        seen = np.union1d(seen, w)
    for i in range(runs): shutil.rmtree('record%d' % i)
    print(again, 'of', len(seen))
    return again, len(seen)
PY
py() { S=$S PYTHONPATH=. /usr/bin/python3 -c "from driver import *
$1" >out 2>&1; }
conf() {
    printf '%s\n' 'input = 20' 'layer = dense 16' 'layer = tanh' 'layer = dense 3' 'loss = cross-entropy' \
        'data = random' 'examples = 230' 'classes = 3' 'holdout = 0.2' 'batch = 50' 'rate = 0.05' "$@" >my.conf
}

: >err
/usr/bin/python3 -c "open('seed', 'wb').write(bytes(range(7, 39)))"

conf 'method = adam' 'epochs = 30'
py "whole('--scheme', 'share'); killed(9, True, '--scheme', 'share')"
report $? "a training by products under share that is killed 9 times has the weights of an undisturbed one"
py "again, total = repeated(10); assert not any(again) and total > 300000"
report $? "no share of a resumed run repeats 32 bytes of an earlier share"
py "whole('--scheme', 'permute', '--bits', '17'); killed(2, True, '--scheme', 'permute', '--bits', '17')
again, total = repeated(3); assert max(again) > 1000"
report $? "under plain the same search finds repeated bytes"
conf 'method = momentum 0.9' 'epochs = 200'
py "whole('--by', 'gradients'); killed(8, False, '--by', 'gradients')"
report $? "a training by gradients that is killed 8 times has the weights of an undisturbed one"
echo "1..$n"
