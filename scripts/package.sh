#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes build/release/stoker_VERSION_ARCH.deb for the Debian that it runs on (12 or 13), which
# `apt install ./build/release/stoker_*.deb` installs. Needs dpkg-dev for the list of libraries.
set -eu
cd "$(dirname "$0")/.."
command -v dpkg-shlibdeps >/dev/null || { echo "package: install dpkg-dev first" >&2; exit 1; }
scripts/build.sh --target train stoker_documents
cd build/release
cpack -G DEB
