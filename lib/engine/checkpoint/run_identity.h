// SPDX-License-Identifier: Apache-2.0
// The identity of a run, which a resume must not change; written into each checkpoint and compared on resume.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/resolution.h"
#include "config/table/foreign_words.h"
#include "core/text/json.h"
#include "engine/step/learner.h"

namespace stoker::engine {

/// The identity of a run, which a resume must not change.
struct RunIdentity {
  std::string config_yaml;     ///< resolved, reloadable
  core::Json preprocess = {};  ///< how samples become what the network sees; null: not written
  std::vector<config::TrainingOption> training_options;
  std::string data_fingerprint;
  std::vector<std::string> class_names;
  // Not compared; results depend on them bit for bit, so a change is logged as a warning.
  int64_t threads = 1;
  std::string computed_by;       ///< device and LibTorch: "cpu, LibTorch 1.13.0, CPU build"; empty: not known
  int64_t ranks = 0;             ///< whose gradients are added in an order that depends on their number; 0: none are
  core::Json program;            ///< what computes, as names and texts
  StartingWeights started_from;  ///< compared where both are known
};

/// The training options in the manifest of a checkpoint, which may hold anything, by today's names.
config::OptionTexts saved_options(const core::Json& manifest);
/// Names and values of the options that decide what is trained.
core::Json options_json(const RunIdentity& identity);
/// The starting weights of the run of a manifest; empty: not known.
StartingWeights starting_weights_of(const core::Json& manifest);
/// For the manifest of a checkpoint; differences() reads it.
core::Json manifest_of(const RunIdentity& identity);
/// Differences between a run and the manifest of a checkpoint, one line each: options and data. Warns of what may
/// change bits only. `path` is for messages; `free_option`: the name of one that may differ. Throws Error{data} for a
/// manifest that is none of ours.
std::vector<std::string> differences(const RunIdentity& identity, const core::Json& manifest, const std::string& path,
                                     const std::vector<std::string>& free_options = {});
/// Those of options and data alone, without warnings: what is known before anything is measured.
std::vector<std::string> known_differences(const RunIdentity& identity, const core::Json& manifest,
                                           const std::string& path, const std::vector<std::string>& free_options);

// The origin of a checkpoint, as it records it: digests of its weights, of options and data, and of the checkpoint
// before it. Reads and writes files and texts, no tensors.

/// A checkpoint as the next one names it.
struct CheckpointLink {
  int64_t updates = 0;
  std::string digest;  ///< as checkpoint_digest(); empty: there is none
};

/// See docs/reference/run-directory.md. Empty where an older program wrote the checkpoint.
struct Lineage {
  std::string weights;  ///< digest of weights and buffers, as tensor_digest() has it
  std::string options;  ///< digest of the options that must be the same for a run to be the same
  std::string data;     ///< digest of the data's fingerprint
  core::Json program;   ///< what computed, as names and texts
  CheckpointLink before;

  /// Adds it to a state.
  void write_to(core::Json& state) const;
  /// Throws Error{data}; `what` is a path for the message.
  static Lineage from_state(const core::Json& state, const std::string& what);
};

/// The lineage of a checkpoint folder. Throws Error{data} or no_input.
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
  /// The run continues from this one.
  void loaded(const CheckpointLink& link, const CheckpointLink& before) {
    before_newest_ = before;
    newest_ = link;
  }

 private:
  CheckpointLink newest_, before_newest_;
};

}  // namespace stoker::engine
