#!/usr/bin/env python3
"""Measures sherd's nodes on a device: bench/device.py [options] -o device.json

It needs the command and Python, no numpy and no network but loopback, so that it runs from a bundle
(`make bundle`) on a machine that has a driver only: device.py --sherd bundle/bin/sherd -o device.json.
Every exact product is also computed by a node on the processor, which must give the same bytes.
What exceeds the time left, by its estimate or when it is measured, is omitted, and named.
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import select
import struct
import subprocess
import sys
import tempfile
import time

SIZES = (1024, 2048, 4096, 8192, 16384)
QUICK = (64, 128)
EXACT = {8: ("--scheme", "plain", "--bits", "9"), 24: ("--scheme", "plain", "--bits", "25")}
SHARE = ("--scheme", "share", "--bits", "9", "--same-host-domains")
# name of the measurement, bits of the operands, nodes, options of `multiply`
PRODUCTS = (
    ("float64", 8, ("device",), ("--scheme", "plain", "--mode", "float")),
    ("exact", 8, ("device",), EXACT[8]),
    ("exact-wide", 24, ("device",), EXACT[24]),  # modulo primes: sums exceed 2^53
    ("mixed", 24, ("device", "cpu"), EXACT[24]),
    ("blind", 8, ("device",), ("--scheme", "blind", "--masks", "b.masks")),
    ("share", 8, ("device", "device2", "device3"), SHARE),
)
TRAININGS = (("lenet", "gradients"), ("deep", "gradients"), ("mnist-proper", "products"))


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


def over_float64(device):
    """Rates of exact products on the device, as multiples of that in float64 (cuBLAS: cublasDgemm):
    modulo one prime of 23 bits, and modulo the six of one byte that 46-bit sums take."""
    rate = device["resident_gflops"]
    return {
        "residues_over_float64": device["resident_residue_gflops"] / rate if rate else None,
        "six_bytes_over_float64": device["resident_byte_gops"] / 6 / rate if rate else None,
    }


class Late(SystemExit):
    """Something was not done in time."""


class Measurement:
    def __init__(self, args, folder):
        self.sherd, self.args, self.folder = str(pathlib.Path(args.sherd).resolve()), args, folder
        self.env = {**os.environ, "XDG_STATE_HOME": str(folder)}
        self.ends = time.monotonic() + args.seconds
        self.nodes, self.lines, self.omitted = [], {}, []
        self.run("keygen", "c.key")
        key = next(w for w in self.run("keygen", "--show", "c.key").split() if w.startswith("key="))
        (folder / "allow.txt").write_text(f"* {key} role=coordinator\n")

    def run(self, *words, seconds=None):
        seconds = self.args.start_seconds if seconds is None else seconds
        how = {"cwd": self.folder, "env": self.env, "capture_output": True, "text": True}
        try:
            done = subprocess.run([self.sherd, *words], timeout=seconds, **how)
        except subprocess.TimeoutExpired:
            raise Late(
                f"device.py: sherd {' '.join(words)}: takes more than {seconds:.0f} s"
            ) from None
        if done.returncode:
            raise SystemExit(
                f"device.py: sherd {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}"
            )
        return done.stdout

    def node(self, name, *options):
        self.run("keygen", f"{name}.key")
        command = [
            self.sherd,
            "node",
            "--key",
            f"{name}.key",
            "--allow",
            "allow.txt",
            "--domain",
            name,
        ]
        with open(self.folder / f"{name}.log", "w") as log:
            process = subprocess.Popen(
                [*command, *options], cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.nodes.append(process)
        if not select.select([process.stdout], [], [], self.args.start_seconds)[0]:
            raise Late(f"device.py: {name}: takes more than {self.args.start_seconds} s to start")
        self.lines[name] = process.stdout.readline()
        if not self.lines[name]:
            raise SystemExit(
                f"device.py: {name}: {(self.folder / f'{name}.log').read_text().strip()}"
            )

    def over(self, names):
        path = self.folder / f"{'-'.join(names)}.txt"
        path.write_text("".join(self.lines[n] for n in names))
        return ("--nodes", path.name, "--key", "c.key")

    def left(self):
        return self.ends - time.monotonic()

    def timed(self, *words):
        return self.run(*words, seconds=max(self.left(), 0))

    def attempt(self, what, measure, *args):
        """What is measured, as the only element; none if the time ends before that."""
        if self.left() > 0:
            with contextlib.suppress(Late):
                return [measure(*args)]
        self.omitted.append(what)
        return []

    def product(self, name, bits, nodes, options, n):
        a, b, runs = f"a{bits}.npy", f"b{bits}.npy", []
        if "--masks" in options:
            rows = str(n * self.args.runs)
            self.timed("prepare", b, "--rows", rows, "--bits", "9", "-o", "b.masks")
        for _ in range(self.args.runs):
            answer = self.timed(
                "multiply", a, b, "-o", "c.npy", "--json", *self.over(nodes), *options
            )
            runs.append(json.loads(answer))
        best = min(runs, key=lambda r: r["seconds"])
        return {
            "measurement": name,
            "n": n,
            "seconds": sorted(r["seconds"] for r in runs),
            "terms_per_second": n**3 / best["seconds"],
            "link_bytes_per_second": (best["bytes_out"] + best["bytes_in"]) / best["seconds"],
            "primes": best["primes"],
            "prime_bits": best["prime_bits"],
            "tasks": best["tasks"],
            "sha256": digest(self.folder / "c.npy"),
        }

    def estimated(self, name, measure, *args):
        """As measure, unless the estimate exceeds the time left: nine times that of half the size."""
        if self.estimate.get(name, 0) > self.left():
            raise Late
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
            found[bits] = self.product("wanted", bits, ("cpu",), options, n)["sha256"]
        return found

    def products(self, n):
        made = []
        for wanted in self.attempt(f"all of {n}", self.estimated, "wanted", self.wanted, n):
            for p in PRODUCTS:
                made += self.attempt(f"{p[0]} {n}", self.estimated, p[0], self.judged, wanted, n, p)
        return made

    def judged(self, wanted, n, product):
        name, bits = product[:2]
        made = self.product(*product, n)
        if name != "float64" and made["sha256"] != wanted[bits]:
            raise SystemExit(f"device.py: {name}, n = {n}: other bits than on the processor")
        print(f"{name:12} {n:6} {made['seconds'][0]:9.3f} s", file=sys.stderr)
        return made

    def training(self, recipe, by):
        few = ("--epochs", "1", "--examples", "200" if self.args.quick else "2000")
        how = ("--by", by, "--seed", "1", "--json", *self.over(("device",)))
        answer = json.loads(self.timed("train", recipe, *few, *how))
        return {
            "recipe": recipe,
            "by": by,
            "examples_per_second": answer["examples_per_second"],
            "seconds": answer["seconds"],
        }

    def measure(self):
        listed = json.loads(self.run("node", "--list-devices", "--measure", "--json"))["devices"]
        usable = [d for d in listed if d["usable"] and self.args.backend in ("auto", d["backend"])]
        chosen = next((d for d in usable if d["number"] == self.args.device), None)
        if not chosen:
            raise SystemExit("device.py: no usable device: sherd node --list-devices says why")
        memory = str(self.args.device_memory or chosen["memory"] // 4)
        on = (
            "--backend",
            chosen["backend"],
            "--device",
            str(chosen["number"]),
            "--device-memory",
            memory,
        )
        self.node("cpu", "--backend", "cpu")
        for name in ("device", "device2", "device3"):
            self.node(name, *on)
        state = json.loads(self.run("cluster", "status", "--json", *self.over(("device", "cpu"))))
        self.estimate = {}
        sizes = QUICK if self.args.quick else SIZES
        return {
            "schema": "sherd/device/1",
            "sherd": self.run("version").split("\n")[0],
            "device": chosen,
            "resident": over_float64(chosen),
            "nodes": state["nodes"],
            "trainings": [
                made for t in TRAININGS for made in self.attempt(" ".join(t), self.training, *t)
            ],
            "products": [made for size in sizes for made in self.products(size)],
            "omitted": self.omitted,
        }

    def close(self):
        for process in self.nodes:
            process.terminate()
        for process in self.nodes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.stdout.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", required=True, help="JSON file that is written")
    parser.add_argument("--sherd", default="build/sherd", help="the command [build/sherd]")
    parser.add_argument("--backend", default="auto", help="cuda, opencl, or auto: any [auto]")
    parser.add_argument("--device", type=int, default=0, help="number of the device [0]")
    parser.add_argument(
        "--device-memory", type=int, help="bytes for each of three nodes [a quarter]"
    )
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


if __name__ == "__main__":
    main()
