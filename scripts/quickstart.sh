#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 or 13 to a trained model: installs packages, builds, trains on Fashion-MNIST.
# Safe to run again: what is installed, built or trained is not done twice. With --cuda: on an NVIDIA card.
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" = --cuda ]; then
  shift
  exec scripts/quickstart_cuda.sh "$@"
fi
echo "quickstart: installs packages that are missing (all of them: 420 MB to download and 1.8 GB on disk on Debian 12, 527 MB"
echo "quickstart: and 2.2 GB on Debian 13), builds train in some minutes, and trains on Fashion-MNIST in one or two."
scripts/build.sh --target train
echo
[ $# -gt 0 ] || set -- --preset fashion_mnist
build/release/apps/train "$@"
