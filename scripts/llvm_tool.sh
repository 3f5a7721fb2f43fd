#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# llvm_tool.sh NAME: prints the command of version 14 of clang-format or clang-tidy, that of Debian 12. Other versions
# judge otherwise: without version 14 it ends with 77, which ctest shows as skipped.
set -eu
for tool in "$1-14" "$1"; do
  if "$tool" --version 2>/dev/null | grep -q 'version 14\.'; then
    echo "$tool"
    exit 0
  fi
done
echo "skipped: version 14 of $1 is not installed" >&2
exit 77
