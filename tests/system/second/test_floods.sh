#!/bin/sh
# One allowed coordinator floods a node with records, or another host with connections: what a good
# client beside them waits, and what it costs the node, stay bounded. Speaks TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.floods
