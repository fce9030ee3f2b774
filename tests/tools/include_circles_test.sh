#!/usr/bin/env bash
# Goal: no header includes, directly or through others, one that includes it.
# Method: tsort over the includes of every tracked header; before that over three
# headers in a circle and over two that are in none.
#
#   include_circles_test.sh SOURCE_FOLDER
set -euo pipefail
cd "$1"

# circle <headers>: succeeds where they include each other in a circle, and
# prints it.
circle() {
  ! awk '/^ *# *include "/ { split($0, part, "\""); print FILENAME, part[2] }' \
    "$@" | { tsort >/dev/null; } 2>&1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "#include \"$work/b.h\"" >"$work/a.h"
echo "  #  include \"$work/c.h\"" >"$work/b.h"
echo "#include \"$work/a.h\"" >"$work/c.h"
if ! circle "$work"/[abc].h >"$work/found" || circle "$work"/[ab].h; then
  echo "three headers in a circle, or two in none, were taken for the other" >&2
  echo "0 passed, 1 failed"
  exit 1
fi

mapfile -t headers < <(git ls-files '*.h')
if [[ ${#headers[@]} -eq 0 ]]; then
  echo "git names no header in $1" >&2
  echo "0 passed, 1 failed"
  exit 1
fi
for header in "${headers[@]}"; do
  if [[ ! -r "$header" ]]; then
    echo "git names $header, which cannot be read" >&2
    echo "0 passed, 1 failed"
    exit 1
  fi
done
if circle "${headers[@]}" >&2; then
  echo "these headers include each other" >&2
  echo "0 passed, 1 failed"
  exit 1
fi
echo "${#headers[@]} passed, 0 failed"
