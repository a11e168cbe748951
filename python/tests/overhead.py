#!/usr/bin/env python3
"""
Measures what a product costs from Python beyond the same calls of the library:

    overhead.py [--nodes N] [--scheme NAME] [--rounds N] [--small]

Each round makes the call of the library (by cffi, with arguments that were made beforehand and
without hooks, as a C program would) and that of the package, in alternating order, on one cluster.
Prints for each kind of product the medians of both and of their differences, and the target.
Run it on a quiet machine: a figure of microseconds is lost in the noise of a busy one.
"""

import argparse
import statistics
import time

import numpy as np

import sherd
from sherd._arrays import doubles, view
from sherd._errors import call
from sherd._library import ffi, lib, new
from sherd._options import product_options


def alternate(bare, package, rounds):
    """Returns the seconds of each call of both functions."""
    times = {bare: [], package: []}
    for i in range(-3, rounds):
        for function in (bare, package) if i % 2 else (package, bare):
            began = time.perf_counter()
            function()
            if i >= 0:
                times[function].append(time.perf_counter() - began)
    return times[bare], times[package]


def kept(c, n, rounds):
    """A product of a kept operand, n cubed."""
    rng = np.random.default_rng(1)
    x, w, out = rng.standard_normal((n, n)), rng.standard_normal((n, n)), np.empty((n, n))
    options, diag = product_options(c.options), ffi.new("sherd_diag *")
    made, operand = ffi.new("sherd_multiplier *"), ffi.new("sherd_kept **")
    call("sherd_multiplier_cluster", made, c._nodes.pointer, options)
    multiplier, right, to = made[0], view(w), doubles(out)
    call("sherd_multiplier_keep", operand, multiplier, view(x), ffi.NULL)
    multiply, pointer, k = lib.sherd_multiplier_multiply_kept, operand[0], c.keep(x)

    def bare():
        assert multiply(multiplier, pointer, False, right, to, n, diag) == 0

    times = alternate(bare, lambda: k @ w, rounds)
    k.free()
    lib.sherd_multiplier_release(multiplier, pointer)
    lib.sherd_multiplier_free(multiplier)
    return times


def fresh(c, n, rounds):
    """A product of two arrays, n cubed."""
    rng = np.random.default_rng(1)
    x, w, out = rng.standard_normal((n, n)), rng.standard_normal((n, n)), np.empty((n, n))
    options, diag, report = product_options(c.options), ffi.new("sherd_diag *"), new("sherd_report")
    left, right, to, nodes = view(x), view(w), doubles(out), c._nodes.pointer

    def bare():
        assert lib.sherd_multiply(nodes, left, right, to, n, options, report, diag) == 0
        lib.sherd_report_fini(report)

    return alternate(bare, lambda: c.multiply(x, w), rounds)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].strip())
    p.add_argument("--nodes", type=int, default=3)
    p.add_argument("--scheme", default="share")
    p.add_argument("--rounds", type=int, default=2000, help="of the small products")
    p.add_argument("--small", action="store_true", help="no large product")
    o = p.parse_args()
    with sherd.Cluster(o.nodes, scheme=o.scheme) as c:
        print(f"{o.scheme}, {o.nodes} nodes   library    package    overhead")
        bare, package = kept(c, 64, o.rounds)
        extra = statistics.median(p - b for b, p in zip(bare, package))
        us = [1e6 * t for t in (statistics.median(bare), statistics.median(package), extra)]
        print("64 cubed, kept   {:5.0f} us   {:5.0f} us   {:5.0f} us (target 60 us)".format(*us))
        if not o.small:
            bare, package = fresh(c, 2048, max(5, o.rounds // 100))
            ratio = statistics.median(p / b for b, p in zip(bare, package)) - 1
            ms = [1e3 * statistics.median(t) for t in (bare, package)]
            print(
                "2048 cubed       {:5.0f} ms   {:5.0f} ms   {:5.1f} % (target 2 %)".format(
                    *ms, 100 * ratio
                )
            )


if __name__ == "__main__":
    main()
