#!/usr/bin/env python3
"""Measures a device and sherd's nodes on it: bench/device.py [options] -o device.json

It needs the command and Python, no numpy and no network but loopback, so that it runs from a bundle
(`make bundle`) on a machine that has a driver only: device.py --sherd bin/sherd -o device.json.
Every exact product is also computed by a node on the processor, which must give the same bytes.
All of it ends in time: what exceeds the time left, by its estimate or when it is measured, is
omitted, and named. What fails is named, too, and the exit code is 1; the rest is still measured.
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import re
import select
import struct
import subprocess
import sys
import tempfile
import time

SIZES = (1024, 2048, 4096)
LARGE = (8192, 16384)  # last, since they take most of the time
QUICK = (64, 128)
EXACT = {8: ("--scheme", "plain", "--bits", "9"), 24: ("--scheme", "plain", "--bits", "25")}
FLOAT = ("--scheme", "plain", "--mode", "float")
SHARE = ("--scheme", "share", "--bits", "9", "--same-host-domains")
SHARING = ("device", "device2", "device3")  # share needs three domains: all are on the one device
# name of the measurement, bits of the operands, nodes, options of `multiply`
PRODUCTS = (
    ("float64", 8, ("device",), FLOAT),
    ("exact", 8, ("device",), EXACT[8]),
    ("exact-wide", 24, ("device",), EXACT[24]),  # modulo primes: sums exceed 2^53
    ("mixed", 24, ("device", "cpu"), EXACT[24]),
    ("blind", 8, ("device",), ("--scheme", "blind", "--masks", "b.masks")),
    ("share", 8, SHARING, SHARE),
)
TRAININGS = (("lenet", "gradients"), ("deep", "gradients"), ("mnist-proper", "products"))
CONTRACT = ("test_backend", "test_backend_bytes", "test_backend_residues", "test_calls")
PARTS = ("rates", "contract", "emulation", "products", "kept", "trainings")
EMULATE = {"CUBLAS_EMULATE_DOUBLE_PRECISION": "1", "CUBLAS_EMULATION_STRATEGY": "eager"}
# Rows of the table: what, the measurements whose ratio it is (one that has no second is a fraction
# itself; of several first ones the lowest counts), what it must be, and what it should be.
TABLE = (
    ("23-bit residues, one prime, over cublasDgemm", ("residues",), "library-dgemm", 0.75, 0.87),
    ("six byte primes over cublasDgemm", ("six-bytes",), "library-dgemm", 2.5, 3.2),
    ("uploads over the pinned copy", ("upload",), "copy-in", 0.8, 0.95),
    (
        "device busy, from blocks on it to answers",
        ("busy-residues", "busy-six-bytes"),
        None,
        0.6,
        0.9,
    ),
)


def matrix(path, n, bits):
    """Writes a .npy of n x n random integers of 8 or 24 bits."""
    kind, width = ("|u1", 1) if bits == 8 else ("<u4", 4)
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({n}, {n}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        for _ in range(n):
            row = bytearray(os.urandom(n * width))
            if bits == 24:
                row[3::4] = bytes(n)
            out.write(row)


def digest(path):
    with open(path, "rb") as file:
        h = hashlib.sha256()
        while block := file.read(1 << 22):
            h.update(block)
    return h.hexdigest()


def threads(pid):
    """Name and processor time in seconds of each thread of a process."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended
            ran = int((task / "schedstat").read_text().split()[0])
            found[task.name] = ((task / "comm").read_text().strip(), 1e-9 * ran)
    return found


def split(after, before, name):
    """Time that threads of the name took, and that of the others."""
    named = others = 0.0
    for thread, (its, ran) in after.items():
        took = ran - before.get(thread, ("", 0))[1]
        named, others = (named + took, others) if its == name else (named, others + took)
    return named, others


def table(rates):
    """The rows of the table, at the largest size up to 8192 that all of a row was measured at."""
    value = {(r["name"], r["n"]): r["value"] for r in rates}
    rows = []
    for what, of, over, must, aim in TABLE:
        needed = (*of, over) if over else of
        sizes = [n for _, n in value if n <= 8192 and all((name, n) in value for name in needed)]
        n = max(sizes, default=None)
        found = None
        if n is not None:
            found = min(value[name, n] for name in of) / (value[over, n] if over else 1)
        rows.append({"row": what, "n": n, "value": found, "must": must, "aim": aim})
    return rows


def show(rows):
    print(f"{'':45} {'n':>6} {'found':>6} {'must':>6} {'aim':>6}")
    for r in rows:
        found = "-" if r["value"] is None else f"{r['value']:.2f}"
        print(f"{r['row']:45} {r['n'] or '':>6} {found:>6} {r['must']:6} {r['aim']:6}")


class Late(Exception):
    """There is no time left, or something was not done in its time."""


class Failed(Exception):
    """A command failed, or gave wrong bytes."""


class Measurement:
    def __init__(self, args, folder):
        self.sherd, self.args, self.folder = str(pathlib.Path(args.sherd).resolve()), args, folder
        self.env = {**os.environ, "XDG_STATE_HOME": str(folder)}
        self.ends = time.monotonic() + args.seconds
        self.nodes, self.lines, self.estimate = {}, {}, {}
        self.omitted, self.failed = [], []

    def left(self):
        return self.ends - time.monotonic()

    def within(self, seconds):
        """The time that something may take, at most `seconds`."""
        if self.left() <= 0:
            raise Late("no time is left")
        return min(seconds or self.left(), self.left())

    def attempt(self, what, measure, *args):
        """Returns [what is measured], or [] if the time ends before that or it fails."""
        try:
            self.within(None)
            return [measure(*args)]
        except Late as late:
            print(f"device.py: {what}: omitted: {late}", file=sys.stderr)
            self.omitted.append(what)
        except (Failed, OSError, LookupError, ValueError) as error:
            print(f"device.py: {what}: {error!s}", file=sys.stderr)
            self.failed.append({"what": what, "why": str(error)})
        return []

    # ---- commands

    def run(self, *words, seconds=None, sampled=None):
        """Runs the command, and returns what it prints. sampled: is called while it runs."""
        seconds = self.within(seconds)
        ends = time.monotonic() + seconds
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            how = {"cwd": self.folder, "env": self.env, "stdin": subprocess.DEVNULL}
            process = subprocess.Popen([self.sherd, *words], stdout=out, stderr=err, **how)
            while process.poll() is None and time.monotonic() < ends:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(min(0.05, max(ends - time.monotonic(), 0)) if sampled else seconds)
                if sampled:
                    sampled(process.pid)
            if process.poll() is None:
                process.kill()
                process.wait()
                raise Late(f"sherd {' '.join(words)}: takes more than {seconds:.0f} s")
            out.seek(0)
            err.seek(0)
            text, why = out.read().decode(), err.read().decode().strip()
        if process.returncode:
            raise Failed(f"sherd {' '.join(words)}: {why or text.strip() or process.returncode}")
        return text

    def keys(self):
        self.run("keygen", "c.key")
        key = next(w for w in self.run("keygen", "--show", "c.key").split() if w.startswith("key="))
        (self.folder / "allow.txt").write_text(f"* {key} role=coordinator\n")

    def node(self, name, *options, **env):
        self.run("keygen", f"{name}.key")
        seconds = self.within(self.args.start_seconds)
        command = [self.sherd, "node", "-v", "--key", f"{name}.key", "--allow", "allow.txt"]
        with open(self.folder / f"{name}.log", "w") as log:
            process = subprocess.Popen(
                [*command, "--domain", name, *options],
                cwd=self.folder,
                env={**self.env, **env},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.nodes[name] = process
        if not select.select([process.stdout], [], [], seconds)[0]:
            raise Late(f"{name}: takes more than {seconds:.0f} s to start")
        self.lines[name] = process.stdout.readline()
        if not self.lines[name]:
            raise Failed(f"{name}: {(self.folder / f'{name}.log').read_text().strip()}")

    def over(self, names):
        if missing := [n for n in names if not self.lines.get(n)]:
            raise Failed(f"needs node {missing[0]}, which did not start")
        path = self.folder / f"{'-'.join(names)}.txt"
        path.write_text("".join(self.lines[n] for n in names))
        return ("--nodes", path.name, "--key", "c.key")

    def library(self, name):
        """What a node says of the library that multiplies on its device."""
        lines = (self.folder / f"{name}.log").read_text().splitlines()
        return next((line for line in lines if "cuBLAS" in line), None)

    def close(self):
        ends = time.monotonic() + 10
        for process in self.nodes.values():
            process.terminate()
        for process in self.nodes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(ends - time.monotonic(), 0))
            process.kill()
            process.wait()
            process.stdout.close()

    # ---- the device

    def choose(self):
        backend = () if self.args.backend == "auto" else ("--backend", self.args.backend)
        answer = self.run("node", "--list-devices", "--json", *backend, seconds=60)
        usable = [d for d in json.loads(answer)["devices"] if d["usable"]]
        chosen = next((d for d in usable if d["number"] == self.args.device), None)
        if not chosen:
            raise Failed("no usable device: sherd node --list-devices says why")
        self.on = ("--backend", chosen["backend"], "--device", str(chosen["number"]))
        return chosen

    def rates(self):
        quick = ("--selftest", "quick") if self.args.quick else ()
        words = ("node", "--list-devices", "--measure", "--json", *self.on, *quick)
        listed = json.loads(self.run(*words, seconds=150))["devices"]
        device = next(d for d in listed if d["number"] == self.args.device)
        if not device["usable"]:
            raise Failed(device["why"])
        return device

    def contract(self, device, program):
        """Runs the suite that all backends must pass on a device: names of the tests that fail."""
        env = {**self.env, "SHERD_CONTRACT": device, "CMOCKA_MESSAGE_OUTPUT": "TAP"}
        seconds = self.within(120)
        try:
            done = subprocess.run(
                [pathlib.Path(self.args.contract) / program],
                timeout=seconds,
                env=env,
                capture_output=True,
                text=True,
            )
        except subprocess.TimeoutExpired:
            raise Late(f"takes more than {seconds:.0f} s") from None
        cases = re.findall(r"^(ok|not ok) \d+ - (\S+)( # SKIP)?", done.stdout, re.M)
        failed = [name for state, name, _ in cases if state == "not ok"]
        if done.returncode or not cases:
            raise Failed(", ".join(failed) or (done.stderr or done.stdout).strip()[-400:])
        skipped = sum(bool(skip) for _, _, skip in cases)
        return {
            "device": device,
            "program": program,
            "passed": len(cases) - skipped,
            "skipped": skipped,
        }

    def contracts(self, device):
        of = [f"{device['backend']}:{device['number']}"]
        if any(r["name"] == "library-dgemm" for r in device["rates"]):
            of.append(f"cublas:{device['number']}")
        programs = self.args.programs.split(",")
        return [
            made
            for name in of
            for program in programs
            for made in self.attempt(f"contract {name} {program}", self.contract, name, program)
        ]

    # ---- products

    def multiplied(self, a, b, nodes, options):
        """Multiplies once: the report, and the processor time of the parts."""
        last, pids = {}, {n: self.nodes[n].pid for n in nodes}
        before = {n: threads(pid) for n, pid in pids.items()}
        words = ("multiply", a, b, "-o", "c.npy", "--json", *self.over(nodes), *options)
        report = json.loads(self.run(*words, sampled=lambda pid: last.update(threads(pid))))
        spent = [split(threads(pid), before[n], "sherd-node") for n, pid in pids.items()]
        link, here = split(last, {}, "sherd-cluster")
        busiest = max(link, *(s[0] for s in spent))
        report["parts"] = {
            "hide_check_recover_cpu_seconds": here,
            "link_cpu_seconds": link,
            "node_link_cpu_seconds": sum(s[0] for s in spent),
            "node_cpu_seconds": sum(s[1] for s in spent),
            "link_share": busiest / report["seconds"],
            "link_bytes_per_second": (report["bytes_out"] + report["bytes_in"]) / busiest
            if busiest
            else None,
        }
        return report

    def product(self, name, bits, nodes, options, n, times):
        a, b, runs = f"a{bits}.npy", f"b{bits}.npy", []
        if "--masks" in options:
            rows = str(n * times)
            self.run("prepare", b, "--rows", rows, "--bits", "9", "-o", "b.masks")
        for _ in range(times):
            runs.append(self.multiplied(a, b, nodes, options))
        best = min(runs, key=lambda r: r["seconds"])
        return {
            "measurement": name,
            "n": n,
            "nodes": len(nodes),
            "seconds": sorted(r["seconds"] for r in runs),
            "terms_per_second": n**3 / best["seconds"],
            "bytes_per_second": (best["bytes_out"] + best["bytes_in"]) / best["seconds"],
            "parts": best["parts"],
            "predicted": best["predicted"],
            "primes": best["primes"],
            "prime_bits": best["prime_bits"],
            "tasks": best["tasks"],
            "sha256": digest(self.folder / "c.npy"),
        }

    def estimated(self, name, measure, *args):
        """As measure, unless nine times the time of half the size exceeds the time left."""
        if self.estimate.get(name, 0) > self.left():
            raise Late(f"{self.estimate[name]:.0f} s are estimated")
        began = time.monotonic()
        made = measure(*args)
        self.estimate[name] = 9 * (time.monotonic() - began)
        return made

    def wanted(self, n):
        """Digests of the products of one size on the processor, whose operands it makes."""
        found = {}
        for bits, options in EXACT.items():
            matrix(self.folder / f"a{bits}.npy", n, bits)
            matrix(self.folder / f"b{bits}.npy", n, bits)
            found[bits] = self.product("wanted", bits, ("cpu",), options, n, 1)["sha256"]
        return found

    def products(self, n):
        made = []
        for wanted in self.attempt(f"all of {n}", self.estimated, "wanted", self.wanted, n):
            for p in PRODUCTS:
                made += self.attempt(f"{p[0]} {n}", self.estimated, p[0], self.judged, wanted, n, p)
        return made

    def judged(self, wanted, n, product):
        name, bits = product[:2]
        made = self.product(*product, n, self.args.runs)
        if name != "float64" and made["sha256"] != wanted[bits]:
            raise Failed("other bits than on the processor")
        print(f"{name:12} {n:6} {made['seconds'][0]:9.3f} s", file=sys.stderr)
        return made

    def emulation(self, n):
        """Whether products keep their bits where the environment asks cuBLAS to emulate float64."""
        self.node("emulating", *self.on, "--device-memory", self.memory, **EMULATE)
        of = {node: self.library(node) or "" for node in ("device", "emulating")}
        if "multiplies" in of["device"] and "multiplies" not in of["emulating"]:
            raise Failed(of["emulating"])  # its self-test noticed
        found = {"n": n, "library": of["emulating"], **EMULATE}
        for name, bits, options in (("float64", 8, FLOAT), ("exact-wide", 24, EXACT[24])):
            matrix(self.folder / f"a{bits}.npy", n, bits)
            matrix(self.folder / f"b{bits}.npy", n, bits)
            sums = []
            for node in ("device", "emulating"):
                self.multiplied(f"a{bits}.npy", f"b{bits}.npy", (node,), options)
                sums.append(digest(self.folder / "c.npy"))
            found[name] = sums[0] == sums[1]
        self.nodes["emulating"].terminate()
        if not found["exact-wide"]:
            raise Failed("exact products have other bits")
        return found

    # ---- more

    def kept(self):
        """Products with an operand that stays at the nodes, in shares."""
        few = ("--quick",) if self.args.quick else ()
        how = ("--only", "resident", "--runs", "3", "--keep-env", "--json")
        answer = json.loads(self.run("bench", *how, *few, *self.over(SHARING)))
        figure = next(f for f in answer["figures"] if f["name"] == "resident")
        return {
            "what": figure["what"].split(",")[1].strip(),
            "numbers": figure["path"],
            "nodes": len(SHARING),
            "first_seconds": figure["beside"]["first_seconds"],
            "seconds": figure["beside"]["seconds"],
        }

    def training(self, recipe, by):
        few = ("--epochs", "1", "--examples", "200" if self.args.quick else "2000")
        how = ("--by", by, "--seed", "1", "--json", *self.over(("device",)))
        answer = json.loads(self.run("train", recipe, *few, *how))
        return {
            "recipe": recipe,
            "by": by,
            "examples_per_second": answer["examples_per_second"],
            "seconds": answer["seconds"],
        }

    def state(self):
        names = [n for n in ("device", "cpu") if self.lines.get(n)]
        return json.loads(self.run("cluster", "status", "--json", *self.over(names)))["nodes"]

    def start(self, device):
        self.memory = str(self.args.device_memory or device["memory"] // 5)
        self.attempt("node cpu", self.node, "cpu", "--backend", "cpu")
        for name in SHARING:
            self.attempt(f"node {name}", self.node, name, *self.on, "--device-memory", self.memory)

    def all_products(self, sizes):
        return [made for n in sizes for made in self.products(n)]

    def work(self, made, wanted):
        """All that nodes do."""
        self.start(made["device"])
        made["nodes"] = (self.attempt("nodes", self.state) or [[]])[0]
        if "emulation" in wanted and self.on[1] == "cuda":
            n = QUICK[-1] if self.args.quick else 4096
            made["emulation"] = (self.attempt("emulation", self.emulation, n) or [None])[0]
        if "products" in wanted:
            made["products"] = self.all_products(QUICK if self.args.quick else SIZES)
        if "kept" in wanted:
            made["kept"] = (self.attempt("kept", self.kept) or [None])[0]
        if "trainings" in wanted:
            made["trainings"] = [
                t for how in TRAININGS for t in self.attempt(" ".join(how), self.training, *how)
            ]
        if "products" in wanted and not self.args.quick:
            made["products"] += self.all_products(LARGE)

    def measure(self):
        wanted = set(self.args.only.split(","))
        if unknown := wanted - set(PARTS):
            raise SystemExit(f"device.py: --only: there is no part {unknown.pop()}")
        began = time.monotonic()
        made = {"schema": "sherd/device/2", "omitted": self.omitted, "failed": self.failed}
        for version in self.attempt("version", self.run, "version"):
            made["sherd"] = version.split("\n")[0]
        for device in self.attempt("device", self.choose):
            self.attempt("keys", self.keys)
            made["device"] = device
            if wanted & {"rates", "contract"}:  # the rates say whether there is cuBLAS
                made["device"] = (self.attempt("rates", self.rates) or [device])[0]
                made["table"] = table(made["device"]["rates"])
                show(made["table"])
            if "contract" in wanted:
                made["contract"] = self.contracts(made["device"])
            if wanted - {"rates", "contract"}:
                self.work(made, wanted)
        made["seconds"] = time.monotonic() - began
        return made


def main():
    here = pathlib.Path(__file__).resolve().parent
    contract = here / "contract"
    if not contract.is_dir():
        contract = here.parent / "build/plain/tests/contract/node"
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", required=True, help="JSON file that is written")
    parser.add_argument("--sherd", default="build/sherd", help="the command [build/sherd]")
    parser.add_argument("--contract", default=contract, help="folder of the suite's programs")
    parser.add_argument("--programs", default=",".join(CONTRACT), help="which of them [all]")
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts: {','.join(PARTS)} [all]")
    parser.add_argument("--backend", default="auto", help="cuda, opencl, or auto: any [auto]")
    parser.add_argument("--device", type=int, default=0, help="number of the device [0]")
    parser.add_argument("--device-memory", type=int, help="bytes for each node [a fifth]")
    parser.add_argument("--runs", type=int, default=3, help="runs of each product [3]")
    parser.add_argument("--seconds", type=float, default=540, help="time for all [540]")
    parser.add_argument(
        "--start-seconds", type=float, default=120, help="time for the start of each node [120]"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measurement = Measurement(args, pathlib.Path(folder))
        try:
            made = measurement.measure()
        finally:
            measurement.close()
    pathlib.Path(args.output).write_text(json.dumps(made, indent=1) + "\n")
    return 1 if made["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
