# shellcheck shell=bash
# To be sourced by scenarios, in the machine.
# shellcheck source=tests/deploy/expect.sh
. ./expect.sh
spool=/var/lib/clew/spool
# What must happen is waited for so many seconds. Nothing that works needs them,
# on an emulated CPU that others use, too.
limit=600

# await <what> <command...>: until the command succeeds.
await() {
  local end=$((SECONDS + limit)) what=$1
  shift
  until "$@" >/dev/null 2>&1; do
    if [[ $SECONDS -ge $end ]]; then
      wrong "$what: not within $limit s"
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

# service_until_told <name> <shell command>: that ends by the command, when it is
# told to (end_service).
service_until_told() {
  rm -f "/run/$1.told"
  mkfifo -m 0644 "/run/$1.told"
  service "$1" "/bin/sh -c 'read line </run/$1.told; $2'"
}

# end_service <name>: what is to come of its end is what clewd makes of it, so it
# ends once clewd has seen it run.
end_service() {
  await "clewd sees that $1 runs" unit_is "$1.service" active
  # shellcheck disable=SC2016  # the inner shell expands it
  timeout "$limit" sh -c 'echo >"/run/$1.told"' sh "$1" ||
    wrong "$1.service does not wait to be told"
}

# sleeps <pid> <program>: it is that program and waits (proc(5), /proc/PID/stat:
# state S), so that exec and the loader are behind it.
sleeps() {
  grep -qF "($2) S " "/proc/$1/stat"
}

# die_asleep <program> <arguments...>: dies by SIGSEGV, asleep.
die_asleep() {
  local pid
  "$@" &
  pid=$!
  await "$1 sleeps" sleeps "$pid" "$1"
  kill -SEGV "$pid"
  wait "$pid" 2>/dev/null
  await "the core dump's handler has ended" no_handler
}

no_handler() {
  ! pgrep -f '^/usr/lib/clew/clew-core-handler '
}

# crash_until <subject> <check> <command...>: the command, which crashes, until
# the check takes its bundle. A dying process waits for clewd's answer two
# seconds, and half of one for the look at its files: an emulated machine that
# others use may be slower, and then the bundle has less, as it should.
crash_until() {
  local subject=$1 check=$2 end=$((SECONDS + limit)) before
  shift 2
  while :; do
    before=$(saved "$subject" | sort)
    "$@"
    await "a crash of $subject is saved" another_saved || return 1
    if "$check" "$(another_saved)"; then
      return
    fi
    if [[ $SECONDS -ge $end ]]; then
      wrong "no bundle of $subject is as $check wants it"
      return 1
    fi
  done
}

# another_saved: the bundle of `subject` that is not in `before`.
another_saved() {
  comm -13 <(echo "$before") <(saved "$subject" | sort) | grep .
}
