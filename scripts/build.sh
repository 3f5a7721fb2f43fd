#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, configures and builds the Release preset. Targets may be named; all by default.
set -eu
cd "$(dirname "$0")/.."
scripts/install_packages.sh
[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
cmake --build build/release "$@"
