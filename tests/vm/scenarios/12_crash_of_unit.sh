# shellcheck shell=bash
# A unit that dies by a signal: saved, with the unit, the signal and the trigger
# in the bundle; the check of it passes.
scenario() {
  service_until_told crash "kill -SEGV \$\$\$\$"
  restart_clewd "source = sideband
sideband_only = yes
rate_failure = 100
[unit crash.service]"
  await "clewd records" records
  systemctl start crash
  end_service crash
  await "the crash is saved" saved crash.service || return 0
  local info
  info=$(clew info "$(saved crash.service | head -n 1)")
  expect_line "clew info" "$info" '.*crash\.service.*'
  expect_line "clew info" "$info" '.*(SIGSEGV|signal 11).*'
}
