# shellcheck shell=bash
# A process of 4 GiB, eight pages of it touched, with Debian's kernel as who
# writes the core dump: the handler makes the kernel's file, also while clewd
# saves the dump. How long that takes is printed; that such memory does not go
# through the pipe is seen by what is taken from it (core_memory_test.cc).
scenario() {
  install -m 0755 sparse_crash /usr/local/bin/
  restart_clewd "source = none
rate_failure = 100"
  local kernel_ms handler_ms alone_ms
  kernel_ms=$(best_of_three)
  mv /var/tmp/sparse/core /var/tmp/sparse/of_the_kernel
  expect_status 0 systemctl start clew-core-pattern
  handler_ms=$(best_of_three)
  compare_cores
  await "the core dump is saved" saved sparse_crash
  systemctl stop clewd
  alone_ms=$(best_of_three)
  compare_cores
  echo "4 GiB sparse: kernel $kernel_ms ms, handler and clewd $handler_ms ms," \
    "handler alone $alone_ms ms"
  systemctl start clewd
  systemctl stop clew-core-pattern
  rm -rf /var/tmp/sparse
}

# best_of_three: of die_sparse; the first one reads programs.
best_of_three() {
  for _ in 1 2 3; do
    die_sparse
  done | sort -n | head -n 1
}

# die_sparse: prints how long the process takes to its end, in ms.
die_sparse() {
  local begin_ms
  mkdir -p /var/tmp/sparse
  cd /var/tmp/sparse || return
  rm -f core*
  ulimit -c unlimited
  begin_ms=$(date +%s%3N)
  # In a shell of its own, which says "Aborted".
  bash -c 'sparse_crash 4; :' 2>/dev/null
  echo $(($(date +%s%3N) - begin_ms))
  # The process may go before its file has its length.
  await "the core dump's handler has ended" no_handler
}

# compare_cores: the pages of memory are where the kernel's file has them, and
# the file takes no more of the disk.
compare_cores() {
  local kernel_kib handler_kib
  cd /var/tmp/sparse || return
  for file in of_the_kernel core; do
    gdb --batch -c "$file" /usr/local/bin/sparse_crash \
      -ex 'info files' -ex 'bt' 2>&1 | grep -E 'SIGABRT| is load' |
      sed 's/^.* is load/load/' >"$file.seen"
    stat -c %s "$file" >>"$file.seen"
  done
  expect_same "core file" "$(cat core.seen)" "$(cat of_the_kernel.seen)"
  kernel_kib=$(du -k of_the_kernel | cut -f 1)
  handler_kib=$(du -k core | cut -f 1)
  echo "on disk: kernel $kernel_kib KiB, handler $handler_kib KiB"
  [[ $handler_kib -le $((2 * kernel_kib)) ]] || wrong "more on disk"
}
