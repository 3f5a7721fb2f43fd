#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_tidy.sh BUILD: clang-tidy with the checks of .clang-tidy on rooms that need no LibTorch, as BUILD compiles them,
# and clang's check of annotated mutexes (core/system/mutex.h) on the loader. 77 (skipped) without clang-tidy 14.
set -eu
cd "$(dirname "$0")/.."
tidy=$(scripts/llvm_tool.sh clang-tidy)
build=$1

# clang cannot read headers that GCC precompiled; it parses what files include themselves.
commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT
sed -E 's/ -Winvalid-pch//; s/ -include [^ ]*cmake_pch\.hxx//' "$build/compile_commands.json" > "$commands/compile_commands.json"

# files_of ROOM...: what BUILD compiles of them, one per line.
files_of() {
  for room in "$@"; do
    awk -v room="CMakeFiles/stoker_$(echo "$room" | tr / _)[_.]" \
      '/"command":/ { ours = $0 ~ room } /"file":/ && ours { print $2 }' "$commands/compile_commands.json"
  done | tr -d '",' | sort -u
}

files_of core config engine/run engine/files |
  xargs -n 1 "$tidy" -quiet -p "$commands" --extra-arg=-Wno-unknown-warning-option
files_of data/loader |
  xargs -n 1 "$tidy" -quiet -p "$commands" --checks='-*,bugprone-unused-raii,clang-diagnostic-thread-safety*' --extra-arg=-Wthread-safety \
    --extra-arg=-Wno-unknown-warning-option
