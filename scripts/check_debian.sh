#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_debian.sh RELEASE [CTEST ARGUMENTS]: runs scripts/test.sh on HEAD in a bare Debian, bookworm (12) or trixie (13), which
# debootstrap makes, and ends with its exit code. The Debian, with packages, build folder and ccache, stays for the next
# call: in STOKER_DEBIAN_ROOT, by default a folder of /var/tmp (or TMPDIR). All output goes to a file; its name
# and its end are printed. Root only. CMAKE_BUILD_PARALLEL_LEVEL is handed on, as are proxies.
set -eu

die() { echo "check_debian: $*" >&2; exit 64; }

# In a namespace of its own, so that mounts and processes are gone when this is, however it ends.
if [ "${1:-}" = --inside ]; then
  root=$2 log=$3
  shift 3
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount -o remount,bind,ro "$root/sys"
  mount -t tmpfs -o mode=755 dev "$root/dev"
  for node in null zero full random urandom tty; do
    : > "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
  done
  mkdir "$root/dev/pts" "$root/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
  mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  for number in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${number%:*}" "$root/dev/${number#*:}"; done
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  code=0
  env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${http_proxy+"http_proxy=$http_proxy"} ${https_proxy+"https_proxy=$https_proxy"} \
    ${CMAKE_BUILD_PARALLEL_LEVEL+"CMAKE_BUILD_PARALLEL_LEVEL=$CMAKE_BUILD_PARALLEL_LEVEL"} \
    chroot "$root" /stoker/scripts/test.sh "$@" > "$log" 2>&1 < /dev/null || code=$?
  exit "$code"
fi

[ $# -gt 0 ] || die "which release? check_debian.sh bookworm|trixie [ctest arguments]"
release=$1
shift
case $release in bookworm|trixie) ;; *) die "'$release' is not known here: bookworm or trixie" ;; esac
[ "$(id -u)" = 0 ] || die "root only: it makes a Debian and mounts /proc in it"
for tool in debootstrap unshare flock git; do command -v "$tool" > /dev/null || die "install $tool first"; done
here=$(cd "$(dirname "$0")/.." && pwd)
root=${STOKER_DEBIAN_ROOT:-${TMPDIR:-/var/tmp}/stoker-debian-$release}
case $root in /?*) ;; *) die "STOKER_DEBIAN_ROOT: '$root' is not an absolute path" ;; esac
log=$root.log

exec 9> "$root.lock"
flock -n 9 || die "another call is at work in $root"
if [ ! -e "$root" ]; then
  echo "check_debian: debootstrap makes $root"
  rm -rf --one-file-system "$root.new"
  debootstrap --variant=minbase "$release" "$root.new" "${STOKER_DEBIAN_MIRROR:-http://deb.debian.org/debian}" > "$log" 2>&1 ||
    { tail -n 5 "$log" >&2; die "debootstrap failed, see $log"; }
  mv "$root.new" "$root"
fi
found=$(sed -n 's/^VERSION_CODENAME=//p' "$root/etc/os-release" 2> /dev/null) || true
[ "$found" = "$release" ] || die "$root is '${found:-nothing known}', not $release"

# Files that did not change keep their times, so that no more is built than what they concern.
new=$root/stoker.new
rm -rf "$new"
mkdir -p "$new" "$root/stoker"
git -C "$here" archive HEAD > "$new.tar"
tar -x -f "$new.tar" -C "$new"
rm "$new.tar"
(cd "$root/stoker" && find . -path ./build -prune -o ! -type d -print) | while IFS= read -r file; do
  [ -e "$new/$file" ] || [ -h "$new/$file" ] || rm "$root/stoker/$file"
done
(cd "$new" && find . ! -type d) | while IFS= read -r file; do
  if [ ! -h "$new/$file" ]; then cmp -s "$new/$file" "$root/stoker/$file" && continue; fi
  mkdir -p "$root/stoker/${file%/*}"
  cp -d -T --remove-destination --preserve=mode "$new/$file" "$root/stoker/$file"
done
rm -rf "$new"

echo "check_debian: $(git -C "$here" rev-parse --short HEAD) on Debian $(cat "$root/etc/debian_version"), output in $log"
unshare --mount --pid --fork --kill-child "$0" --inside "$root" "$log" "$@" &
trap 'kill -KILL $!; exit 130' INT TERM HUP
code=0
wait $! || code=$?
if grep -q 'tests passed' "$log"; then sed -n '/tests passed/,$p' "$log"; else tail -n 20 "$log"; fi
echo "check_debian: exit code $code, all output in $log"
exit "$code"
