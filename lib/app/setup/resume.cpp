// SPDX-License-Identifier: Apache-2.0
#include "app/setup/resume.h"

#include <algorithm>
#include <filesystem>

#include "app/network/network_file.h"
#include "app/setup/run_directory.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"

namespace stoker::app {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

constexpr uint64_t kMaxConfigBytes = 1 << 20;

/// A resume from an older checkpoint leaves newer ones behind: damaged ones, or those of a path not taken. Auto-resume
/// must not find them later, and pruning must not count them among the checkpoints that it keeps.
void set_newer_aside(engine::CheckpointFiles& files, int64_t updates) {
  for (const int64_t newer : files.list()) {
    if (newer <= updates) continue;
    core::log_warning("{} is newer than the checkpoint resumed from: moved to {}", files.path_of(newer),
                      files.set_aside(newer));
  }
}

/// The text of a training option in the manifest of a checkpoint, which may hold anything; empty: there is none.
std::string saved_text(const core::Json& extra, const std::string& option) {
  const auto options = extra.find("training_options");
  if (options == extra.end() || !options->is_object()) return "";
  const auto saved = options->find(option);
  return saved != options->end() && saved->is_string() ? saved->get<std::string>() : "";
}

/// Absent where the checkpoint does not say, or says auto.
std::optional<bool> saved_switch(const core::Json& extra, const std::string& option) {
  const std::string text = saved_text(extra, option);
  if (text != "true" && text != "false") return std::nullopt;
  return text == "true";
}

}  // namespace

std::string choose_checkpoint(const config::ResolvedRunOptions& options, engine::CheckpointFiles& files,
                              bool is_restart, bool is_fresh) {
  if (is_fresh && !is_restart) return "";
  const std::vector<int64_t> present = files.list();
  const std::string resume = is_restart && !present.empty() ? "auto" : options.resume;
  if (resume == "none") {
    if (present.empty()) return "";
    throw Error(ErrorKind::config,
                format("--resume none, but {} holds checkpoints of an earlier run", files.directory()),
                "choose another --run-dir, or move the old run away");
  }
  if (resume == "auto") {
    const std::string path = files.newest_verified();
    if (!path.empty() || present.empty()) return path;
    throw Error(ErrorKind::data, format("none of the {} checkpoints in {} verifies", present.size(), files.directory()),
                "restore one from a copy, or choose another --run-dir to start over");
  }
  if (resume == "last" || resume == "best") {
    const int64_t updates = files.pointed(resume);
    if (updates >= 0) return files.path_of(updates);
    throw Error(ErrorKind::no_input,
                format("--resume {}: there is no such checkpoint in {}", resume, files.directory()),
                "use --resume auto to start or resume");
  }
  return find_checkpoint(resume, "last");
}

std::unique_ptr<config::Configuration> options_of_resumed(int argc, const char* const* argv,
                                                          const config::Configuration& given) {
  const std::string& resume = given.options.run.resume;
  if (resume == "auto" || resume == "last" || resume == "best" || resume == "none") return nullptr;
  const std::string checkpoint = find_checkpoint(resume, "last");
  const std::string file = checkpoint + "/config.yaml";
  auto resumed = std::make_unique<config::Configuration>();
  config::read_run_config(core::read_file(file, kMaxConfigBytes), file, *resumed);
  config::parse_command_line(argc, argv, *resumed);
  use_network_file_of_run(checkpoint, engine::read_manifest(checkpoint).extra, *resumed);
  const std::filesystem::path folder = std::filesystem::path(checkpoint).lexically_normal().parent_path();
  if (resumed->options.run.run_dir.is_auto() && folder.filename() == "checkpoints") {
    config::Row& row = resumed->table.row_of(resumed->options.run.run_dir);
    const std::string run_dir = folder.parent_path().string();
    resumed->table.set(row, run_dir.empty() ? "." : run_dir, {config::Origin::Kind::run, file});
  }
  return resumed;
}

std::optional<Extension> extension_of(const std::string& checkpoint, int64_t epochs) {
  const int64_t before = std::atoll(saved_text(engine::read_manifest(checkpoint).extra, "epochs").c_str());
  if (before <= 0 || epochs <= before || engine::read_progress(checkpoint).epoch < before) return std::nullopt;
  return Extension{before, epochs};
}

void refuse_other_run(const engine::Checkpoints& checkpoints, const std::string& path, bool override_resume,
                      const std::optional<Extension>& extension) {
  std::vector<std::string> differences = checkpoints.differences(path);
  const auto is_extended = [](const std::string& difference) { return difference.rfind("--epochs:", 0) == 0; };
  if (extension) {
    differences.erase(std::remove_if(differences.begin(), differences.end(), is_extended), differences.end());
  }
  if (differences.empty()) return;
  if (override_resume) {
    for (const std::string& difference : differences) core::log_warning("--override-resume accepts: {}", difference);
    return;
  }
  std::string list;
  for (const std::string& difference : differences) list += "\n  " + difference;
  throw Error(
      ErrorKind::config, format("{} was written by a run that differs from this one:{}", path, list),
      "use the same options, another --run-dir for a new run, --fresh to set the old run aside, or --override-resume "
      "to go on regardless");
}

config::CheckpointFacts checkpoint_facts(const config::Configuration& given, const std::string& checkpoint) {
  const core::Json extra = engine::read_manifest(checkpoint).extra;
  const config::Options& o = given.options;
  config::CheckpointFacts facts;
  const auto threads = extra.find("threads");
  if (threads != extra.end() && threads->is_number_integer() && *threads > 0) facts.threads = threads->get<int64_t>();
  const int64_t batch = std::atoll(saved_text(extra, given.table.row_of(o.loader.batch_size).name).c_str()),
                steps = std::atoll(saved_text(extra, given.table.row_of(o.train.accumulation_steps).name).c_str());
  if (batch > 0 && steps > 0) {
    facts.batch_size = batch;
    facts.accumulation_steps = steps;
  }
  facts.drop_last = saved_switch(extra, given.table.row_of(o.loader.drop_last).name);
  const config::Table& table = given.table;
  const std::string &learning_rate = table.row_of(o.optim.lr).name, &optimizer = table.row_of(o.optim.opt).name;
  for (const std::string& name :
       {table.row_of(o.augment.hflip).name, table.row_of(o.augment.train_crop).name, table.row_of(o.model.model).name,
        optimizer, table.row_of(o.schedule.sched).name, learning_rate}) {
    const bool follows_batch = name == learning_rate && saved_text(extra, optimizer) == "sgd";
    const std::string text = follows_batch ? "" : saved_text(extra, name);
    if (!text.empty() && !is_network_identity(text)) facts.kept.emplace_back(name, text);
  }
  facts.amp = saved_switch(extra, given.table.row_of(o.precision.amp).name);
  facts.channels_last = saved_switch(extra, given.table.row_of(o.precision.channels_last).name);
  facts.tf32 = saved_switch(extra, given.table.row_of(o.precision.tf32).name);
  facts.winograd = saved_switch(extra, given.table.row_of(o.precision.winograd).name).value_or(false);
  return facts;
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
