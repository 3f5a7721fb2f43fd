#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The quickstart on an NVIDIA card: checks card and driver before anything is downloaded, builds against a LibTorch with
# CUDA into build/cuda, and trains on Fashion-MNIST. LibTorch is that of PyTorch where python3 has one with CUDA, else
# Debian 13's of contrib. Started by scripts/quickstart.sh --cuda. STOKER_SYS and STOKER_PROC stand for /sys and /proc.
set -eu
cd "$(dirname "$0")/.."
sys=${STOKER_SYS:-/sys} proc=${STOKER_PROC:-/proc}
refuse() {
  echo "quickstart: $1" >&2
  shift
  for line; do echo "quickstart: $line" >&2; done
  exit 69
}

has_card() {
  [ -e /dev/dxg ] && [ "$sys" = /sys ] && return 0  # Windows' card, in its Linux
  for device in "$sys"/bus/pci/devices/*; do
    [ "$(cat "$device/vendor" 2>/dev/null)" = 0x10de ] || continue
    case $(cat "$device/class" 2>/dev/null) in 0x03*) return 0 ;; esac  # a display controller, of whatever kind
  done
  return 1
}
has_card || refuse "no NVIDIA card is in this machine; nothing was downloaded" \
  "without --cuda the quickstart builds for the CPU"
[ -e "$proc/driver/nvidia/version" ] || [ -e /dev/dxg ] || refuse "the driver of the NVIDIA card is not loaded; nothing was downloaded" \
  "Debian has it as nvidia-driver in non-free: apt install nvidia-driver, restart, and start this again"

. /etc/os-release
# shellcheck disable=SC2016  # Python's words
of_pytorch=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path if torch.version.cuda else "")' 2>/dev/null || true)
if [ -n "$of_pytorch" ]; then
  command -v nvcc >/dev/null || [ -d "${CUDA_HOME:-/usr/local/cuda}" ] || refuse "PyTorch has LibTorch with CUDA, but the CUDA toolkit is missing" \
    "install the toolkit of that version (python3 -c 'import torch; print(torch.version.cuda)'), or set CUDA_HOME"
  echo "quickstart: LibTorch of PyTorch at $of_pytorch; installs the other packages that are missing"
  STOKER_WITHOUT='libtorch-dev libgloo-dev' scripts/install_packages.sh
  cmake -G Ninja -S . -B build/cuda -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$of_pytorch" >/dev/null
else
  apt-cache policy libtorch-cuda-dev 2>/dev/null | grep -q 'Candidate: [0-9]' || refuse "there is no LibTorch with CUDA for ${PRETTY_NAME:-this system} here" \
    "Debian 13 has it in contrib, and CUDA in non-free: add 'contrib non-free' to the lines of /etc/apt/sources.list or to" \
    "Components in /etc/apt/sources.list.d/debian.sources, run apt update, and start this again" \
    "elsewhere install PyTorch with CUDA (pip install torch) and the CUDA toolkit of the same version: its LibTorch is then used"
  echo "quickstart: installs LibTorch for CUDA from contrib and CUDA from non-free: about 2.5 GB to download"
  STOKER_WITHOUT='libtorch-dev libgloo-dev' STOKER_WITH='libtorch-cuda-dev libgloo-cuda-dev libnccl-dev nvidia-cuda-toolkit' \
    scripts/install_packages.sh
  cmake -G Ninja -S . -B build/cuda -DCMAKE_BUILD_TYPE=Release >/dev/null
fi
cmake --build build/cuda --target train
echo
build/cuda/apps/train --device cuda "$@"
