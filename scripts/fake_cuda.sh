#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trains over a CUDA that computes nothing (tests/fake_cuda): start, copies, streams, graphs, memory, two devices, stops and
# faults of the program's real code on a LibTorch for CUDA, without a GPU. As root; one line for each case.
#
#   scripts/fake_cuda.sh FOLDER [trainings] [bytes] [faults N]
# FOLDER is a Debian 13 as scripts/check_cuda_link.sh makes it, with the program built. faults N: N calls of each function
# of CUDA fail, by each kind of fault; 1000000 is all of them.
set -eu
tree=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 1 ] && [ "$(id -u)" = 0 ] && [ -x "$1/root/stoker/build/release/apps/stoker-train" ] || {
  echo "usage, as root: $0 FOLDER [trainings] [bytes] [faults N], after scripts/check_cuda_link.sh FOLDER" >&2
  exit 64
}
root=$(cd "$1" && pwd)
shift
git -C "$tree" ls-files -co --exclude-standard -z -- scripts tests | tar -C "$tree" --null --files-from=- -c |
  tar -C "$root/root/stoker" -x
cat > "$root/root/fake.sh" <<'FAKE'
cd /root/stoker
cmake --build build/release --target train train_with_hooks > /root/fake.log || { tail -40 /root/fake.log; exit 1; }
libraries=$(ldconfig -p | awk '/lib(torch_cuda|c10_cuda|torch_cuda_linalg|caffe2_nvrtc|gloo_cuda)\.so/ { print $NF }')
python3 tests/fake_cuda/generate.py /root/fake build/release/apps/stoker-train $libraries
export LD_LIBRARY_PATH=/root/fake
! ldd build/release/apps/stoker-train | grep -E 'lib(cu|nv|nccl)' | grep -vE '/root/fake/|libcurl' || exit 1
exec python3 tests/fake_cuda/cases.py build/release/apps/train build/release/tests/hooks/train_with_hooks /root/cases "$@"
FAKE
exec unshare --mount --pid --fork --mount-proc="$root/proc" sh -ec '
  root=$1
  shift
  mount -t tmpfs none "$root/dev"
  for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  mkdir "$root/dev/shm"
  exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 sh -e /root/fake.sh "$@"' sh "$root" "$@"
