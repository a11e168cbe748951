#!/bin/sh
# A coordinator in Python, written from docs/PROTOCOL.md alone, drives nodes in C: secure sums over the
# nodes' own examples, all-reduce groups, and products of coded operands. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.coordinators
