#!/bin/sh
# Sets up a collector and any number of hosts over ssh, as root on each:
#
#   fleet.sh COLLECTOR HOST...
#   fleet.sh collector.example.com a.example.com b.example.com c.example.com
#
# Beside it must be the three packages, made on the same Debian release. Safe to run again: a host
# keeps its certificate, the authority is made once and stays in ./authority,
# which is to be kept as a secret. To revoke a host, see the operator guide.
#
# FLEET_SSH: how a command is run on a host, default "ssh". It gets "root@HOST"
# and the command; files travel over its standard input.
set -eu
cd "$(dirname "$0")"
days=825

# on <host> <command>: standard input goes along.
on() {
  target=root@$1
  shift
  ${FLEET_SSH:-ssh} "$target" "$@"
}

# put <file> <host> <path> <mode>
put() {
  on "$2" "umask 077 && cat >'$3.new' && chmod $4 '$3.new' && \
mv '$3.new' '$3'" <"$1"
}

# make_key <file> <name>: key and request.
make_key() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -keyout "$1.key" -out "$1.csr" -subj "/CN=$2" 2>/dev/null
}

make_authority() {
  mkdir -p -m 0700 authority
  [ -e authority/ca.crt ] && return
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -keyout authority/ca.key -out authority/ca.crt -days 3650 \
    -subj "/CN=clew fleet" 2>/dev/null
}

# certify <name> <serverAuth or clientAuth>: authority/<name>.crt and .key
certify() {
  [ -e "authority/$1.crt" ] && return
  make_key "authority/$1" "$1"
  printf 'subjectAltName=DNS:%s\nextendedKeyUsage=%s\n' "$1" "$2" \
    >authority/extensions
  openssl x509 -req -in "authority/$1.csr" -CA authority/ca.crt \
    -CAkey authority/ca.key -CAcreateserial -days "$days" \
    -extfile authority/extensions -out "authority/$1.crt" 2>/dev/null
}

# install_packages <host> <package>...: local files, dependencies from apt.
install_packages() {
  host=$1
  shift
  list=
  for package in "$@"; do
    put "$(echo ./"$package"_*_amd64.deb)" "$host" "/tmp/$package.deb" 0644
    list="$list /tmp/$package.deb"
  done
  on "$host" "apt-get install -y -q $list && rm $list" </dev/null
}

set_up_collector() {
  echo "collector $1"
  install_packages "$1" clew clew-collector
  certify "$1" serverAuth
  secrets=/etc/clew/collector.d
  put authority/ca.crt "$1" $secrets/ca.crt 0640
  put "authority/$1.crt" "$1" $secrets/server.crt 0640
  put "authority/$1.key" "$1" $secrets/server.key 0640
  put collector.conf "$1" /etc/clew/collector.conf 0644
  on "$1" "chgrp clew-collector $secrets/* && \
systemctl enable clew-collector && \
if [ -d /run/systemd/system ]; then systemctl restart clew-collector; fi" \
    </dev/null
}

# set_up_host <host> <collector>
set_up_host() {
  echo "host $1"
  install_packages "$1" clew clewd
  certify "$1" clientAuth
  put authority/ca.crt "$1" /etc/clew/ca.crt 0644
  put "authority/$1.crt" "$1" /etc/clew/host.crt 0644
  put "authority/$1.key" "$1" /etc/clew/host.key 0600
  sed "s/@COLLECTOR@/$2/" client.conf.in >authority/client.conf
  put authority/client.conf "$1" /etc/clew/client.conf 0644
  put clewd.conf "$1" /etc/clew/clewd.conf 0644
  on "$1" "clewd --check-config /etc/clew/clewd.conf && \
if [ -d /run/systemd/system ]; then systemctl restart clewd; fi" </dev/null
}

if [ $# -lt 2 ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
collector=$1
shift
make_authority
set_up_collector "$collector"
for host in "$@"; do
  set_up_host "$host" "$collector"
done
