#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Reports what a release build lacks of its hardening: check_hardened.sh PROGRAM_OR_LIBRARY...
status=0
for file; do
  has() { # NAME PATTERN READELF_OPTION
    readelf -W "$3" "$file" | grep -q -e "$2" && return
    echo "$file lacks $1" >&2
    status=1
  }
  has "position independence" "DYN" -h
  has "relro" "GNU_RELRO" -l
  has "immediate binding (-z now)" "BIND_NOW\|Flags:.*NOW" -d
  has "stack canaries" "__stack_chk_fail" -s
  has "checked calls (_FORTIFY_SOURCE)" "_chk@" -s
done
exit $status
