# shellcheck shell=bash
# A section that names no service does not make clewd blind to the others: it is
# refused by name, or reported while the others are watched.
scenario() {
  service zz "/bin/sh -c 'sleep 4; exit 3'"
  printf '%s\n' "source = sideband" "sideband_only = yes" "rate_failure = 100" \
    "[unit aa.timer]" "[unit zz.service]" >/etc/clew/clewd.conf
  if ! clewd --check-config /etc/clew/clewd.conf >said 2>&1; then
    expect_line "clewd --check-config" "$(cat said)" '.*aa\.timer.*'
    return 0
  fi
  expect_status 0 systemctl restart clewd
  await 20 "clewd records" records
  systemctl start zz
  await 40 "the failure of zz is saved" saved zz.service
}
