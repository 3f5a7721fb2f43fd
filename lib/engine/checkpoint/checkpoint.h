// SPDX-License-Identifier: Apache-2.0
// The content of a checkpoint: weights, optimizer, loss scale, average, random state, where the run stands, and the
// identity of the run. Everything that a bit-identical continuation needs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "data/loader/loader.h"
#include "engine/checkpoint/run_identity.h"
#include "engine/checkpoint/saving_thread.h"
#include "engine/files/checkpoint_files.h"
#include "engine/run/events.h"
#include "engine/run/run_progress.h"
#include "engine/saved/saved_model.h"
#include "engine/step/learner.h"

namespace stoker::engine {

/// The error for a loss or weights that are no longer finite; names the checkpoint that is left, if any.
core::Error diverged_error(const std::string& cause, const CheckpointFiles& files,
                           const std::string& advice = "lower --lr, add --warmup-epochs or --clip-grad 1");

class Checkpoints {
 public:
  struct Settings {
    std::string directory;
    int64_t keep_last = 2;
    bool keep_best = true;
    bool space_check = true;
    core::FileSystem* file_system = &core::posix_file_system();  ///< outlives the checkpoints
    bool asynchronous = true;  ///< training waits for a copy in host memory alone, which stays for the next save
  };
  /// Checkpoints that stay although keep_last would let them go. Counts of updates; 0: none.
  struct Kept {
    int64_t every = 0;          ///< for good those after a multiple of it
    int64_t average_last = 0;   ///< number of the last ones, after a multiple of average_every
    int64_t average_every = 0;  ///< between those of --save-every
  };
  Checkpoints(const Settings& settings, RunIdentity identity);
  void keep(const Kept& kept) { kept_ = kept; }

  /// Waits for a save that is under way.
  CheckpointFiles& files();

  /// Copies what a checkpoint holds; a thread saves and verifies it, then moves `last` and `best` and prunes.
  /// finish_save() or take_saved() must have had the end of the save before.
  void begin_save(const RunProgress& state, Learner& learner, const std::vector<data::BadSample>& bad);
  /// The save that has ended since, if one has. Throws what ended it: Error{diverged} for weights that are not finite,
  /// Error{io} when the disk is full; older checkpoints stay.
  std::optional<CheckpointEvent> take_saved();
  /// take_saved() after a wait for the save that is under way; nothing where none is.
  std::optional<CheckpointEvent> finish_save();
  /// All of it at once.
  CheckpointEvent save(const RunProgress& state, Learner& learner, const std::vector<data::BadSample>& bad);

  /// The checkpoints to average of a run that ends after `updates` updates, the newest first: its last checkpoint and
  /// those of --save-every before it.
  std::vector<int64_t> to_average(int64_t updates) const;
  /// The mean of the weights that evaluation uses, computed in double precision; counts are those of the first.
  std::vector<NamedTensor> average_of(const std::vector<int64_t>& updates) const;
  /// Writes kAverageFolder: what evaluation and prediction need. `value`: of its evaluation, nothing: there was none.
  void save_average(const RunProgress& state, const std::vector<NamedTensor>& weights, const std::vector<int64_t>& of,
                    std::optional<double> value);
  /// Whether kAverageFolder holds the average of these.
  bool has_average(const std::vector<int64_t>& of) const;

  /// Lists, one per line, what differs between this run and the checkpoint's: options, but for those of the
  /// names `free_options`, and data.
  std::vector<std::string> differences(const std::string& path,
                                       const std::vector<std::string>& free_options = {}) const;

  /// Fields of state.json beside the progress and bad images of a run: counts of the learner, names of classes.
  core::Json learner_facts(const Learner& learner) const;

  /// Restores everything. The whole table of names, types and shapes is compared before anything is changed.
  /// `in_spite_of_differences`: beside the weights, which must fit, what does not fit is reset, and the log names
  /// it.
  RunProgress load(const std::string& path, Learner& learner, std::vector<data::BadSample>& bad,
                   bool in_spite_of_differences = false);

  /// Makes `last` and `best` agree with `state`, also after a kill between the commit and the moving of links.
  void repair_links(const RunProgress& state);
  /// A run continues from `state`: where the checkpoint of its best result is gone, it is the best that is still there.
  void continue_from(RunProgress& state);

 private:
  /// The content to write, as copies if it is written beside training.
  struct Content {
    RunProgress state;
    std::vector<NamedTensor> weights, optimizer, random, average;  ///< no average: the run keeps none
    core::Json state_json;                                         ///< without its lineage
  };
  Content content_of(const RunProgress& state, Learner& learner, const std::vector<data::BadSample>& bad) const;
  CheckpointEvent write(const Content& content);
  Evaluated best_left(const RunProgress& state) const;
  void point_best(const RunProgress& state);
  void write_texts(const std::string& folder, const core::Json& state,
                   std::map<std::string, FileRecord>& records) const;
  std::map<std::string, FileRecord> write_files(const std::string& folder, const Content& content) const;

  Settings settings_;
  RunIdentity identity_;
  Kept kept_;
  CheckpointFiles files_;
  int64_t last_bytes_ = 0;
  CheckpointChain chain_;
  std::optional<Staging> staging_;
  SavingThread saving_;  ///< last: what it uses is destroyed after it
};

}  // namespace stoker::engine
