#!/bin/sh
# Training across the two implementations: the command over nodes in Python, and gradients of `sherd
# node` compared with those of Python, bit for bit in fixed point. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.training
