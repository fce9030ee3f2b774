# shellcheck shell=bash
# With source = none, as packaged, every crash is a bundle with its core dump
# and a backtrace, once core dumps come to clewd.
scenario() {
  restart_clewd "rate_failure = 100"
  expect_line "state" "$(clew daemon status)" 'clewd .* off, up .*'
  expect_status 0 systemctl start clew-core-pattern
  # As Debian's services have it.
  expect_same "soft limit of core dumps" "$(ulimit -Sc)" 0
  (cd /var/tmp &&
    exec bash -c 'tail -f /dev/null & sleep 1; kill -SEGV $!; wait' 2>/dev/null)
  await 40 "the crash is saved" saved tail
  systemctl stop clew-core-pattern
  expect_same "core files" "$(compgen -G '/var/tmp/core*')" ""
  local bundle
  bundle=$(saved tail | head -n 1)
  [[ -s "$bundle/core" ]] || wrong "no core in the bundle"
  expect_line "clew backtrace" "$(clew backtrace "$bundle" 2>&1)" '.*libc.*'
  expect_line "state afterwards" "$(clew daemon status)" 'clewd .* off, up .*'
}
