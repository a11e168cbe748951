#!/bin/sh
# `sherd node` under coordinators that ask wrongly for gradients, circles and secure sums: each is
# refused as docs/PROTOCOL.md says, and sessions come to right results afterwards. Speaks TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.hostile_operations
