// SPDX-License-Identifier: Apache-2.0
#include "train/setup/resume.h"

#include <filesystem>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "train/setup/network_file.h"
#include "train/setup/run_directory.h"

namespace stoker::train {
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

/// The training options in the manifest of a checkpoint, which may hold anything.
class SavedOptions {
 public:
  explicit SavedOptions(const core::Json& manifest) : saved_(engine::saved_options(manifest)) {}
  SavedOptions& operator=(SavedOptions&&) = delete;  // not copied, not moved

  /// To name an option: value_of() takes a member of it.
  config::Options& options() { return options_; }
  /// Absent where the checkpoint has none, auto, or what is not a value of the option.
  template <typename T>
  std::optional<T> value_of(T& field) {
    return reads(field) ? std::optional<T>(field) : std::nullopt;
  }
  template <typename T>
  std::optional<T> value_of(config::Auto<T>& field) {
    return reads(field) && !field.is_auto() ? std::optional<T>(field.value()) : std::nullopt;
  }

 private:
  template <typename Field>
  bool reads(const Field& field) {
    const config::Row& row = table_.row_of(field);
    const auto text = saved_.find(row.name);
    return text != saved_.end() && row.assign(text->second).empty();
  }

  config::OptionTexts saved_;
  config::Options options_;
  config::Table table_{options_};
};

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
    if (updates >= 0 && files.has(updates)) return files.path_of(updates);
    if (!present.empty()) {
      return engine::find_checkpoint(std::filesystem::path(files.directory()).parent_path().string(), resume);
    }
    throw Error(ErrorKind::no_input,
                format("--resume {}: there is no such checkpoint in {}", resume, files.directory()),
                "use --resume auto to start or resume");
  }
  return engine::find_checkpoint(resume, "last");
}

std::unique_ptr<config::Configuration> options_of_resumed(const config::CommandLine& line,
                                                          const config::Configuration& given) {
  const std::string& resume = given.options.run.resume;
  if (resume == "auto" || resume == "last" || resume == "best" || resume == "none") return nullptr;
  const std::string checkpoint = engine::find_checkpoint(resume, "last");
  const std::string file = checkpoint + "/config.yaml";
  auto resumed = std::make_unique<config::Configuration>();
  config::read_run_config(core::read_file(file, kMaxConfigBytes), file, *resumed);
  config::parse_options(line, *resumed);
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
  SavedOptions saved(engine::read_manifest(checkpoint).extra);
  const int64_t before = saved.value_of(saved.options().train.epochs).value_or(0);
  if (before <= 0 || epochs <= before || engine::read_progress(checkpoint).epoch < before) return std::nullopt;
  const std::optional<double> warmup = saved.value_of(saved.options().schedule.warmup_epochs);
  return Extension{before, epochs, warmup == config::short_warmup(before)};
}

namespace {

/// With sched wsd: the options that decide when and how far the rate falls, where it falls neither in the run of a
/// checkpoint nor in that of `own` before the checkpoint. Whatever they are, what came before is the same.
std::vector<std::string> free_before_cooldown(const std::string& checkpoint, const config::ResolvedOptions& own) {
  using Kind = config::ScheduleKind;
  if (own.schedule.sched != Kind::wsd) return {};
  SavedOptions saved(engine::read_manifest(checkpoint).extra);
  const config::Options& o = saved.options();
  const std::optional<Kind> sched = saved.value_of(saved.options().schedule.sched);
  const auto epochs = static_cast<double>(saved.value_of(saved.options().train.epochs).value_or(0));
  const double cooldown = saved.value_of(saved.options().schedule.cooldown).value_or(0);
  const engine::RunProgress at = engine::read_progress(checkpoint);
  const auto done = static_cast<double>(at.epoch + (at.update_in_epoch > 0 ? 1 : 0));
  const bool is_before_theirs = sched == Kind::constant || (sched == Kind::wsd && done <= epochs - cooldown);
  const bool is_before_own = done <= static_cast<double>(own.train.epochs) - own.schedule.cooldown;
  if (!is_before_theirs || !is_before_own) return {};
  const config::Table table(saved.options());
  return {table.row_of(o.train.epochs).name, table.row_of(o.schedule.sched).name,
          table.row_of(o.schedule.cooldown).name, table.row_of(o.schedule.min_lr).name};
}

/// Options that a run that continues from `path` may change without being another one.
std::vector<std::string> free_options(const std::string& path, const config::ResolvedOptions& own,
                                      const std::optional<Extension>& extension) {
  config::Options options;
  const config::Table table(options);
  std::vector<std::string> free = free_before_cooldown(path, own);
  if (extension) free.push_back(table.row_of(options.train.epochs).name);
  if (extension && extension->had_short_warmup) free.push_back(table.row_of(options.schedule.warmup_epochs).name);
  return free;
}

void refuse_differences(const std::string& path, const std::vector<std::string>& differences) {
  if (differences.empty()) return;
  std::string list;
  for (const std::string& difference : differences) list += "\n  " + difference;
  throw Error(
      ErrorKind::config, format("{} was written by a run that differs from this one:{}", path, list),
      "use the same options, another --run-dir for a new run, --fresh to set the old run aside, or --override-resume "
      "to continue anyway");
}

}  // namespace

void refuse_known_other_run(const std::string& path, const config::Resolution& resolution,
                            const data::Datasets& datasets) {
  const config::ResolvedOptions& own = resolution.options;
  if (own.run.override_resume) return;
  std::vector<std::string> free = free_options(path, own, extension_of(path, own.train.epochs));
  free.insert(free.end(), resolution.assumed.begin(), resolution.assumed.end());
  refuse_differences(
      path, engine::known_differences(known_identity(own, datasets), engine::read_manifest(path).extra, path, free));
}

void refuse_other_run(const engine::Checkpoints& checkpoints, const std::string& path,
                      const config::ResolvedOptions& own, const std::optional<Extension>& extension) {
  const std::vector<std::string> differences = checkpoints.differences(path, free_options(path, own, extension));
  if (!own.run.override_resume) return refuse_differences(path, differences);
  for (const std::string& difference : differences) core::log_warning("--override-resume accepts: {}", difference);
}

config::CheckpointFacts checkpoint_facts(const std::string& checkpoint) {
  const core::Json extra = engine::read_manifest(checkpoint).extra;
  SavedOptions saved(extra);
  config::Options& o = saved.options();
  config::CheckpointFacts facts;
  const auto threads = extra.find("threads");
  if (threads != extra.end() && threads->is_number_integer() && *threads > 0 && *threads <= 1024)
    facts.threads = threads->get<int64_t>();
  facts.replicas = saved.value_of(o.train.replicas);
  facts.batch_size = saved.value_of(o.loader.batch_size);
  facts.accumulation_steps = saved.value_of(o.train.accumulation_steps);
  if (!facts.batch_size || !facts.accumulation_steps) facts.batch_size = facts.accumulation_steps = std::nullopt;
  facts.drop_last = saved.value_of(o.loader.drop_last);
  facts.model = saved.value_of(o.model.model);
  if (facts.model && (facts.model->empty() || is_network_identity(*facts.model))) facts.model.reset();
  facts.hflip = saved.value_of(o.augment.hflip);
  facts.train_crop = saved.value_of(o.augment.train_crop);
  facts.opt = saved.value_of(o.optim.opt);
  facts.sched = saved.value_of(o.schedule.sched);
  const bool rate_follows_batch = facts.opt == config::OptimizerKind::sgd;
  if (!rate_follows_batch) facts.lr = saved.value_of(o.optim.lr);
  facts.amp = saved.value_of(o.precision.amp);
  facts.amp_dtype = saved.value_of(o.precision.amp_dtype);
  facts.channels_last = saved.value_of(o.precision.channels_last);
  facts.tf32 = saved.value_of(o.precision.tf32);
  return facts;
}

engine::RunProgress start_or_resume(const std::string& checkpoint, engine::Checkpoints& checkpoints,
                                    engine::Learner& learner, data::Loader& loader, bool override_resume) {
  if (checkpoint.empty()) return {};
  std::vector<data::BadSample> bad;
  const engine::RunProgress at = checkpoints.load(checkpoint, learner, bad, override_resume);
  loader.restore_bad_samples(bad);
  return at;
}

void adopt_checkpoints(const std::string& checkpoint, bool continues, engine::RunProgress& at,
                       engine::Checkpoints& checkpoints) {
  if (checkpoint.empty()) return;
  set_newer_aside(checkpoints.files(), at.updates);
  if (continues) checkpoints.continue_from(at);
  checkpoints.repair_links(at);
}

}  // namespace stoker::train
