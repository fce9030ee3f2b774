# shellcheck shell=bash
# Of a program in another root, as in a container, the bundle has that root's
# file and not the host's of the same name.
jail=/var/tmp/jail

scenario() {
  make_jail
  cp /usr/bin/true /usr/bin/jailed
  restart_clewd "rate_failure = 100"
  expect_status 0 systemctl start clew-core-pattern
  service jailed "/bin/jailed 600" "Type=exec
RootDirectory=$jail"
  crash_until jailed has_images crash || return 0
  systemctl stop clew-core-pattern
  local bundle
  bundle=$(saved jailed | sort | tail -n 1)
  expect_status 0 cmp "$jail/bin/jailed" "$(image "$bundle" jailed)"
  expect_status 0 cmp "$jail/lib/x86_64-linux-gnu/libc.so.6" \
    "$(image "$bundle" libc.so.6)"
  expect_line "clew backtrace" "$(clew backtrace "$bundle" 2>&1)" '.*nanosleep.*'
  rm -r "$jail" /usr/bin/jailed
}

crash() {
  systemctl reset-failed jailed 2>/dev/null
  expect_status 0 systemctl start jailed
  await "jailed sleeps" jailed_sleeps
  systemctl kill --signal=SEGV jailed
}

jailed_sleeps() {
  sleeps "$(systemctl show --value -p MainPID jailed)" jailed
}

has_images() {
  [[ -n "$(image "$1" jailed)" && -n "$(image "$1" libc.so.6)" ]]
}

# make_jail: /bin/jailed is sleep, with the libraries that it needs.
make_jail() {
  local libraries
  mkdir -p "$jail/bin"
  cp /usr/bin/sleep "$jail/bin/jailed"
  mapfile -t libraries < <(ldd /usr/bin/sleep | grep -o '/[^ ]*')
  cp --parents --dereference "${libraries[@]}" "$jail"
}

# image <bundle> <name>
image() {
  find "$1/images" -name "$2" | head -n 1
}
