#!/usr/bin/env bash
# Goal: what docs/design/overview.md says a part uses is what CMake knows, and
# what its files include. Method: the table's last column against parts.txt,
# which configuring writes: every part, every use, `common` aside, in both
# directions; then every use in parts.txt against the includes of the files in
# part_files.txt. (That nothing else is included is refused by configuring.)
#
#   parts_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
source_folder=$1
build=$2

# From the table: "part: use use", sorted.
from_table() {
  # shellcheck disable=SC2016  # the backquotes are the table's
  sed -n 's#^| `\([a-z/]*\)/` |.*| \([a-z, ]*\)|$#\1:\2#p' \
    "$source_folder/docs/design/overview.md" |
    while IFS=: read -r part uses; do
      printf '%s:%s\n' "$part" \
        "$(tr ',' '\n' <<<"$uses" | tr -d ' ' | sort -u | xargs)"
    done | grep -v '^deploy:' | sort
}

# From CMake, by folder of the top level, but for those below it that have a row
# of their own. Generated parts (proto) have no line.
from_cmake() {
  {
    echo proto
    awk -v rows="$(from_table | sed -n 's#^\([a-z]*/[a-z]*\):.*#\1#p' | xargs)" '
    BEGIN { split(rows, list, " "); for (i in list) has_row[list[i]] = 1 }
    {
      part = $1
      if (!(part in has_row)) sub(/\/.*/, "", part)
      print part
      for (i = 2; i <= NF; ++i) {
        used = $i
        sub(/_grpc$/, "", used)
        sub(/\/.*/, "", used)
        if (used != part && used != "common") print part, used
      }
    }' "$build/parts.txt"
  } | sort -u |
    awk '{ uses[$1] = uses[$1] (NF > 1 ? " " $2 : "") }
         END { for (part in uses) print part ":" uses[part] }' |
    sed 's/: /:/' | sort
}

# Each use of which no file of the part includes a header. A header is of the
# part with the longest path that it begins with; proto_grpc has those of gRPC.
unused() {
  cd "$source_folder"
  while read -r part files; do
    # shellcheck disable=SC2086  # the names of our files have no blanks
    sed -n 's#^ *\# *include "\(.*\)".*#'"$part"' \1#p' $files
  done <"$build/part_files.txt" | sort -u |
    awk '
    FILENAME != "-" {
      is_part[$1] = 1
      for (i = 2; i <= NF; ++i) is_part[$i] = uses[$1, $i] = 1
      next
    }
    {
      owner = $2
      while (owner != "" && !(owner in is_part)) {
        if (!sub(/\/[^\/]*$/, "", owner)) owner = ""
      }
      if ($2 ~ /\.grpc\.pb\.h$/) owner = "proto_grpc"
      delete uses[$1, owner]
    }
    END {
      for (use in uses) {
        split(use, name, SUBSEP)
        print name[1] " -> " name[2]
      }
    }' "$build/parts.txt" - | sort
}

left=$(unused)
if [[ -n $left ]]; then
  printf '%s\n' "$left" "no file of these parts includes what USES names" >&2
  echo "0 passed, 1 failed"
  exit 1
fi
if ! diff <(from_table) <(from_cmake); then
  echo "left: docs/design/overview.md; right: CMake's USES" >&2
  echo "0 passed, 1 failed"
  exit 1
fi
echo "$(from_cmake | wc -l) passed, 0 failed"
