#!/bin/sh
# skeleton.sh BPFTOOL OBJECT HEADER: wraps a BPF object into a header, whose
# style is bpftool's and none of ours.
set -eu
{
  echo "#pragma GCC system_header"
  "$1" gen skeleton "$2" name inputs_bpf
} >"$3.new"
mv "$3.new" "$3"
