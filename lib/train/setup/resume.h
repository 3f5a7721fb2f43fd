// SPDX-License-Identifier: Apache-2.0
// Which checkpoint a run continues from, what it takes over from it, and what refuses to continue.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/facts.h"
#include "data/loader/loader.h"
#include "data/open_datasets.h"
#include "engine/checkpoint/checkpoint.h"

namespace stoker::train {

/// The checkpoint to continue from, or "" to start from scratch. `is_restart`: a starter has started this very run
/// before, so that it continues with what it has left behind, whatever its options for the first start. `is_fresh`: the
/// run starts over.
std::string choose_checkpoint(const config::ResolvedRunOptions& options, engine::CheckpointFiles& files,
                              bool is_restart, bool is_fresh = false);

/// The automatic choices of the first start of a checkpoint's run, which stay. Throws as read_manifest().
config::CheckpointFacts checkpoint_facts(const std::string& checkpoint);

/// Options for a run that continues from the checkpoint that `--resume PATH` names: those of its run, with those of the
/// command line over them; run-dir is that of the checkpoint unless another is given. Null where resume names no path.
std::unique_ptr<config::Configuration> options_of_resumed(const config::CommandLine& line,
                                                          const config::Configuration& given);

/// A finished run that continues for more epochs.
struct Extension {
  int64_t epochs_before = 0, epochs = 0;
  bool had_short_warmup = false;  ///< for want of epochs
};
/// Whether a run of `epochs` extends the run of a checkpoint, which has done all of fewer epochs.
std::optional<Extension> extension_of(const std::string& checkpoint, int64_t epochs);

/// Throws Error{config} with what differs from the run of the checkpoint at `path`, unless override-resume accepts it.
/// The epochs of an extension may differ, its warm-up where the shorter run was too short for it, and with sched wsd
/// what decides the cool-down before it has begun.
void refuse_other_run(const engine::Checkpoints& checkpoints, const std::string& path,
                      const config::ResolvedOptions& own, const std::optional<Extension>& extension);
/// The same as far as it is known before anything is measured: options that are not assumed, and the data.
void refuse_known_other_run(const std::string& path, const config::Resolution& resolution,
                            const data::Datasets& datasets);

/// A fresh start or an exact continuation; see Checkpoints::load() for `override_resume`. Writes nothing.
engine::RunProgress start_or_resume(const std::string& checkpoint, engine::Checkpoints& checkpoints,
                                    engine::Learner& learner, data::Loader& loader, bool override_resume);

/// Makes the run directory agree with a run that stands at `at`: newer checkpoints are set aside, links follow. Where
/// it continues, `at` follows what is left: see Checkpoints::continue_from(). Nothing for an empty `checkpoint`. Only
/// for who holds the lock of the run directory. Throws Error{io}.
void adopt_checkpoints(const std::string& checkpoint, bool continues, engine::RunProgress& at,
                       engine::Checkpoints& checkpoints);

}  // namespace stoker::train
