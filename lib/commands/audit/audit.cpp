// SPDX-License-Identifier: Apache-2.0
// `train audit`: what is wrong with a data set.
#include "commands/audit/audit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <optional>
#include <vector>

#include "commands/audit/audited.h"
#include "commands/eval/loaded_model.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/time/clock.h"
#include "data/open_datasets.h"
#include "data/probe/probe_sizes.h"
#include "engine/files/checkpoint_files.h"
#include "engine/saved/weights.h"
#include "engine/task/evaluate.h"
#include "train/failure/result_output.h"
#include "train/setup/assemble.h"
#include "train/setup/settings.h"

namespace stoker::train {
namespace {

// Which labels of a data set look wrong to the networks of a run: the loss of every sample, over the checkpoints that
// the run has kept.

constexpr size_t kMaxCheckpoints = 8;
constexpr float kNotJudged = -1;  // no loss is negative

/// The record of each sample of a split.
struct Judgement {
  std::vector<double> loss_sum;    ///< over checkpoints; < 0: a sample that could not be read
  std::vector<int32_t> predicted;  ///< class, by the last checkpoint; empty where numbers are learned
  std::vector<float> confidence;   ///< in that class
  std::vector<float> in_label;     ///< confidence in the class of the label
  std::vector<float> predictions;  ///< [n, targets], where numbers are learned
};

/// Probabilities [B, classes] of a task with classes.
torch::Tensor class_probabilities(const torch::Tensor& predictions) {
  if (predictions.size(1) > 1) return predictions;
  return torch::cat({1 - predictions, predictions}, 1);  // binary
}

void judge(const LoadedModel& loaded, const data::Source& source, const data::Batch& batch,
           const torch::Tensor& outputs, Judgement& judgement) {
  const engine::TaskSpec spec = task_spec(loaded.options());
  const torch::Tensor losses = engine::sample_losses(spec, *loaded.task, outputs, batch);  // float32 [B]
  const torch::Tensor predictions = loaded.task->predictions(outputs).to(torch::kCPU).contiguous();
  torch::Tensor probabilities, best, predicted;
  if (source.num_targets() == 0) {
    probabilities = class_probabilities(predictions).contiguous();
    std::tie(best, predicted) = probabilities.max(1);
  }
  for (int64_t i = 0; i < losses.size(0); ++i) {
    const auto at = static_cast<size_t>(batch.samples[static_cast<size_t>(i)]);
    judgement.loss_sum[at] = std::max(0.0, judgement.loss_sum[at]) + double{losses.data_ptr<float>()[i]};
    if (source.num_targets() == 0) {
      judgement.predicted[at] = static_cast<int32_t>(predicted.data_ptr<int64_t>()[i]);
      judgement.confidence[at] = best.data_ptr<float>()[i];
      judgement.in_label[at] =
          probabilities.data_ptr<float>()[i * probabilities.size(1) + source.label(static_cast<int64_t>(at))];
    } else {
      const float* const row = predictions.data_ptr<float>() + i * predictions.size(1);
      std::copy_n(row, predictions.size(1),
                  judgement.predictions.begin() + static_cast<int64_t>(at) * predictions.size(1));
    }
  }
}

Judgement empty_judgement(const data::Source& source) {
  const auto n = static_cast<size_t>(source.size());
  Judgement judgement;
  judgement.loss_sum.assign(n, kNotJudged);
  if (source.num_targets() > 0) {
    judgement.predictions.assign(n * static_cast<size_t>(source.num_targets()), 0);
  } else {
    judgement.predicted.assign(n, 0);
    judgement.confidence.assign(n, 0);
    judgement.in_label.assign(n, 0);
  }
  return judgement;
}

/// Labels for which another class is predicted with the confidence that is usual for that class: the diagonal is left
/// out of the "confident joint" of Northcutt, Jiang, Chuang, "Confident Learning", JAIR 2021.
int64_t estimated_wrong(const data::Source& source, const Judgement& judgement) {
  const auto classes = static_cast<size_t>(source.num_classes());
  std::vector<double> usual(classes), count(classes);
  for (int64_t i = 0; i < source.size(); ++i) {
    const auto at = static_cast<size_t>(i), label = static_cast<size_t>(source.label(i));
    if (judgement.loss_sum[at] < 0) continue;
    usual[label] += judgement.in_label[at];
    ++count[label];
  }
  int64_t wrong = 0;
  for (int64_t i = 0; i < source.size(); ++i) {
    const auto at = static_cast<size_t>(i), predicted = static_cast<size_t>(judgement.predicted[at]);
    if (judgement.loss_sum[at] < 0 || predicted >= classes || static_cast<int64_t>(predicted) == source.label(i))
      continue;
    wrong += count[predicted] > 0 && judgement.confidence[at] >= usual[predicted] / count[predicted] ? 1 : 0;
  }
  return wrong;
}

int64_t agreed_labels(const data::Source& source, const Judgement& judgement) {
  int64_t agreed = 0;
  for (int64_t i = 0; i < source.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    agreed += judgement.loss_sum[at] >= 0 && judgement.predicted[at] == source.label(i) ? 1 : 0;
  }
  return agreed;
}

std::string predicted_text(const data::Source& source, const Judgement& judgement, size_t at) {
  if (source.num_targets() == 0) {
    const auto predicted = static_cast<size_t>(judgement.predicted[at]);
    return predicted < source.class_names().size() ? core::printable(source.class_names()[predicted])
                                                   : core::format("{}", predicted);
  }
  constexpr size_t kShown = 6;
  const auto targets = static_cast<size_t>(source.num_targets());
  std::string text;
  for (size_t k = 0; k < std::min(kShown, targets); ++k) {
    text += core::format("{}{:.4g}", k > 0 ? " " : "", judgement.predictions[at * targets + k]);
  }
  return targets > kShown ? text + " ..." : text;
}

SplitSuspects suspects_of(const data::Source& source, int64_t split, const Judgement& judgement, size_t checkpoints,
                          int64_t listed) {
  SplitSuspects suspects;
  std::vector<size_t> order;
  for (size_t i = 0; i < judgement.loss_sum.size(); ++i) {
    if (judgement.loss_sum[i] >= 0) order.push_back(i);
  }
  suspects.judged = static_cast<int64_t>(order.size());
  suspects.estimated_wrong = source.num_targets() == 0 ? estimated_wrong(source, judgement) : -1;
  suspects.agreed = source.num_targets() == 0 ? agreed_labels(source, judgement) : -1;
  // A label that the run predicts in the end is not a suspect, however large its loss was on the way.
  const auto agrees = [&](size_t i) {
    return source.num_targets() == 0 && judgement.predicted[i] == source.label(static_cast<int64_t>(i));
  };
  order.erase(std::remove_if(order.begin(), order.end(), agrees), order.end());
  const size_t named = std::min(order.size(), static_cast<size_t>(listed));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(named), order.end(),
                    [&](size_t a, size_t b) {
                      const double first = judgement.loss_sum[a], second = judgement.loss_sum[b];
                      return first != second ? first > second : a < b;
                    });
  for (size_t i = 0; i < named; ++i) {
    const size_t at = order[i];
    suspects.most_suspect.push_back({{split, static_cast<int64_t>(at)},
                                     judgement.loss_sum[at] / static_cast<double>(checkpoints),
                                     predicted_text(source, judgement, at),
                                     judgement.confidence.empty() ? std::nan("") : double{judgement.confidence[at]}});
  }
  return suspects;
}

/// Paths of the checkpoints that a run has kept, or of the one that is named; of many some that are spread evenly.
/// Throws Error{no_input} where there is none.
std::vector<std::string> scoring_checkpoints(const std::string& run_or_checkpoint) {
  if (core::file_exists(run_or_checkpoint + "/manifest.json")) return {run_or_checkpoint};
  const engine::CheckpointFiles files(run_or_checkpoint + "/checkpoints");
  std::vector<int64_t> updates = files.list();
  std::sort(updates.begin(), updates.end());
  if (updates.empty()) {
    throw core::Error(core::ErrorKind::no_input, "no checkpoint in " + core::printable(run_or_checkpoint),
                      "name a run directory (it holds checkpoints/) or a checkpoint (it holds manifest.json)");
  }
  std::vector<std::string> paths;
  const size_t taken = std::min(kMaxCheckpoints, updates.size());
  for (size_t i = 0; i < taken; ++i) {
    const size_t at = taken == 1 ? updates.size() - 1 : i * (updates.size() - 1) / (taken - 1);
    paths.push_back(files.path_of(updates[at]));
  }
  return paths;
}

/// Evaluates each of `checkpoints` on every split. `loaded`: its network is built for the first of them; it is left
/// with the weights of the last. `listed`: how many suspects of each split are named. Throws core::StopRequested.
std::vector<SplitSuspects> find_label_suspects(LoadedModel& loaded, const std::vector<std::string>& checkpoints,
                                               const std::vector<data::SplitToAudit>& splits, int64_t listed) {
  const config::ResolvedOptions& options = loaded.options();
  std::vector<Judgement> judgements;
  for (const data::SplitToAudit& split : splits) judgements.push_back(empty_judgement(*split.source));
  for (const std::string& checkpoint : checkpoints) {
    core::log_info("scoring   {}", core::printable(checkpoint));
    engine::load_weights(*loaded.model, engine::load_saved_model(checkpoint).weights, checkpoint);
    for (size_t i = 0; i < splits.size(); ++i) {
      const auto feed = evaluation_feed(options, splits[i].source, loaded.device);
      engine::predict(*loaded.model, *feed, loaded.precision, options.train.tta,
                      [&](const data::Batch& batch, const torch::Tensor& outputs) {
                        judge(loaded, *splits[i].source, batch, outputs, judgements[i]);
                      });
    }
  }
  std::vector<SplitSuspects> suspects;
  for (size_t i = 0; i < splits.size(); ++i) {
    suspects.push_back(
        suspects_of(*splits[i].source, static_cast<int64_t>(i), judgements[i], checkpoints.size(), listed));
  }
  return suspects;
}

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
    core::log_info("checking {}/{} samples  {} samples/s", core::count_text(done), core::count_text(total),
                   core::count_text(static_cast<int64_t>(per_second)));
  }

 private:
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
};

/// The audited data set, and its options.
struct AuditPlan {
  std::optional<LoadedModel> scorer;     ///< a network of a run, whose options hold where none are given
  std::vector<std::string> checkpoints;  ///< checkpoints of that run
  std::optional<Settings> files;         ///< for looking at the files, when no network computes
};

AuditPlan plan_of(const Context& context, const AuditFlags& flags) {
  config::Configuration& given = context.configuration;
  AuditPlan plan;
  if (!flags.run.empty()) {
    plan.checkpoints = scoring_checkpoints(flags.run);
    plan.scorer.emplace(
        load_configuration(context.line, JoinedRanks(), {plan.checkpoints.front()}, [&](config::Options& options) {
          if (!flags.dataset.empty()) config::name_data(flags.dataset, options);
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
  if (!flags.dataset.empty()) config::name_data(flags.dataset, given.options);
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
data::NamedSources splits_of(const config::DataOptions& options, std::vector<std::string>& notes) {
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
  refuse_output_over_input(flags.output, {given.options.data.data_dir}, {".html"});
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
  write_result("-", flags.json ? core::json_page(audit_json(audited)) : core::terminal_text(audit_text(audited)));
  if (!flags.output.empty()) core::log_info("written: {}", core::printable(flags.output));
  return {core::kExitOk, "audited"};
}

}  // namespace stoker::train
