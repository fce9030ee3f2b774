# shellcheck shell=bash
# Inputs by eBPF on Debian's kernel: what a program gets from it is known whole,
# files that are mapped and a handler's frame among it, and is enough to solve
# and to replay a run of which nothing else is recorded.
scenario() {
  install -m 0755 handled_twice /usr/local/bin/
  cd "$(mktemp -d)" || return
  expect_status 1 clew record --source step --inputs -o run.clew -- handled_twice
  expect_line "clew info" "$(clew info run.clew)" \
    'inputs +[0-9]+ calls, 2 signals, 0 instructions of 2 threads; 0 unknown'
  expect_line "clew solve" "$(clew solve run.clew)" \
    'run.clew: witness found.*'
  expect_status 0 clew replay --check 5 run.clew
}
