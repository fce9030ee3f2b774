#!/bin/sh
# skeleton.sh BPFTOOL OBJECT HEADER: wraps a BPF object into a header, whose
# style is bpftool's, not ours.
set -eu
{
  echo "#pragma GCC system_header"
  echo "// NOLINTBEGIN"
  "$1" gen skeleton "$2" name inputs_bpf
  echo "// NOLINTEND"
} >"$3.new"
mv "$3.new" "$3"
