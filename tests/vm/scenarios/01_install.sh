# shellcheck shell=bash
# Of the version from before, if there is one: 05_upgrade goes on from it.
scenario() {
  local folder=packages
  if [[ -d before ]]; then
    folder=before
  fi
  expect_status 0 dpkg --force-unsafe-io --install $folder/*.deb
  await "clewd is active" systemctl --quiet is-active clewd
  expect_line "clewd" "$(systemctl is-enabled clewd)" enabled
  expect_line "clew-collector" "$(systemctl is-active clew-collector)" inactive
  expect_line "state" "$(clew daemon status)" 'clewd .* off, up .*'
}
