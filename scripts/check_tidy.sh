#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_tidy.sh BUILD [ROOM...]: clang-tidy with the checks of .clang-tidy on rooms as BUILD compiles them. By default
# those that need no LibTorch, and the loader, whose mutex is annotated. 77 (skipped) without clang-tidy 14.
set -eu
cd "$(dirname "$0")/.."
tidy=$(scripts/llvm_tool.sh clang-tidy)
build=$1
shift
[ $# -gt 0 ] || set -- core config engine/run engine/files data/loader
for room in "$@"; do
  awk -v room="CMakeFiles/stoker_$(echo "$room" | tr / _)[_.]" '/"command":/ { ours = $0 ~ room } /"file":/ && ours { print $2 }' \
    "$build/compile_commands.json"
done | tr -d '",' | sort -u | xargs -n 1 "$tidy" -quiet -p "$build" --extra-arg=-Wthread-safety \
  --extra-arg=-Wno-unknown-warning-option
