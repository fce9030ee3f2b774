# shellcheck shell=bash
# To be sourced by scenarios, in the machine. Waits are for an emulated CPU that
# others use, too; they end as soon as what is waited for is there.
# shellcheck source=tests/deploy/expect.sh
. ./expect.sh
spool=/var/lib/clew/spool

# await <seconds> <what> <command...>: until the command succeeds.
await() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [[ $SECONDS -ge $end ]]; then
      wrong "$what: not within its time"
      return 1
    fi
    sleep 0.3
  done
}

# configure_clewd <lines>: the whole of its configuration; taken over without a
# restart.
configure_clewd() {
  printf '%s\n' "$1" >/etc/clew/clewd.conf
  expect_status 0 clewd --check-config /etc/clew/clewd.conf
  expect_status 0 systemctl reload clewd
}

# restart_clewd <lines>: the same with a new clewd, so that nothing depends on
# how those before have left it.
restart_clewd() {
  printf '%s\n' "$1" >/etc/clew/clewd.conf
  expect_status 0 systemctl restart clewd
}

# saved <subject>: prints a bundle of that program or unit that is in ready/.
saved() {
  find "$spool/ready" -maxdepth 1 -name "$1~*.clew" | grep .
}

# service <name> <command> [<more lines of [Service]>]
service() {
  printf '[Service]\nExecStart=%s\n%s\n' "$2" "${3:-}" \
    >"/etc/systemd/system/$1.service"
  systemctl daemon-reload
}

# records: clewd does so.
records() {
  clew daemon status | grep -qE '^clewd .* recording, up '
}

# unit_is <unit> <state>: as clewd sees it.
unit_is() {
  clew daemon units | grep -F "$1" | grep -qw "$2"
}
