#!/usr/bin/env bash
# Goal: from a service that crashes to a replay elsewhere, through the installed
# packages, under systemd with the units as they are; without root or overlayfs,
# supervised directly.
# Method: tools/demo-service with the packages that the other tests look at.
#
#   demo_test.sh BUILD_FOLDER PACKAGES
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/deploy/expect.sh
. "$here/expect.sh"
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
TMPDIR=$logs CLEW_BUILD_DIR=$1 CLEW_DEMO_PACKAGES=$2 CLEW_DEMO_SECONDS=600 \
  CLEW_DEMO_SCREENSHOT=no "$here/../../tools/demo-service" --built ||
  wrong "tools/demo-service --built: exit status $?"
expect_same "what the demo left beside its logs" \
  "$(find "$logs" -mindepth 1 -maxdepth 1 ! -name 'clew-demo-service.*')" ""
finish
