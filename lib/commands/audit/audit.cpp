// SPDX-License-Identifier: Apache-2.0
// `train audit`: what is wrong with a data set.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>

#include "commands/audit/audit.h"
#include "commands/audit/audit_json.h"
#include "commands/audit/audit_page.h"
#include "commands/audit/audit_text.h"
#include "commands/audit/label_suspects.h"
#include "commands/eval/loaded_model.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/time/elapsed.h"
#include "data/open_datasets.h"
#include "data/probe/probe_sizes.h"
#include "train/failure/result_output.h"
#include "train/setup/assemble.h"
#include "train/setup/settings.h"

namespace stoker::train {
namespace {

using Clock = std::chrono::steady_clock;

/// A line now and then, on standard error: results go to standard output.
class AuditNews {
 public:
  void on_progress(int64_t done, int64_t total) {
    constexpr auto kPause = std::chrono::seconds(10);
    const Clock::time_point now = Clock::now();
    if (now - last_ < kPause) return;
    last_ = now;
    const double per_second = static_cast<double>(done) / core::seconds_since(begin_);
    core::log_info("looking at {}/{} samples  {} samples/s", core::count_text(done), core::count_text(total),
                   core::count_text(static_cast<int64_t>(per_second)));
  }

 private:
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
};

/// What is audited, and by what options.
struct AuditPlan {
  std::optional<LoadedModel> scorer;     ///< a network of a run, whose options hold where none are given
  std::vector<std::string> checkpoints;  ///< of that run
  std::optional<Settings> files;         ///< for looking at the files, when no network computes
};

AuditPlan plan_of(const Context& context, const AuditFlags& flags) {
  config::Configuration& given = context.configuration;
  AuditPlan plan;
  if (!flags.run.empty()) {
    plan.checkpoints = scoring_checkpoints(flags.run);
    plan.scorer.emplace(
        load_configuration(context.line, JoinedRanks(), {plan.checkpoints.front()}, [&](config::Options& options) {
          if (!flags.dataset.empty()) options.data.data_dir = flags.dataset;
          options.data.on_bad_image = config::OnBadImage::skip;  // corrupt files are a finding
          options.data.max_bad = 1'000'000'000;                  // as many as the option takes
        }));
    plan.files.emplace(Settings::without_network(*plan.scorer->given));
    return plan;
  }
  if (flags.dataset.empty() && !given.flags.names_data) {
    throw core::Error(core::ErrorKind::usage, "no data set is named: train audit DATASET [options]",
                      "name the folder that holds it, or a run with --run");
  }
  if (!flags.dataset.empty()) given.options.data.data_dir = flags.dataset;
  plan.files.emplace(Settings::without_network(given));
  return plan;
}

void score_labels(AuditPlan& plan, const AuditFlags& flags, Audited& audited) {
  if (!plan.scorer) return;
  const auto training = [&](const config::Configuration&, const std::vector<std::string>& trained) {
    if (audited.splits.front().source->learned_names() == trained) return audited.splits.front().source;
    throw core::Error(core::ErrorKind::data, "the classes of the data are not those of " + core::printable(flags.run),
                      "name a run that learned these classes");
  };
  load_network(training, JoinedRanks(), *plan.scorer);
  audited.run = flags.run;
  audited.checkpoints = plan.checkpoints;
  audited.suspects = find_label_suspects(*plan.scorer, plan.checkpoints, audited.splits, flags.suspects);
}

/// A folder of class folders alone is one split, with the folder's name.
std::vector<std::pair<std::string, std::shared_ptr<const data::Source>>> splits_of(const config::DataOptions& options,
                                                                                   std::vector<std::string>& notes) {
  try {
    return data::open_every_split(options, notes);
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::no_input) throw;
    try {
      const std::string name = std::filesystem::absolute(options.data_dir).lexically_normal().filename().string();
      return {
          {name.empty() ? "all" : name, data::open_labelled(options, options.data_dir, /*split=*/"", /*learned=*/{})}};
    } catch (const core::Error&) {
      throw error;
    }
  }
}

}  // namespace

Outcome audit(const Context& context, const AuditFlags& flags) {
  const config::Configuration& given = context.configuration;
  if (given.flags.print_config) {
    write_result("-", config::render_yaml(given.table, /*with_origin=*/true));
    return {core::kExitOk, ""};
  }
  log_to_stderr();
  AuditPlan plan = plan_of(context, flags);
  const config::ResolvedOptions& options = plan.files->options();
  Audited audited;
  audited.data_dir = options.data.data_dir;
  std::vector<std::string> notes;
  for (auto& [name, source] : splits_of(plan.files->given_data(), notes)) {
    audited.splits.push_back({name, std::move(source)});
  }
  for (const std::string& note : notes) core::log_info("note      {}", note);
  data::AuditSettings settings;
  settings.limits = decode_limits(options.data);
  if (!settings.limits.range.is_set()) {  // as training would see them
    const data::RangeProbe range = data::probe_range(*audited.splits.front().source, options.data.max_image_megapixels);
    if (range.is_narrow) settings.limits.range = {range.low, range.high};
  }
  settings.threads = std::max<int64_t>(1, options.loader.num_workers);
  const Clock::time_point begin = Clock::now();
  {
    AuditNews news;
    audited.findings =
        data::audit(audited.splits, settings, [&](int64_t done, int64_t total) { news.on_progress(done, total); });
  }
  score_labels(plan, flags, audited);
  audited.seconds = core::seconds_since(begin);
  if (!flags.output.empty()) {
    write_result(flags.output, audit_page(audited, settings.limits, "stoker train " STOKER_VERSION,
                                          core::utc_text(std::time(nullptr))));
    if (flags.output == "-") return {core::kExitOk, "audited"};
  }
  write_result("-", flags.json ? audit_json(audited).dump(1, ' ', false, core::Json::error_handler_t::replace) + "\n"
                               : core::terminal_text(audit_text(audited)));
  if (!flags.output.empty()) core::log_info("written: {}", core::printable(flags.output));
  return {core::kExitOk, "audited"};
}

}  // namespace stoker::train
