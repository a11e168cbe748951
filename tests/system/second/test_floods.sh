#!/bin/sh
# An allowed coordinator floods a node with records, or another host floods it with connections: the
# waiting time of a valid client and the processor time of the node stay bounded. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

export S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.floods
