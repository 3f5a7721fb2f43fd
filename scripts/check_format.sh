#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every C++ file is as clang-format writes it. With --fix it is made so. 77 (skipped) without clang-format 14.
set -eu
cd "$(dirname "$0")/.."
format=$(scripts/llvm_tool.sh clang-format)
case ${1:-} in
  --fix) flags=-i ;;
  *) flags='--dry-run -Werror' ;;
esac
# shellcheck disable=SC2086  # a list of flags
find lib apps tests -name '*.cpp' -o -name '*.h' | sort | xargs -n 64 "$format" $flags
