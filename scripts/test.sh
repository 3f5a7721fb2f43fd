#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything and runs every test.
set -eu
cd "$(dirname "$0")/.."
scripts/install_packages.sh test
scripts/build.sh
# Four more than there are CPUs: many tests wait for a time to pass or for the disk; on two CPUs that is a fifth less time
# than with two more. Threads that wait for others sleep, for many programs run side by side.
OMP_WAIT_POLICY=passive ctest --test-dir build/release --output-on-failure -j "$(($(nproc) + 4))" "$@"
