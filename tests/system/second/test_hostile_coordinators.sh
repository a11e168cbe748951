#!/bin/sh
# `sherd node` under coordinators that misbehave, each kind in its own session: the node ends sessions as
# docs/PROTOCOL.md says, serves a valid client at the same time, and stays within its memory. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.hostile_coordinators
