#!/bin/sh
# Verifies results and certificates of the command by programs that are written from
# docs/CERTIFICATES.md and docs/FUNCTIONS.md alone. Prints TAP.
. "$(dirname "$0")/../../support/tap.sh"

trap '"$S" cluster down -q >/dev/null 2>&1; rm -rf "$T"' EXIT
mkdir -m 700 "$T/run"
export R S PYTHONPATH="$R/tests" PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
/usr/bin/python3 -m second.certificates
