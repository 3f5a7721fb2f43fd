// SPDX-License-Identifier: Apache-2.0
// `train blame`: where a divergence or a spike began: update, samples, layer.
#include <algorithm>
#include <cmath>
#include <memory>

#include "app/app.h"
#include "app/output/result_output.h"
#include "app/replay/fault_search.h"
#include "app/replay/update_files.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"

namespace stoker::app {
namespace {

using core::format;
using core::Json;

constexpr int64_t kUpdatesBefore = 20;  // updates before the end, at least, of which it is judged

/// A checkpoint with some updates between it and the end of what is known; "": the beginning.
std::string start_of(const RecordedRun& run, int64_t end) {
  return end > kUpdatesBefore ? run.checkpoint_before(end - kUpdatesBefore) : "";
}

/// The newest checkpoint after the one that `part` begins with that was written under other options: what follows was
/// computed from there. "": there is none.
std::string last_of_other_options(const RecordedRun& run, const Recomputation& part) {
  for (auto found = run.checkpoints.rbegin(); found != run.checkpoints.rend() && found->first > part.at().updates;
       ++found) {
    if (found->first < run.updates && !part.differences(found->second).empty()) return found->second;
  }
  return "";
}

Json json_of(const Blame& blame, const Recomputation& part, const RecordedRun& run, int64_t from, int64_t to) {
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  Json json = {{"run", core::printable(run.path)}, {"watched", {{"from", from + 1}, {"to", to}}}, {"found", nullptr}};
  if (blame.kind == Blame::Kind::nothing) return json;
  Json samples = Json::array();
  for (const SampleRecord& sample : blame.samples) {
    samples.push_back({{"sample", sample.sample},
                       {"name", core::printable(part.source().relative_name(sample.sample))},
                       {"truth", truth_text(sample, part.source())},
                       {"loss", number(sample.loss)},
                       {"image_is_finite", sample.is_finite}});
  }
  json["found"] = {{"kind", blame.kind == Blame::Kind::divergence ? "divergence" : "spike"},
                   {"update", blame.began.update},
                   {"epoch", blame.began.epoch},
                   {"not_finite_at", blame.not_finite_at > 0 ? Json(blame.not_finite_at) : Json(nullptr)},
                   {"cause", blame.cause},
                   {"layer", blame.layer.empty() ? Json(nullptr) : Json(blame.layer)},
                   {"learning_rate", blame.began.learning_rate},
                   {"loss", number(blame.began.loss)},
                   {"gradient_norm", number(blame.began.gradient_norm)},
                   {"samples", samples}};
  return json;
}

/// "0.693", "NaN" or "infinite".
std::string figure_text(double value) {
  if (std::isnan(value)) return "NaN";
  return std::isinf(value) ? "infinite" : core::format("{:.4g}", value);
}

void say(const Blame& blame, const Recomputation& part, const RecordedRun& run, int64_t from, int64_t to) {
  core::log_info("watched   updates {} to {} of {}, computed again", from + 1, to, core::printable(run.path));
  if (blame.kind == Blame::Kind::nothing) {
    core::log_info("found     nothing: every loss, gradient and weight is finite, and none stands out");
    return;
  }
  core::log_info("began     epoch {}, update {}: {}", blame.began.epoch, blame.began.update, blame.cause);
  if (blame.not_finite_at > 0) {
    core::log_info("diverged  update {} is the first with numbers that are not finite", blame.not_finite_at);
  }
  core::log_info("figures   loss {}, gradient norm {}, learning rate {:.4g}", figure_text(blame.began.loss),
                 figure_text(blame.began.gradient_norm), blame.began.learning_rate);
  if (!blame.layer.empty()) core::log_info("layer     {}", blame.layer);
  for (const SampleRecord& sample : blame.samples) {
    core::log_info("sample    {}  {}  loss {}{}", core::printable(part.source().relative_name(sample.sample)),
                   truth_text(sample, part.source()), figure_text(sample.loss),
                   sample.is_finite ? "" : "  holds NaN or infinity");
  }
  core::log_info("next      train replay {} --update {}", core::printable(run.path), blame.began.update);
}

}  // namespace

Outcome blame(const Invocation& invocation) {
  const config::CommandLine& command = invocation.configuration.command;
  if (command.json) log_to_stderr();
  const RecordedRun run = read_recorded_run(command.checkpoint);
  const CommandWords words{invocation.argc, invocation.argv};
  const int64_t to = std::max<int64_t>(1, run.updates);
  std::string checkpoint = start_of(run, run.updates);
  auto opened = std::make_unique<Recomputation>(words, run, checkpoint, to);
  const std::string changed = last_of_other_options(run, *opened);
  if (!changed.empty()) {
    checkpoint = changed;
    opened = std::make_unique<Recomputation>(words, run, checkpoint, to);
  }
  Recomputation& part = *opened;
  const int64_t from = part.at().updates;
  // What diverged at an epoch's end has no record of its last updates.
  const int64_t known = std::max(from, run.updates);
  const int64_t last = (known / part.plan().updates() + 1) * part.plan().updates();
  core::log_info("from      {} (up to {} updates to compute again)", checkpoint.empty() ? "the beginning" : checkpoint,
                 last - from);
  const std::vector<WatchedUpdate> updates = watch_updates(part, last);
  const Blame found = find_fault(updates);
  say(found, part, run, from, part.at().updates);
  if (command.json) write_result("-", json_of(found, part, run, from, part.at().updates).dump(1) + "\n");
  return {core::kExitOk, found.kind == Blame::Kind::nothing ? "nothing-found" : "found", found.began.update};
}

}  // namespace stoker::app
