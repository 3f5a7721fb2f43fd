#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_tidy.sh BUILD: clang-tidy with the checks of .clang-tidy on modules that need no LibTorch, with the flags of BUILD,
# and clang's check of annotated mutexes (core/system/mutex.h) on those that have them. 77 (skipped) without clang-tidy 14.
set -eu
cd "$(dirname "$0")/.."
tidy=$(scripts/llvm_tool.sh clang-tidy)
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# All that is compiled for libraries of modules: "command" lines, and the files, by themselves or in units.
grep -E -A1 '"command":.* -o lib/[a-z]+/CMakeFiles/stoker_module_' "$build/compile_commands.json" > "$folder/commands"
sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$folder/commands" | grep -v cmake_pch | while read -r file; do
  case $file in
    */Unity/*) sed -n 's/^#include "\(.*\)"$/\1/p' "$file" ;;
    *) echo "$file" ;;
  esac
done > "$folder/files"

# check MODULES [OPTION...]: all files of these modules as one, so that headers are parsed and searched once. clang cannot
# read headers that GCC precompiled: files show what they include themselves.
check() {
  modules=$1
  shift
  for module in $modules; do grep -E "/lib/$module/" "$folder/files" | sed 's/.*/#include "&"/'; done > "$folder/modules.cpp"
  # shellcheck disable=SC2046 # each flag is a word
  "$tidy" -quiet --config-file=.clang-tidy "$@" "$folder/modules.cpp" -- -Wno-unknown-warning-option \
    $(grep -ohE -e ' (-isystem |-I|-D|-std=|-W)[^ ]+' -e ' -fopenmp' "$folder/commands" | grep -v -e pch -e Werror -e STOKER_VERSION | sort -u)
}

check "core config statistics engine/run engine/files weights/file weights/names deploy/onnx observe"
check "data/loader data/pack engine/step" --checks='-*,bugprone-unused-raii,clang-diagnostic-thread-safety*' --extra-arg=-Wthread-safety
