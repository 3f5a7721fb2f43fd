#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes build/release/stoker_VERSION_ARCH.deb, libstoker0_* and libstoker-dev_* for the Debian that it runs on (12 or 13);
# `apt install ./build/release/*.deb` installs them. Needs dpkg-dev and file for the list of libraries.
set -eu
cd "$(dirname "$0")/.."
for tool in dpkg-shlibdeps file; do
  command -v "$tool" >/dev/null || { echo "package: install dpkg-dev and file first" >&2; exit 1; }
done
scripts/build.sh --target stoker_programs
cd build/release
cpack -G DEB
