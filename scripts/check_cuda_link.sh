#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and links the whole program against a LibTorch for CUDA, in a Debian 13 of its own, and starts it there: as root,
# with debootstrap, 15 GB of disk and a network (2.5 GB of packages from contrib and non-free). Needs no GPU.
#
#   scripts/check_cuda_link.sh FOLDER [JOBS]
# FOLDER is made, and kept: a second run builds only what changed. Remove it with rm -rf --one-file-system FOLDER.
# Debian's package of cuDNN fetches cuDNN 9 from NVIDIA. Where that cannot be reached, CUDNN=/usr/local/cuda, for example, names a
# folder whose lib and include have it.
set -eu
tree=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 1 ] && [ "$(id -u)" = 0 ] || {
  echo "usage, as root: $0 FOLDER [JOBS]" >&2
  exit 64
}
mkdir -p "$1"
root=$(cd "$1" && pwd)
jobs=${2:-$(nproc)}
case $jobs in *[!0-9]*|'') echo "check_cuda_link: JOBS is a number" >&2; exit 64 ;; esac

# inside COMMAND: by sh in the Debian of its own, with mounts that go away with it. Packages and libraries of NVIDIA make
# device files: in a /dev of its own.
inside() {
  unshare --mount --pid --fork --mount-proc="$root/proc" sh -ec '
    mount -t tmpfs none "$1/dev"
    for device in null zero full random urandom tty; do
      touch "$1/dev/$device"
      mount --bind "/dev/$device" "$1/dev/$device"
    done
    mkdir "$1/dev/shm"
    exec chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive sh -ec "$2"' sh "$root" "$1"
}

if [ ! -f "$root/etc/debian_version" ]; then
  debootstrap --variant=minbase --components=main,contrib,non-free trixie "$root" "${MIRROR:-http://deb.debian.org/debian}"
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"
# LibTorch and Gloo for CUDA stand in for the others; CMake files of LibTorch look for nvcc, which compiles nothing of ours.
packages=$(sed -e 's/#.*//' "$tree/scripts/packages.txt" | awk 'NF == 1 || $2 == "debian13" { print $1 }' |
  grep -vE '^(libtorch-dev|libgloo-dev|dataset-fashion-mnist)$' | tr '\n' ' ')
if [ -n "${CUDNN:-}" ]; then
  mkdir -p "$root/usr/include/x86_64-linux-gnu" "$root/usr/lib/x86_64-linux-gnu"
  cp -L --remove-destination "$CUDNN"/include/cudnn*.h "$root/usr/include/x86_64-linux-gnu/"
  cp -L --remove-destination "$CUDNN"/lib/libcudnn*.so* "$root/usr/lib/x86_64-linux-gnu/"
  inside "echo 'nvidia-cudnn nvidia-cudnn/question select I Decline' | debconf-set-selections"
fi
inside "apt-get -qq update; dpkg --configure -a > /dev/null; apt-get install -y -qq --no-install-recommends libtorch-cuda-dev libgloo-cuda-dev libnccl-dev nvidia-cuda-toolkit $packages > /dev/null
  rm -f /var/cache/apt/archives/*.deb"

mkdir -p "$root/root/stoker"
git -C "$tree" ls-files -co --exclude-standard -z | tar -C "$tree" --null --files-from=- -c | tar -C "$root/root/stoker" -x
inside "cd /root/stoker; cmake --preset release -DSTOKER_WERROR=ON > configure.log || { tail -40 configure.log; exit 1; }
  cmake --build build/release -j $jobs --target train"

cat > "$root/root/check.sh" <<'CHECKS'
cd /root/stoker
train=build/release/apps/stoker-train
fail() { echo "check_cuda_link: $1" >&2; exit 1; }
ldd $train > /root/libraries
grep -E 'torch_cuda|c10_cuda|cudart|nccl' /root/libraries
! grep 'not found' /root/libraries || fail "libraries are missing"
$train --version
rm -rf /root/data /root/run && mkdir /root/data
python3 -c "import pathlib, sys; sys.path.insert(0, 'scripts'); import made_idx
made_idx.write_idx(pathlib.Path('/root/data'), 'train', 500, 12, 1); made_idx.write_idx(pathlib.Path('/root/data'), 't10k', 120, 12, 2)"
options="--data-dir /root/data --model small_cnn --width 8 --threads 1 --max-updates 20 --batch-size 16"
$train --device cpu $options --run-dir /root/run > /root/output 2>&1 || { cat /root/output; fail "it does not train on the CPU"; }
head -1 /root/output
tail -1 /root/output
grep -q 'CUDA build' /root/output || fail "it calls itself a CPU build"
if [ -e /proc/driver/nvidia/version ]; then
  echo "there is a driver here: scripts/gpu_truth.sh has what to check with a GPU"
  exit 0
fi
code=0
$train --device cuda $options --run-dir /root/other > /root/output 2>&1 || code=$?
cat /root/output
[ $code = 69 ] || fail "without a driver --device cuda ends with $code, not with 69"
grep -q 'no NVIDIA driver' /root/output || fail "its error does not name the missing driver"
$train $options --dry-run > /root/output 2>&1 || fail "without a driver --device auto is not the CPU"
echo "links against CUDA, trains on the CPU and reports the missing driver"
CHECKS
inside "sh -e /root/check.sh"
