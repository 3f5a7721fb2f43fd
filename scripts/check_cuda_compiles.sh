#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles, without linking or running, the sources that a CUDA build uses, against the CUDA toolkit's headers and a
# LibTorch whose own build may be CPU only (Debian's). Needs no GPU.
#
#   scripts/check_cuda_compiles.sh [CUDA include folder [include folder of another LibTorch]]
# The other LibTorch: of a wheel, for example, torch/include; STANDARD=c++20 where it needs that.
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
torch=${2:-/usr/include}
others=
[ "$torch" = /usr/include ] || others="-isystem $torch"

skipped=device_cpu
if [ ! -f "$cuda/nccl.h" ]; then
  echo "not compiled, for there is no nccl.h in $cuda: lib/engine/group/c10d/nccl_peers.cpp" >&2
  skipped="device_cpu|nccl_peers"
fi
# Sources that use a device in any way: streams, locked pages, kernels that CPUs do not have.
for source in $(grep -rlE "is_cuda|cuda::|StreamGuard|record_stream|pinned_memory|non_blocking|_fused_|_amp_foreach|nccl[.]h" lib \
  --include=*.cpp | grep -vE "$skipped" | sort) tests/hooks/sync_errors.cpp; do
  # shellcheck disable=SC2086  # none or two words
  "${CXX:-g++}" -std="${STANDARD:-c++17}" -fsyntax-only -Wall -Wextra -Wno-unknown-pragmas -Ilib -I. -I"$stub" -DSTOKER_HOOKS_CUDA \
    -isystem "$cuda" -isystem "$torch/torch/csrc/api/include" $others -DSPDLOG_FMT_EXTERNAL -DSTOKER_VERSION=\"\" "$source"
  echo "compiles: $source"
done
