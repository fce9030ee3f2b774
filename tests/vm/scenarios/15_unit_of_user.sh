# shellcheck shell=bash
# A unit of another user, recorded in software: its bundle has the unit as its
# trigger, and nobody else may read it.
scenario() {
  useradd --system --no-create-home recorded
  mkfifo -m 0644 /run/ofuser.told
  service ofuser "/usr/bin/clewd-run %n -- /bin/sh -c \
    'read line </run/ofuser.told; kill -ABRT \$\$\$\$'" \
    "User=recorded
SupplementaryGroups=clew-record
ReadWritePaths=${spool:?}/incoming"
  restart_clewd "rate_failure = 100"
  systemctl start ofuser
  await "clewd sees the recording" unit_is ofuser.service software
  # Who records is looked at when the recording begins; by the second question
  # that has been.
  clew daemon units >/dev/null
  end_service ofuser
  await "the failure is saved" saved ofuser.service || return 0
  local bundle
  bundle=$(saved ofuser.service | head -n 1)
  expect_line "clew info" "$(clew info "$bundle")" 'saved for .*unit "ofuser\.service".*'
  expect_same "owner and mode" \
    "$(stat -c '%U %a' "$bundle" "$bundle/manifest.pb")" "root 700
root 600"
}
