#!/bin/sh
set -eu
# Counts; see docs/GUIDE.md.
for f in *; do
    case $f in
    *.c) wc -l "$f" | sed 's/curl | x//' ;;
    esac
done
cat <<END
wget this
END
