# shellcheck shell=bash
# To be sourced by tests that are scripts. Every check goes on after a failure;
# `finish` gives the exit status.

failures=0

# wrong <message...>
wrong() {
  echo "FAIL: $*" >&2
  failures=$((failures + 1))
}

# skip <reason>: ctest counts 77 as skipped.
skip() {
  echo "skipped: $*"
  exit 77
}

# expect_same <what> <found> <wanted>
expect_same() {
  if [[ "$2" != "$3" ]]; then
    wrong "$1 differs (< found, > wanted):"
    diff <(printf '%s\n' "$2") <(printf '%s\n' "$3") >&2 || true
  fi
}

# expect_line <what> <text> <extended regular expression of a whole line>
expect_line() {
  if ! grep -qxE -- "$3" <<<"$2"; then
    wrong "$1: no line matches '$3' in:"
    printf '%s\n' "$2" | head -n 40 >&2
  fi
}

# expect_status <wanted> <command...>
expect_status() {
  local wanted=$1 status=0 output
  shift
  output=$("$@" 2>&1) || status=$?
  if [[ "$status" -ne "$wanted" ]]; then
    wrong "'$*': exit status $status, wanted $wanted; it said:"
    printf '%s\n' "$output" | tail -n 20 >&2
  fi
}

finish() {
  if [[ "$failures" -ne 0 ]]; then
    echo "$failures checks failed" >&2
    exit 1
  fi
}
