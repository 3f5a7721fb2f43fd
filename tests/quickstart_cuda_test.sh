#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scripts/quickstart.sh --cuda ends with 69 and what to do, before anything is downloaded: without a card, without its
# driver. Cards of others and other devices of NVIDIA are no card.
set -eu
cd "$(dirname "$0")/.."
sys=$(mktemp -d)
trap 'rm -rf "$sys"' EXIT
add_device() {
  mkdir -p "$sys/bus/pci/devices/$1" "$sys/none"
  echo "$2" > "$sys/bus/pci/devices/$1/vendor"
  echo "$3" > "$sys/bus/pci/devices/$1/class"
}
expect() {
  code=0
  output=$(STOKER_SYS="$sys" STOKER_PROC="$sys/none" scripts/quickstart.sh --cuda 2>&1) || code=$?
  case "$code $output" in
    "69 quickstart: $1"*) ;;
    *) echo "expected 69 and: $1; got $code and: $output" >&2; exit 1 ;;
  esac
}
expect 'no NVIDIA card is in this machine; nothing was downloaded'
add_device 0000:00:02.0 0x8086 0x030000
add_device 0000:01:00.1 0x10de 0x040300  # the sound of a card
expect 'no NVIDIA card is in this machine; nothing was downloaded'
add_device 0000:01:00.0 0x10de 0x030200
expect 'the driver of the NVIDIA card is not loaded; nothing was downloaded'
