#!/bin/sh
# `sherd node` under a coordinator that is written in Python from docs/PROTOCOL.md alone: every kind
# of task, compared with numpy, bit for bit if the arithmetic is exact. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.tasks
