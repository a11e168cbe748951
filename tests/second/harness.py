"""Shared by the programs of this folder: TAP, the command `sherd`, operands."""
import atexit
import concurrent.futures
import os
import subprocess
import threading
import time

import numpy as np

from . import link

SHERD = os.environ.get("S", "build/plain/sherd")
FAILURES = 12
_lock = threading.Lock()
_cases = [0, 0]
started = []  # nodes, which must be stopped before finish()


def report(good, name, why=""):
    """Prints a line of TAP, and the reason of a failure."""
    with _lock:
        _cases[0] += 1
        _cases[1] += not good
        print(f"{'ok' if good else 'not ok'} {_cases[0]} - {name}", flush=True)
        if not good:
            for line in str(why).splitlines()[-40:]:
                print(f"# {line}", flush=True)


class Run:
    """One run of the command: code, out, err, seconds, peak (bytes of memory)."""

    def __init__(self, *args, limit=60, env=None):
        self.args = args
        began = time.monotonic()
        process = subprocess.Popen([SHERD, *map(str, args)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=dict(os.environ, **(env or {})))
        self.peak = 0
        watch = threading.Timer(limit, process.kill)
        watch.start()
        texts = [None, None]
        readers = [threading.Thread(target=self._read, args=(stream, texts, i))
                   for i, stream in enumerate((process.stdout, process.stderr))]
        for reader in readers:
            reader.start()
        over = threading.Event()
        memory = threading.Thread(target=self._watch_memory, args=(process.pid, over))
        memory.start()
        _, status, usage = os.wait4(process.pid, 0)
        over.set()
        memory.join()
        process.returncode = self.code = os.waitstatus_to_exitcode(status)
        watch.cancel()
        for reader in readers:
            reader.join()
        self.out, self.err = texts
        self.seconds = time.monotonic() - began
        self.cpu = usage.ru_utime + usage.ru_stime

    def _watch_memory(self, pid, over):
        """Records the peak. ru_maxrss would include the memory of this process at the fork."""
        while not over.wait(0.05):
            try:
                with open(f"/proc/{pid}/status", encoding="ascii") as file:
                    held = [line for line in file if line.startswith("VmHWM:")]
            except OSError:
                return
            if held:
                self.peak = max(self.peak, int(held[0].split()[1]) * 1024)

    @staticmethod
    def _read(stream, texts, i):
        texts[i] = stream.read()
        stream.close()

    def __str__(self):
        return (f"sherd {' '.join(map(str, self.args))}\nexit {self.code} after {self.seconds:.1f} s, "
                f"{self.peak >> 20} MiB\n{self.out}{self.err}")


def identity(path):
    """Returns the key of `sherd keygen` at path; creates it if it does not exist."""
    if not os.path.exists(path):
        made = Run("keygen", path)
        assert made.code == 0, made
    with open(path, "rb") as file:
        return link.Identity(file.read())


def node_file(path, nodes, start=1):
    with open(path, "w", encoding="ascii") as file:
        file.writelines(node.line(f"n{i}", f"d{i}") for i, node in enumerate(nodes, start))


def everything(function, cases, workers=4):
    """
    Reports function(case), which is (good, name, why), for each case, several at a time. After
    FAILURES failed cases the rest is not run, so that a test of a broken peer ends soon.
    """
    def one(case):
        if _cases[1] >= FAILURES:
            return
        try:
            report(*function(case))
        except Exception as error:  # an exception is a failed case
            report(False, str(case), repr(error))
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        list(pool.map(one, cases))


@atexit.register
def stop_started():
    """Stops nodes that still run and returns their names: the test should have stopped them."""
    left = [node for node in started if node.lives()]
    for node in left:
        node.stop()
    return [node.name for node in left]


def finish():
    left = stop_started()
    if left:
        report(False, "the test stopped every node", ", ".join(left))
    print(f"1..{_cases[0]}", flush=True)
    os._exit(1 if _cases[1] or not _cases[0] else 0)


def operands(seed=1, n=40, k=30, m=20):
    """Writes A.npy and B.npy, of floats, to the working folder; returns both."""
    random = np.random.default_rng(seed)
    a, b = random.standard_normal((n, k)), random.standard_normal((k, m))
    np.save("A.npy", a)
    np.save("B.npy", b)
    return a, b
