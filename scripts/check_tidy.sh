#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_tidy.sh BUILD [ROOM...]: clang-tidy with the checks of .clang-tidy on rooms as BUILD compiles them; core and
# config by default, which need no LibTorch and half a minute. 77 (skipped) without clang-tidy 14.
set -eu
cd "$(dirname "$0")/.."
tidy=$(scripts/llvm_tool.sh clang-tidy)
build=$1
shift
[ $# -gt 0 ] || set -- core config
for room in "$@"; do
  awk -v room=" -o lib/$room/" '/"command":/ { ours = index($0, room) } /"file":/ && ours { print $2 }' \
    "$build/compile_commands.json"
done | tr -d '",' | sort -u | xargs -n 1 "$tidy" -quiet -p "$build" --extra-arg=-Wno-unknown-warning-option
