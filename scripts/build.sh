#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, configures and builds the Release preset. Targets may be named; all by default. A warning is
# an error here: these are compilers that we know, and what is built for users is not built again for tests.
set -eu
cd "$(dirname "$0")/.."
scripts/install_packages.sh
[ -f build/release/build.ninja ] || cmake --preset release -DSTOKER_WERROR=ON >/dev/null
cmake --build build/release "$@"
