# shellcheck shell=bash
# An upgrade from the packages of an earlier version: the service runs the new
# program, and an edited configuration and a waiting bundle stay. A section that
# names a service without its type is one that earlier versions took.
scenario() {
  [[ -d before ]] || skip "no packages of an earlier version (CLEW_VM_BEFORE)"
  local main_pid
  main_pid=$(systemctl show --value -p MainPID clewd)
  cp /etc/clew/clewd.conf unedited
  printf 'rate_all = 21\n[unit nginx]\n' >>/etc/clew/clewd.conf
  mkdir -p "${spool:?}/ready/kept~1~1.clew"
  expect_status 0 dpkg --force-unsafe-io --force-confold --install packages/*.deb
  await "clewd is active" systemctl --quiet is-active clewd
  [[ "$(systemctl show --value -p MainPID clewd)" != "$main_pid" ]] ||
    wrong "the old clewd still runs"
  expect_line "clewd.conf" "$(tail -n 2 /etc/clew/clewd.conf)" 'rate_all = 21'
  expect_line "clew daemon units" "$(clew daemon units)" 'nginx\.service .*'
  expect_line "clewd --check-config" \
    "$(clewd --check-config /etc/clew/clewd.conf 2>&1)" '.*\[unit nginx\].*'
  expect_line "the journal" "$(journalctl --no-pager -o cat -u clewd)" \
    'event=config .*\[unit nginx\].*'
  [[ -d "${spool:?}/ready/kept~1~1.clew" ]] || wrong "a waiting bundle is gone"
  rmdir "${spool:?}/ready/kept~1~1.clew"
  cp unedited /etc/clew/clewd.conf
  expect_line "clewd.service" "$(systemctl show -p NeedDaemonReload clewd)" \
    'NeedDaemonReload=no'
}
