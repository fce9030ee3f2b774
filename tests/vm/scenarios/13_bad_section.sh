# shellcheck shell=bash
# A section that names no service does not make clewd blind to the others: it is
# left out, and said, while the others are watched.
scenario() {
  service_until_told zz "exit 3"
  restart_clewd "source = sideband
sideband_only = yes
rate_failure = 100
[unit aa.timer]
[unit zz.service]"
  expect_line "clewd --check-config" \
    "$(clewd --check-config /etc/clew/clewd.conf 2>&1)" '.*aa\.timer.*left out.*'
  await "clewd records" records
  expect_line "the journal" "$(journalctl --no-pager -o cat -u clewd)" \
    'event=config .*aa\.timer.*'
  systemctl start zz
  end_service zz
  await "the failure of zz is saved" saved zz.service
}
