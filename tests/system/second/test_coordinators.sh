#!/bin/sh
# A coordinator in Python, from docs/PROTOCOL.md alone, drives nodes in C: secure sums over examples of
# their own, circles, and products of coded operands. Speaks TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.coordinators
