#!/bin/bash
# What scripts/check-deb runs inside the machine that it has booted: install, serve, upgrade, remove and purge
# /older.deb and /newer.deb. The last line of the log is `passed`, or the line that failed is above it.
set -euo pipefail
trap 'echo "failed at line $LINENO: $BASH_COMMAND"' ERR
export DEBIAN_FRONTEND=noninteractive
accounts=/etc/holdfast/accounts.env
settings=/etc/holdfast/holdfast.toml
data=/var/lib/holdfast
drop_in=/etc/systemd/system/holdfast.service.d/port-445.conf

# Whether the admin port answers as it should, for ten seconds at most.
ready() {
    for _ in $(seq 50); do
        if [ "$(bash -c 'exec 3<>/dev/tcp/127.0.0.1/10099; printf "GET /readyz HTTP/1.0\r\n\r\n" >&3; tail -n 1 <&3' 2>/dev/null)" = ready ]; then
            return
        fi
        sleep 0.2
    done
    journalctl --no-pager --unit holdfast | tail -n 20
    false
}
listens() { bash -c "exec 3<>/dev/tcp/127.0.0.1/$1" 2>/dev/null; }
says() { systemctl show --value --property "$1" holdfast; }

echo "== installation: the service runs, with an account and a key of its own"
dpkg -i /older.deb
ready
[ "$(stat -c '%U %a' $accounts)" = "root 600" ]
[ "$(stat -c '%U %a' $data)" = "holdfast 700" ]
grep -qE '^HOLDFAST_ACCOUNTS=main:[A-Za-z0-9+/]{86}==$' $accounts
systemctl is-enabled --quiet holdfast
pid=$(says MainPID)
grep -q '^CapEff:.*0000000000000000$' "/proc/$pid/status"
grep -q '^Seccomp:.*2$' "/proc/$pid/status"
if listens 445; then false; fi

echo "== the drop-in gives it port 445, and no other capability"
install -D -m 644 /usr/share/doc/holdfast/examples/port-445.conf $drop_in
systemctl daemon-reload
systemctl restart holdfast
ready
listens 445
grep -q '^CapEff:.*0000000000000400$' "/proc/$(says MainPID)/status"

echo "== a setting that cannot be used ends it, and it is not tried again; a kill is"
echo 'nonsense = 1' >>$settings
systemctl restart holdfast || true
sleep 3
[ "$(says ExecMainStatus)" = 2 ]
[ "$(says ActiveState)" = failed ]
sed -i '/^nonsense/d' $settings
systemctl restart holdfast
ready
kill -KILL "$(says MainPID)"
sleep 3
ready

echo "== an upgrade keeps data, accounts and changed settings, and starts the new version"
echo '# mine' >>$settings
before=$(sha256sum $accounts $data/FORMAT)
older=$(says MainPID)
dpkg -i /newer.deb
ready
[ "$(says MainPID)" != "$older" ]
[ "$(sha256sum $accounts $data/FORMAT)" = "$before" ]
tail -n 1 $settings | grep -q '^# mine$'

echo "== removal keeps everything but the program"
dpkg -r holdfast
[ "$(says ActiveState)" != active ]
[ "$(sha256sum $accounts $data/FORMAT)" = "$before" ]
[ -e $settings ]

echo "== a purge without an answer keeps the data"
dpkg -P holdfast
[ ! -e /etc/holdfast ]
[ ! -e $drop_in ]
[ -e $data/FORMAT ]
id holdfast >/dev/null

echo "== another installation opens it; a purge with the answer yes removes it, and the user"
dpkg -i /newer.deb
ready
echo "holdfast holdfast/remove-data boolean true" | debconf-set-selections
dpkg -P holdfast
[ ! -e $data ]
[ ! -e /etc/holdfast ]
if id holdfast 2>/dev/null; then false; fi
trap - ERR
echo passed
