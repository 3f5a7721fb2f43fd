// SPDX-License-Identifier: Apache-2.0
// The origin of a checkpoint, as it records it: digests of its weights, of options and data, and of the checkpoint
// before it. Reads and writes files and texts, no tensors.
#pragma once

#include <cstdint>
#include <string>

#include "core/text/json.h"

namespace stoker::engine {

/// A checkpoint as the next one names it.
struct CheckpointLink {
  int64_t updates = 0;
  std::string digest;  ///< as checkpoint_digest(); empty: there is none
};

/// See docs/reference/run-directory.md. Empty where an older program wrote the checkpoint.
struct Lineage {
  std::string weights;  ///< of weights and buffers, as tensor_digest() has it
  std::string options;  ///< of those that must be the same for a run to be the same
  std::string data;     ///< of the data's fingerprint
  core::Json program;   ///< what computed, as names and texts
  CheckpointLink before;

  /// Adds it to a state.
  void write_to(core::Json& state) const;
  /// Throws Error{data}; `what` is a path for the message.
  static Lineage from_state(const core::Json& state, const std::string& what);
};

/// Of a checkpoint folder. Throws Error{data} or no_input.
Lineage read_lineage(const std::string& path);

/// The checkpoint before the next one. A checkpoint that takes the place of the newest, being of the same update, has
/// the same one before it.
class CheckpointChain {
 public:
  const CheckpointLink& before(int64_t updates) const { return updates == newest_.updates ? before_newest_ : newest_; }
  void saved(const CheckpointLink& link) {
    before_newest_ = before(link.updates);
    newest_ = link;
  }
  /// The run goes on from this one.
  void loaded(const CheckpointLink& link, const CheckpointLink& before) {
    before_newest_ = before;
    newest_ = link;
  }

 private:
  CheckpointLink newest_, before_newest_;
};

}  // namespace stoker::engine
