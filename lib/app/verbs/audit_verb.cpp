// SPDX-License-Identifier: Apache-2.0
// `train audit`: what is wrong with a data set.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>

#include "app/app.h"
#include "app/audit/audit_json.h"
#include "app/audit/audit_page.h"
#include "app/audit/audit_text.h"
#include "app/output/result_output.h"
#include "app/setup/assemble.h"
#include "app/setup/settings.h"
#include "app/verbs/label_suspects.h"
#include "app/verbs/loaded_model.h"
#include "core/error.h"
#include "core/log.h"
#include "core/time/elapsed.h"
#include "data/open_datasets.h"

namespace stoker::app {
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
  std::optional<LoadedModel> asked;      ///< a network of a run, whose options hold where none are given
  std::vector<std::string> checkpoints;  ///< of that run
  std::optional<Settings> files;         ///< for looking at the files, when no network computes
};

AuditPlan plan_of(const Invocation& invocation) {
  config::Configuration& given = invocation.configuration;
  const config::CommandLine& command = given.command;
  AuditPlan plan;
  if (!command.checkpoint.empty()) {
    plan.checkpoints = checkpoints_to_ask(command.checkpoint);
    plan.asked.emplace(
        load_configuration(invocation, JoinedRanks(), plan.checkpoints.front(), [&](config::Options& options) {
          if (!command.input.empty()) options.data.data_dir = command.input;
          options.data.on_bad_image = config::OnBadImage::skip;  // corrupt files are a finding
          options.data.max_bad = 1'000'000'000;                  // as many as the option takes
        }));
    plan.files.emplace(Settings::without_network(*plan.asked->given));
    return plan;
  }
  if (command.input.empty() && !command.names_data) {
    throw core::Error(core::ErrorKind::usage, "no data set is named: train audit DATASET [options]",
                      "name the folder that holds it, or a run with --run");
  }
  if (!command.input.empty()) given.options.data.data_dir = command.input;
  plan.files.emplace(Settings::without_network(given));
  return plan;
}

void ask_about_labels(AuditPlan& plan, const config::CommandLine& command, Audited& audited) {
  if (!plan.asked) return;
  const auto training = [&](const config::Configuration&, const std::vector<std::string>& trained) {
    if (audited.splits.front().source->learned_names() == trained) return audited.splits.front().source;
    throw core::Error(core::ErrorKind::data,
                      "the classes of the data are not those of " + core::printable(command.checkpoint),
                      "name a run that learned these classes");
  };
  load_network(training, JoinedRanks(), *plan.asked);
  audited.run = command.checkpoint;
  audited.checkpoints = plan.checkpoints;
  audited.suspects = find_label_suspects(*plan.asked, plan.checkpoints, audited.splits, command.suspects);
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

Outcome audit(const Invocation& invocation) {
  const config::Configuration& given = invocation.configuration;
  const config::CommandLine& command = given.command;
  if (command.print_config) {
    write_result("-", config::render_yaml(given.table, /*with_origin=*/true));
    return {core::kExitOk, ""};
  }
  log_to_stderr();
  AuditPlan plan = plan_of(invocation);
  const config::ResolvedOptions& options = plan.files->options();
  Audited audited;
  audited.data_dir = options.data.data_dir;
  std::vector<std::string> notes;
  for (auto& [name, source] : splits_of(plan.files->given_data(), notes)) {
    audited.splits.push_back({name, std::move(source)});
  }
  for (const std::string& note : notes) core::log_info("note      {}", note);
  data::AuditSettings settings;
  settings.limits = decode_limits(options.data.max_image_megapixels);
  settings.threads = std::max<int64_t>(1, options.loader.num_workers);
  const Clock::time_point begin = Clock::now();
  {
    AuditNews news;
    audited.findings =
        data::audit(audited.splits, settings, [&](int64_t done, int64_t total) { news.on_progress(done, total); });
  }
  ask_about_labels(plan, command, audited);
  audited.seconds = core::seconds_since(begin);
  if (!command.output.empty()) {
    write_result(command.output, audit_page(audited, settings.limits, "stoker train " STOKER_VERSION,
                                            core::utc_text(std::time(nullptr))));
    if (command.output == "-") return {core::kExitOk, "audited"};
  }
  write_result("-", command.json ? audit_json(audited).dump(1) + "\n" : audit_text(audited));
  if (!command.output.empty()) core::log_info("written: {}", core::printable(command.output));
  return {core::kExitOk, "audited"};
}

}  // namespace stoker::app
