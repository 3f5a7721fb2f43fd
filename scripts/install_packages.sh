#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of scripts/packages.txt that are missing; with the word test also those of tests. Debian 12 and
# 13; as root or through sudo. STOKER_WITHOUT names packages that others stand in for, STOKER_WITH those others.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

. /etc/os-release
case "${ID:-}:${VERSION_ID:-}" in
  debian:12) release=debian12 ;;
  debian:13) release=debian13 ;;
  *)
    echo "install_packages: this is ${PRETTY_NAME:-an unknown system}; only Debian 12 and 13 are known here." >&2
    echo "install_packages: install what scripts/packages.txt lists yourself, then build with cmake --preset release." >&2
    exit 1 ;;
esac

missing=
want() {
  status=$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null || true)
  [ "$status" = 'install ok installed' ] || missing="$missing $1"
}
while read -r package words; do
  case $package in ''|'#'*) continue ;; esac
  wanted=yes
  for word in $words; do
    case $word in "$release"|"${1:-}") ;; *) wanted= ;; esac
  done
  case " ${STOKER_WITHOUT:-} " in *" $package "*) wanted= ;; esac
  [ -n "$wanted" ] || continue
  want "$package"
done < "$here/packages.txt"
for package in ${STOKER_WITH:-}; do want "$package"; done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then as_root=
elif command -v sudo >/dev/null 2>&1; then as_root=sudo
else
  echo "install_packages: these packages are missing:$missing" >&2
  echo "install_packages: run this as root, or install sudo." >&2
  exit 1
fi
echo "installing:$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086  # a list of words
install() { $as_root env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive apt-get install --no-install-recommends "$@" $missing; }
install --assume-no 2>/dev/null | grep -E '^(Need to get|After this operation)' || true  # "420 MB of archives"
install -y
