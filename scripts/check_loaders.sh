#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_loaders.sh PROGRAM CONTROL [LIBRARY]: PROGRAM refers to none of LibTorch's functions that read pickles or TorchScript,
# which run code or trust what they read; CONTROL, an object file that does, shows that the search finds them. LIBRARY, which
# PROGRAM opens with --trust-model, refers to them: PROGRAM must not link it.
set -eu
functions=' U (torch::(load|pickle_load)|torch::jit::[a-z_]*(load|import)[a-z_]*|torch::serialize::InputArchive::|caffe2::serialize::)'

# found FILE: the lines of nm, of both tables of symbols, if any.
found() {
  { nm --demangle --undefined-only "$1"; nm --demangle --undefined-only --dynamic "$1" 2> /dev/null; } | grep -E "$functions" || true
}
for name in torch::pickle_load torch::jit::load torch::serialize::InputArchive::load_from; do
  found "$2" | grep -q "$name" || { echo "the control refers to $name, but the search does not find it"; exit 1; }
done
calls=$(found "$1")
[ -z "$calls" ] || { echo "$1 refers to functions that read what can run code:"; echo "$calls"; exit 1; }
if [ $# -gt 2 ]; then
  found "$3" | grep -q torch::jit::load || { echo "$3 should load TorchScript, but the search finds no reader in it"; exit 1; }
  needed=$(objdump -p "$1")
  case "$needed" in
    *"$(basename "$3")"*) echo "$1 links $3, so that readers are in every process"; exit 1 ;;
  esac
fi
echo "$1 refers to no reader of pickles or TorchScript of LibTorch"
