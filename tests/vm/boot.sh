#!/bin/bash
# The machine's first process once the root is there: what Debian's initrd has
# done by then, and which units there are; becomes systemd.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
hostname vm
ip link set lo up

mount -t tmpfs -o mode=0755 tmpfs /var/lib/dpkg
tar -C / -xf /run/shared/dpkg.tar

# The host's services are none of the test's: targets of its own, and the few
# units of Debian's that ours need.
units=/run/units
mkdir "$units" /run/units.etc
for target in sysinit basic sockets shutdown umount timers paths local-fs \
  network-online multi-user exit final; do
  printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' "$target" \
    >"$units/$target.target"
done
for unit in systemd-journald.service systemd-journald.socket \
  systemd-journald-dev-log.socket dbus.service dbus.socket; do
  cp "/usr/lib/systemd/system/$unit" "$units/"
done
cat >"$units/test.target" <<'EOT'
[Unit]
Description=the machine of a test
Wants=systemd-journald.service dbus.service scenarios.service
EOT
cat >"$units/scenarios.service" <<'EOT'
[Unit]
Description=the scenarios
DefaultDependencies=no
After=dbus.service systemd-journald.service
[Service]
Type=oneshot
ExecStart=/bin/bash /run/shared/guest.sh
StandardOutput=append:/run/shared/output
StandardError=append:/run/shared/output
TimeoutStartSec=infinity
ExecStopPost=/bin/sh -c 'sync; echo o >/proc/sysrq-trigger'
EOT
# Nor are its generators, which run at each reload.
mkdir /run/no-generators
mount --bind /run/no-generators /usr/lib/systemd/system-generators
mount --bind "$units" /usr/lib/systemd/system
mount --bind /run/units.etc /etc/systemd/system
exec env -i "PATH=$PATH" /lib/systemd/systemd --system --unit=test.target \
  --log-target=journal --show-status=no
