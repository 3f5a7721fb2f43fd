#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles, without linking or running, the sources that a CUDA build uses, against the CUDA toolkit's headers and a
# LibTorch whose own build may be CPU only (Debian's). Needs no GPU.
#
#   scripts/check_cuda_compiles.sh [CUDA include folder]
set -eu
cd "$(dirname "$0")/.."
cuda=${1:-/usr/local/cuda/include}
[ -f "$cuda/cuda_runtime_api.h" ] || {
  echo "check_cuda_compiles: no cuda_runtime_api.h in $cuda; name the toolkit's include folder" >&2
  exit 66
}
stub=$(mktemp -d)
trap 'rm -rf "$stub"' EXIT
# LibTorch generates this header when it is built for CUDA; a CPU package lacks it.
mkdir -p "$stub/c10/cuda/impl"
printf '#pragma once\n#define C10_CUDA_BUILD_SHARED_LIBS\n' > "$stub/c10/cuda/impl/cuda_cmake_macros.h"
api=/usr/include/torch/csrc/api/include

for source in lib/engine/device/device_cuda.cpp lib/data/feed/copy_ahead_feed.cpp lib/optim/torch_kernels.cpp; do
  "${CXX:-g++}" -std=c++17 -fsyntax-only -Wall -Wextra -Wno-unknown-pragmas -Ilib -I"$stub" \
    -isystem "$cuda" -isystem "$api" -DSPDLOG_FMT_EXTERNAL "$source"
  echo "compiles: $source"
done
