#!/bin/sh
# The command over nodes that misbehave, one kind at a time, alone and beside good nodes: it gives the
# right result, or an error with its exit code, within bounds of time and memory. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.hostile_nodes
