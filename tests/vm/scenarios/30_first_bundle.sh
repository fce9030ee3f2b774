# shellcheck shell=bash
# The operator guide, from the packages to the first bundle: its commands are
# taken from the text of the guide itself and run as they stand, on a machine
# that has nothing of clew.
guide=/usr/share/doc/clew/operator-guide.md

scenario() {
  cp "$guide" guide.md
  expect_status 0 dpkg --purge clewd clew-collector clew
  walk || return 0
  expect_line "clew doctor" "$(clew doctor 2>&1)" \
    'ok +collector +.*"a\.example\.com".*'
  systemctl stop clew-core-pattern
}

# commands: the fenced blocks of the guide's section, a line "---" after each.
commands() {
  sed -n '/^## From nothing to the first bundle/,/^## The collector/p' guide.md |
    awk '/^```/ {if (inside) print "---"; inside = !inside; next} inside'
}

# last_block: what is to be tried until the bundle has come.
last_block() {
  commands | awk '/^---$/ {last = block; block = ""; next}
    {block = block $0 "\n"} END {printf "%s", last}'
}

# before_last: the blocks before it, as one script: they are one shell session.
before_last() {
  commands | awk '/^---$/ {printf "%s", before; before = block; block = ""; next}
    {block = block $0 "\n"}'
}

walk() {
  before_last >packages/walk
  last_block >look
  expect_line "the guide's first commands" "$(cat packages/walk)" 'apt install .*'
  expect_line "the guide's last commands" "$(cat look)" 'clew get .*'
  pace >packages/pace
  (cd packages && BASH_ENV=pace timeout "${limit:?}" bash -ex walk) >walked 2>&1 || {
    wrong "the guide's commands fail; they said:"
    tail -n 20 walked >&2
    return 1
  }
  await "the guide's last commands" looked || tail -n 20 seen >&2
  expect_line "clew list" "$(cat seen)" '.*sleep.*SIGSEGV.*|.*SIGSEGV.*sleep.*'
  expect_line "clew backtrace" "$(cat seen)" '.*nanosleep.*'
  await "the page shows it" on_page first.service
}

# pace: what is known to the shell of the guide's commands, since who types them
# is slower than a script: the service sleeps by the time it is killed.
pace() {
  cat <<'EOT'
unset BASH_ENV
first_sleeps() {
  grep -qF "(sleep) S " \
    "/proc/$(command systemctl show --value -p MainPID first)/stat"
}
systemctl() {
  if [[ "$1" == kill ]]; then
    until first_sleeps; do sleep 0.2; done
  fi
  command systemctl "$@"
}
EOT
}

looked() {
  rm -rf first.clew
  bash -ex look >seen 2>&1
}

on_page() {
  curl --silent --max-time 60 "http://127.0.0.1:7791/bundles?q=$1" | grep -F "$1"
}
