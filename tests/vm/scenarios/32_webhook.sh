# shellcheck shell=bash
# Notifications leave the packaged unit, with all its restrictions: what the
# guide says, tried against a receiver in the machine. Goes on from 31_sandbox.
conf=/etc/clew/collector.conf
secret=/etc/clew/collector.d/webhook

scenario() {
  [[ -s /etc/clew/collector.d/server.key ]] ||
    skip "30_first_bundle made no collector"
  install -o root -g clew-collector -m 640 /dev/null "$secret"
  echo 0123456789abcdef >"$secret"
  sed -i '/^clew = .*sandbox_probe/d' "$conf"
  printf 'webhook = http://127.0.0.1:7799/clew\nwebhook_secret = %s\n' \
    "$secret" >>"$conf"
  receiver >received 2>&1 &
  await "the receiver listens" curl --silent http://127.0.0.1:7799/
  expect_status 0 systemctl restart clew-collector
  expect_status 0 setpriv --reuid clew-collector --regid clew-collector \
    --clear-groups clew-collector test-webhook
  await "the test notification" grep -x 'signed test /clew' received
  crash_of_a_new_kind
  await "a new group is told" grep -x 'signed new_group /clew' received ||
    journalctl --no-pager -o cat -u clew-collector | tail -n 20 >&2
  kill %1
}

crash_of_a_new_kind() {
  service_until_told hooked "kill -FPE \$\$\$\$"
  restart_clewd "source = sideband
sideband_only = yes
upload = yes
rate_failure = 100
[unit hooked.service]"
  await "clewd records" records
  systemctl start hooked
  end_service hooked
}

# receiver: prints a line for each notification.
receiver() {
  python3 -u - "$secret" <<'EOT'
import hashlib, hmac, http.server, json, sys

secret = open(sys.argv[1], "rb").read().strip()

class Receiver(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204)
        self.end_headers()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        time_s = self.headers["Clew-Timestamp"].encode()
        wanted = "v1=" + hmac.new(secret, time_s + b"." + body,
                                  hashlib.sha256).hexdigest()
        right = hmac.compare_digest(wanted, self.headers["Clew-Signature"])
        print("signed" if right else "FORGED", json.loads(body)["event"],
              self.path)
        self.do_GET()

    def log_message(self, *_):
        pass

http.server.HTTPServer(("127.0.0.1", 7799), Receiver).serve_forever()
EOT
}
