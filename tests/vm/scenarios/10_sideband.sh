# shellcheck shell=bash
# The packaged unit may open perf events with Debian's perf_event_paranoid, and
# `clew doctor` says so.
scenario() {
  configure_clewd "source = sideband
sideband_only = yes
rate_failure = 100"
  await "clewd records" records
  expect_line "clew daemon status" "$(clew daemon status)" 'clewd .* recording, up .*'
  expect_line "clew doctor" "$(clew doctor 2>&1)" 'ok +unit_sideband .*'
}
