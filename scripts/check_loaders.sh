#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_loaders.sh PROGRAM CONTROL: PROGRAM refers to none of LibTorch's functions that read pickles or TorchScript, which
# run code or trust what they read; CONTROL, an object file that does, shows that the search finds them.
set -eu
functions=' U (torch::(load|pickle_load)|torch::jit::[a-z_]*(load|import)[a-z_]*|torch::serialize::InputArchive::|caffe2::serialize::)'

# found FILE: the lines of nm, if any.
found() {
  nm --demangle --undefined-only "$1" | grep -E "$functions" || true
}
for name in torch::pickle_load torch::jit::load torch::serialize::InputArchive::load_from; do
  found "$2" | grep -q "$name" || { echo "the control refers to $name, but the search does not find it"; exit 1; }
done
calls=$(found "$1")
[ -z "$calls" ] || { echo "$1 refers to functions that read what can run code:"; echo "$calls"; exit 1; }
echo "$1 refers to no reader of pickles or TorchScript of LibTorch"
