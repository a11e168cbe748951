#!/bin/sh
# `sherd node` under coordinators that misbehave, a kind a session: it ends them as docs/PROTOCOL.md
# says, serves a good client beside them, and keeps to its memory. Speaks TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.hostile_coordinators
