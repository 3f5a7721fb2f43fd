#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_tidy.sh BUILD: clang-tidy with the checks of .clang-tidy on rooms that need no LibTorch, with the flags of BUILD,
# and clang's check of annotated mutexes (core/system/mutex.h) on those that have them. 77 (skipped) without clang-tidy 14.
set -eu
cd "$(dirname "$0")/.."
tidy=$(scripts/llvm_tool.sh clang-tidy)
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# check ROOMS [OPTION...]: all files of these rooms as one, so that headers are parsed and searched once. clang cannot
# read headers that GCC precompiled: files show what they include themselves.
check() {
  rooms=$1
  shift
  for room in $rooms; do
    awk -v room="CMakeFiles/stoker_$(echo "$room" | tr / _)[_.]" \
      '/"command":/ { ours = $0 ~ room; command = $0 } /"file":/ && ours { print command; print "#include " $2 }' \
      "$build/compile_commands.json"
  done > "$folder/found"
  grep '^#include' "$folder/found" | grep -v cmake_pch | sort -u > "$folder/rooms.cpp"
  # shellcheck disable=SC2046 # each flag is a word
  "$tidy" -quiet --config-file=.clang-tidy "$@" "$folder/rooms.cpp" -- -Wno-unknown-warning-option \
    $(grep -oE -e ' (-isystem |-I|-D|-std=|-W)[^ ]+' -e ' -fopenmp' "$folder/found" | grep -v -e pch -e Werror | sort -u)
}

check "core config statistics engine/run engine/files weights/file weights/names deploy/onnx observe"
check "data/loader data/pack engine/step" --checks='-*,bugprone-unused-raii,clang-diagnostic-thread-safety*' --extra-arg=-Wthread-safety
