// SPDX-License-Identifier: Apache-2.0
// `train inspect blame`: where a divergence or a spike began: update, samples, layer.
#include <algorithm>
#include <cmath>
#include <memory>

#include "commands/inspect/fault_search.h"
#include "commands/inspect/inspect.h"
#include "commands/inspect/update_record.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "train/failure/result_output.h"

namespace stoker::train {
namespace {

using core::format;
using core::Json;

constexpr int64_t kUpdatesBefore = 20;  // at least, by which a spike is judged
constexpr int64_t kUpdatesAfter = 8;    // that are looked at behind one
constexpr size_t kReportsBeforeEnd = 3;
constexpr double kReportSpike = 2;  // times the median: a report is a mean, in which a spike is smaller

/// The updates to examine: after `from`, up to `last`.
struct WatchedRange {
  int64_t from = 0;  ///< that of a checkpoint, or 0
  int64_t last = 0;  ///< 0: to the end of the epoch, which nobody recorded
};

/// A checkpoint with some updates between it and `update`, of which that is judged.
int64_t start_before(const RecordedRun& run, int64_t update) {
  const auto after = run.checkpoints.upper_bound(update - kUpdatesBefore);
  return after == run.checkpoints.begin() ? 0 : std::prev(after)->first;
}

/// Up to `requested`, where it is given; else what led to the end of a run that failed, or the largest spike that its
/// reports show.
WatchedRange window_of(const RecordedRun& run, int64_t requested) {
  if (requested > 0) return {start_before(run, requested), std::min(requested, run.updates)};
  std::vector<double> losses;
  for (const RecordedReport& report : run.reports) losses.push_back(report.loss);
  std::vector<Episode> episodes = episodes_of(losses, kReportSpike);
  const auto before = [&](const Episode& episode) {
    return episode.begin == 0 ? 0 : run.reports[episode.begin - 1].updates;
  };
  if (run.failed) {
    const size_t skips = run.first_report_of_skips();
    if (skips < run.reports.size()) return {start_before(run, skips > 0 ? run.reports[skips - 1].updates : 0), 0};
    const bool led_there = !episodes.empty() && episodes.back().end + kReportsBeforeEnd >= losses.size();
    return {start_before(run, led_there ? before(episodes.back()) + 1 : run.updates), 0};
  }
  const auto worst = std::max_element(episodes.begin(), episodes.end(),
                                      [](const Episode& a, const Episode& b) { return a.most < b.most; });
  if (worst == episodes.end()) return {start_before(run, run.updates), run.updates};
  return {start_before(run, before(*worst) + 1),
          std::min(run.reports[worst->peak].updates + kUpdatesAfter, run.updates)};
}

/// Where the epoch ends in which the run was seen last: what diverged there has no record of its last updates.
int64_t end_of_epoch(const RecordedRun& run, const Recomputation& part) {
  const int64_t per_epoch = part.plan().updates();
  return std::min((run.updates / per_epoch + 1) * per_epoch, part.options().train.epochs * per_epoch);
}

Json json_of(const Blame& blame, const Recomputation& part, const RecordedRun& run, int64_t from, int64_t to) {
  const std::string libraries = changed_libraries(run, from + 1, part.options());
  Json json = {{"run", core::printable(run.path)},
               {"watched", {{"from", from + 1}, {"to", to}}},
               {"other_libraries", libraries.empty() ? Json(nullptr) : Json(libraries)},
               {"found", nullptr}};
  if (blame.kind == Blame::Kind::nothing) return json;
  Json samples = Json::array();
  for (const SampleRecord& sample : blame.samples) {
    samples.push_back({{"sample", sample.sample},
                       {"name", core::printable(part.source().relative_name(sample.sample))},
                       {"truth", truth_text(sample, part.source())},
                       {"loss", sample.loss},
                       {"image_is_finite", sample.is_finite}});
  }
  json["found"] = {{"kind", blame.kind == Blame::Kind::divergence ? "divergence" : "spike"},
                   {"update", blame.began.update},
                   {"epoch", blame.began.epoch},
                   {"not_finite_at", blame.not_finite_at > 0 ? Json(blame.not_finite_at) : Json(nullptr)},
                   {"cause", blame.cause},
                   {"layer", blame.layer.empty() ? Json(nullptr) : Json(blame.layer)},
                   {"learning_rate", blame.began.learning_rate},
                   {"loss", blame.began.loss},
                   {"gradient_norm", blame.began.gradient_norm},
                   {"loss_scale", blame.began.loss_scale > 0 ? Json(blame.began.loss_scale) : Json(nullptr)},
                   {"samples", samples}};
  return json;
}

/// "0.693", "NaN" or "infinite".
std::string figure_text(double value) {
  if (std::isnan(value)) return "NaN";
  return std::isinf(value) ? "infinite" : core::format("{:.4g}", value);
}

void log_blame(const Blame& blame, const std::vector<WatchedUpdate>& updates, const Recomputation& part,
               const RecordedRun& run, int64_t from) {
  const int64_t to = updates.empty() ? from : updates.back().update;
  core::log_info("recomputed updates {} to {} of {}", from + 1, to, core::printable(run.path));
  const int64_t skipped = std::count_if(updates.begin(), updates.end(), [](const auto& one) { return one.is_skipped; });
  if (skipped > 0) core::log_info("skipped   {} of them, whose float16 gradients overflowed", skipped);
  if (blame.kind == Blame::Kind::nothing) {
    core::log_info("found     nothing: every loss, gradient and weight is finite, and none stands out");
    return;
  }
  core::log_info("began     epoch {}, update {}: {}", blame.began.epoch, blame.began.update, blame.cause);
  if (blame.not_finite_at > 0) {
    core::log_info("diverged  update {} is the first with numbers that are not finite", blame.not_finite_at);
  }
  core::log_info("figures   loss {}, gradient norm {}, learning rate {:.4g}{}", figure_text(blame.began.loss),
                 figure_text(blame.began.gradient_norm), blame.began.learning_rate,
                 blame.began.loss_scale > 0 ? format(", loss scale {:.4g}", blame.began.loss_scale) : "");
  if (!blame.layer.empty()) core::log_info("layer     {}", blame.layer);
  for (const SampleRecord& sample : blame.samples) {
    core::log_info("sample    {}  {}  loss {}{}", core::printable(part.source().relative_name(sample.sample)),
                   truth_text(sample, part.source()), figure_text(sample.loss),
                   sample.is_finite ? "" : "  holds NaN or infinity");
  }
  if (blame.by_skipping) {
    core::log_info("advice    {}", advice_about_skips(updates, part.options().precision.init_scale));
  }
  core::log_info("next      train inspect replay {} --update {}", core::printable(run.path), blame.began.update);
}

}  // namespace

Outcome blame(const Context& context, const BlameFlags& flags) {
  if (flags.json) log_to_stderr();
  const RecordedRun run = read_recorded_run(flags.run);
  require_done(flags.update, run);
  const WatchedRange window = window_of(run, flags.update);
  std::unique_ptr<Recomputation> opened;
  std::vector<WatchedUpdate> updates;
  const bool may_end_by_skipping =
      run.failed && flags.update == 0 && (run.reports.empty() || run.first_report_of_skips() < run.reports.size());
  engine::SkipLimits limits;  // none
  int64_t at = window.from, last = window.last;
  // From checkpoint to checkpoint: each part has options of its own, and was computed from what the checkpoint before
  // it holds, whatever that is.
  do {
    opened.reset();
    const std::string checkpoint = run.checkpoint_before(at);
    opened = std::make_unique<Recomputation>(context.line, run, checkpoint, at + 1);
    last = last == 0 ? end_of_epoch(run, *opened) : std::min(last, opened->last_update());
    if (updates.empty()) {
      core::log_info("from      {} (up to {} updates to recompute)",
                     checkpoint.empty() ? "the start" : core::printable(checkpoint), last - at);
      const std::string libraries = changed_libraries(run, at + 1, opened->options());
      if (!libraries.empty()) core::log_info("note      other libraries read and compute it: {}", libraries);
    }
    const auto next = run.checkpoints.upper_bound(at);
    const int64_t to = next == run.checkpoints.end() ? last : std::min(last, next->first);
    const config::ResolvedOptions& options = opened->options();
    if (may_end_by_skipping) limits = {options.precision.min_scale, options.precision.max_skipped};
    watch_updates(*opened, run, to, limits, updates);
    at = opened->at().updates;
    if (!updates.empty() && !updates.back().checkpoint.empty()) {
      core::log_info("note      {} is not reproduced by its updates: {} differs by up to {:.3g}",
                     core::printable(updates.back().checkpoint), updates.back().changed_tensor,
                     updates.back().changed_by);
    }
  } while (at < last && updates.back().is_finite() && !ends_by_skipping(updates, limits));
  const Recomputation& part = *opened;
  const Blame found = find_fault(updates, limits);
  log_blame(found, updates, part, run, window.from);
  if (flags.json) write_result("-", core::json_page(json_of(found, part, run, window.from, at)));
  return {core::kExitOk, found.kind == Blame::Kind::nothing ? "nothing-found" : "found", found.began.update};
}

}  // namespace stoker::train
