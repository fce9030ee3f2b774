# shellcheck shell=bash
# The operator guide, from an installed package to the first bundle on the page
# of a collector, on one machine: the commands for certificates are those of the
# installed guide, the rest is what it says in words.
guide=/usr/share/doc/clew/operator-guide.md

scenario() {
  make_identities || return 0
  start_collector || return 0
  connect_host
  fail_a_unit
}

# certificate_commands: the guide's block with openssl.
certificate_commands() {
  sed -n '/^openssl req -x509/,/^```/p' "$guide" | sed '/^```/d'
}

make_identities() {
  local commands
  commands=$(certificate_commands)
  expect_line "commands of the guide" "$commands" 'openssl x509 -req .*'
  mkdir -p /root/ca
  cd /root/ca || return 1
  expect_status 0 bash -ec "$commands"
  # "the same with serverAuth for the collector"
  expect_status 0 bash -ec "$(sed '/-x509/,/once$/d
    s/clientAuth/serverAuth/; s/a\.example\.com/localhost/g
    s/host\.\(key\|csr\|crt\)/server.\1/g' <<<"$commands")"
  [[ -s server.crt && -s host.crt ]] || wrong "no certificates"
}

start_collector() {
  install -m 0640 -g clew-collector /root/ca/{ca.crt,server.crt,server.key} \
    /etc/clew/collector.d/
  cat >/etc/clew/collector.conf <<EOT
listen = 127.0.0.1:7790
certificate = /etc/clew/collector.d/server.crt
key = /etc/clew/collector.d/server.key
client_ca = /etc/clew/collector.d/ca.crt
EOT
  expect_status 0 systemctl enable --now clew-collector
  await 20 "the collector answers" curl --fail --max-time 5 \
    http://127.0.0.1:7791/healthz
}

connect_host() {
  install -m 0600 /root/ca/{ca.crt,host.crt,host.key} /etc/clew/
  cat >/etc/clew/client.conf <<EOT
collector = localhost:7790
ca = /etc/clew/ca.crt
certificate = /etc/clew/host.crt
key = /etc/clew/host.key
EOT
  expect_line "clew list" "$(clew list 2>&1)" '0 of 0 bundles'
  expect_line "clew doctor" "$(clew doctor 2>&1)" \
    'ok +collector +.*"a\.example\.com".*'
}

fail_a_unit() {
  service first "/bin/sh -c 'sleep 4; exit 3'"
  restart_clewd "source = sideband
sideband_only = yes
upload = yes
rate_failure = 100
[unit first.service]"
  await 20 "clewd records" records
  systemctl start first
  await 90 "the bundle is at the collector" listed first.service
  await 30 "the page shows it" on_page first.service
}

listed() {
  clew list | grep -F "$1"
}

on_page() {
  curl --silent --max-time 5 "http://127.0.0.1:7791/bundles?q=$1" | grep -F "$1"
}
