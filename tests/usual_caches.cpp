// SPDX-License-Identifier: Apache-2.0
// Linked into each test program that loads LibTorch: what every start of `train` does before its proof. Without it
// oneDNN 3.2 to 3.7 computes wrong convolutions on AMD processors that hide their caches
// (lib/proof/remedy/cache_sizes.h).
#include "proof/remedy/cache_sizes.h"

namespace {

[[maybe_unused]] const bool is_set = [] {
  stoker::proof::override_cache_sizes(stoker::proof::cache_sizes_are_wrong());
  return true;
}();

}  // namespace
