#!/bin/sh
# `sherd node` under coordinators that send wrong requests for gradients, all-reduce groups and secure
# sums: the node refuses each as docs/PROTOCOL.md says, and then gives right results. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.hostile_operations
