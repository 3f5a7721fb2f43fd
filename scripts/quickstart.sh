#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 or 13 to a trained model: installs packages, builds, trains on Fashion-MNIST.
# Safe to run again: what is installed, built or trained is not done twice.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh --target train
echo
build/release/apps/train "$@"
