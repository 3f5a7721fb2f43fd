// SPDX-License-Identifier: Apache-2.0
#include "app/setup/resume.h"

#include "app/setup/run_directory.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"

namespace stoker::app {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// A resume from an older checkpoint leaves newer ones behind: damaged ones, or those of a path not taken. Auto-resume
/// must not find them later, and pruning must not count them among the checkpoints that it keeps.
void set_newer_aside(engine::CheckpointFiles& files, int64_t updates) {
  for (const int64_t newer : files.list()) {
    if (newer <= updates) continue;
    core::log_warning("{} is newer than the checkpoint resumed from: moved to {}", files.path_of(newer),
                      files.set_aside(newer));
  }
}

/// CPU results depend on the number of threads: an automatic count follows the checkpoint.
void keep_thread_count(config::Configuration& configuration, const core::Json& extra) {
  config::Row& row = configuration.table.row_of(configuration.options.device.threads);
  if (row.origin.kind != config::Origin::Kind::resolved) return;
  const auto threads = extra.find("threads");  // a manifest that is not ours may hold anything
  const int64_t saved = threads != extra.end() && threads->is_number_integer() ? threads->get<int64_t>() : 0;
  if (saved <= 0 || saved == configuration.options.device.threads) return;
  configuration.table.set(row, std::to_string(saved),
                          {config::Origin::Kind::resolved, "as in the checkpoint, so that the bits stay the same"});
}

/// The batch of a run whose batch-size is automatic is chosen once.
void keep_batch(config::Configuration& configuration, const core::Json& extra) {
  const config::Options& options = configuration.options;
  const config::Table& table = configuration.table;
  if (!options.loader.batch_size.is_auto()) return;
  const auto saved = extra.find("training_options");
  if (saved == extra.end() || !saved->is_object()) return;
  const auto count_of = [&](const config::Row& row) -> int64_t {
    const auto found = saved->find(row.name);
    if (found == saved->end() || !found->is_string()) return 0;
    return std::atoll(found->get<std::string>().c_str());
  };
  const int64_t batch = count_of(table.row_of(options.loader.batch_size)),
                steps = count_of(table.row_of(options.train.accumulation_steps));
  if (batch > 0 && steps > 0) config::resolve_batch(configuration, {batch, steps, "as in the checkpoint"});
}

/// The batches of an epoch stay what they are, whatever an automatic drop-last would be for a new run.
void keep_last_batch(config::Configuration& configuration, const core::Json& extra) {
  config::Row& row = configuration.table.row_of(configuration.options.loader.drop_last);
  if (!row.is_auto() && row.origin.kind != config::Origin::Kind::resolved) return;
  const auto options = extra.find("training_options");
  if (options == extra.end() || !options->is_object()) return;
  const auto saved = options->find(row.name);
  if (saved == options->end() || (*saved != "true" && *saved != "false")) return;
  configuration.table.set(row, saved->get<std::string>(), {config::Origin::Kind::resolved, "as in the checkpoint"});
}

}  // namespace

std::string choose_checkpoint(const config::RunOptions& options, engine::CheckpointFiles& files) {
  const std::vector<int64_t> present = files.list();
  if (options.resume == "none") {
    if (present.empty()) return "";
    throw Error(ErrorKind::config,
                format("--resume none, but {} holds checkpoints of an earlier run", files.directory()),
                "choose another --run-dir, or move the old run away");
  }
  if (options.resume == "auto") {
    const std::string path = files.newest_verified();
    if (!path.empty() || present.empty()) return path;
    throw Error(ErrorKind::data, format("none of the {} checkpoints in {} verifies", present.size(), files.directory()),
                "restore one from a copy, or choose another --run-dir to start over");
  }
  if (options.resume == "last" || options.resume == "best") {
    const int64_t updates = files.pointed(options.resume);
    if (updates >= 0) return files.path_of(updates);
    throw Error(ErrorKind::no_input,
                format("--resume {}: there is no such checkpoint in {}", options.resume, files.directory()),
                "use --resume auto to start or resume");
  }
  return find_checkpoint(options.resume, "last");
}

void refuse_other_run(const engine::Checkpoints& checkpoints, const std::string& path, bool override_resume) {
  const std::vector<std::string> differences = checkpoints.differences(path);
  if (differences.empty()) return;
  if (override_resume) {
    for (const std::string& difference : differences) core::log_warning("--override-resume accepts: {}", difference);
    return;
  }
  std::string list;
  for (const std::string& difference : differences) list += "\n  " + difference;
  throw Error(ErrorKind::config, format("{} was written by a run that differs from this one:{}", path, list),
              "use the same options, another --run-dir for a new run, or --override-resume to go on regardless");
}

void keep_choices(config::Configuration& configuration, const std::string& checkpoint) {
  if (checkpoint.empty()) return;
  const core::Json extra = engine::read_manifest(checkpoint).extra;
  keep_thread_count(configuration, extra);
  keep_batch(configuration, extra);
  keep_last_batch(configuration, extra);
}

engine::RunProgress start_or_resume(const std::string& checkpoint, engine::Checkpoints& checkpoints,
                                    engine::Learner& learner, data::Loader& loader) {
  if (checkpoint.empty()) return {};
  std::vector<data::BadSample> bad;
  const engine::RunProgress at = checkpoints.load(checkpoint, learner, bad);
  loader.restore_bad_samples(bad);
  return at;
}

void take_over_checkpoints(const std::string& checkpoint, const engine::RunProgress& at,
                           engine::Checkpoints& checkpoints) {
  if (checkpoint.empty()) return;
  set_newer_aside(checkpoints.files(), at.updates);
  checkpoints.repair_links(at);
}

}  // namespace stoker::app
