# shellcheck shell=bash
# What decodes strangers' bundles may do nothing else: a program in its place
# says from inside what was not refused. Goes on from 30_first_bundle.
scenario() {
  [[ -s /etc/clew/collector.d/server.key ]] ||
    skip "30_first_bundle made no collector"
  install -m 0755 sandbox_probe /usr/local/bin/
  install -o clew-collector -m 0600 /dev/null /var/lib/clew-collector/victim
  echo "something" >/var/lib/clew-collector/victim
  echo "clew = /usr/local/bin/sandbox_probe" >>/etc/clew/collector.conf
  expect_status 0 systemctl restart clew-collector
  send_a_bundle
  await "the probe's group is on the page" probed
  expect_line "what was not refused" \
    "$(curl --silent http://127.0.0.1:7791/ | grep -o 'probe:[a-z -]*')" \
    'probe: all refused'
  expect_same "the file in the store" \
    "$(stat -c %a /var/lib/clew-collector/victim):$(
      cat /var/lib/clew-collector/victim)" "600:something"
}

send_a_bundle() {
  service_until_told probe "exit 3"
  restart_clewd "source = sideband
sideband_only = yes
upload = yes
rate_failure = 100
[unit probe.service]"
  await "clewd records" records
  systemctl start probe
  end_service probe
}

probed() {
  curl --silent --max-time 60 http://127.0.0.1:7791/ | grep -F 'probe:'
}
