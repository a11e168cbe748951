#!/bin/sh
# Training between the two implementations: the command over nodes in Python, and gradients of `sherd
# node` against those of Python, to the bit in fixed point. Speaks TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.training
