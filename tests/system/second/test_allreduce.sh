#!/bin/sh
# Rings and halving-doubling of members in C and in Python: the same bits, and members that misbehave.
# Speaks TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.allreduce_training
