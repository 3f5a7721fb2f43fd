// SPDX-License-Identifier: Apache-2.0
// oneDNN switched off for a while, by several threads independently: LibTorch has one switch for the process.
// For passes whose numbers nobody reads, too: their shapes and layouts are not those that were proven right.
#pragma once

namespace stoker::engine {

/// For its lifetime LibTorch does not use oneDNN, in any thread.
class WithoutOnednn {
 public:
  WithoutOnednn();
  ~WithoutOnednn();
  WithoutOnednn& operator=(WithoutOnednn&&) = delete;  // not copied, not moved
};

}  // namespace stoker::engine
