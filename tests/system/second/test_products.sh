#!/bin/sh
# The command over nodes that are written in Python from docs/PROTOCOL.md alone: every scheme,
# arithmetic, encoding and element-wise operation. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.products
