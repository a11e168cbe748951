#!/bin/sh
# Secure sums among members in C and in Python: the same network, and members that misbehave.
# Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.sums
