// SPDX-License-Identifier: Apache-2.0
// `train inspect diff`: what differs between two runs, or two checkpoints, and where the runs part.
#include "commands/inspect/inspect.h"
#include "commands/inspect/run_difference.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "engine/checkpoint/trained_state.h"
#include "train/failure/result_output.h"

namespace stoker::train {
namespace {

using core::Error;
using core::format;
using core::Json;

bool is_checkpoint(const std::string& path) { return core::file_exists(path + "/manifest.json"); }

std::string shown_or_none(const std::string& text) { return text.empty() ? "(not set)" : core::printable(text); }

Json texts_json(const std::vector<DifferentText>& texts) {
  Json list = Json::array();
  for (const DifferentText& text : texts) list.push_back({{"name", text.name}, {"a", text.a}, {"b", text.b}});
  return list;
}

void log_setup(const DifferentSetup& setup, Json& json) {
  core::log_info("options   {}", setup.options.empty() ? "the same" : "");
  for (const DifferentText& option : setup.options) {
    core::log_info("  --{}: {} / {}", option.name, shown_or_none(option.a), shown_or_none(option.b));
  }
  core::log_info("data      {}", !setup.same_data   ? "unknown"
                                 : *setup.same_data ? "the same names, sizes and labels"
                                                    : "names, sizes or labels differ");
  core::log_info("program   {}", setup.program.empty() ? "the same" : "");
  for (const DifferentText& fact : setup.program) {
    core::log_info("  {}: {} / {}", fact.name, shown_or_none(fact.a), shown_or_none(fact.b));
  }
  json["options"] = texts_json(setup.options);
  json["program"] = texts_json(setup.program);
  json["same_data"] = setup.same_data ? Json(*setup.same_data) : Json(nullptr);
}

bool is_same(const DifferentSetup& setup) {
  return setup.options.empty() && setup.program.empty() && setup.same_data.value_or(true);
}

/// Returns whether nothing differs.
bool diff_checkpoints(const std::string& a, const std::string& b, Json& json) {
  const DifferentSetup setup = compare_setups(a, b);
  log_setup(setup, json);
  const engine::StateDifference state =
      engine::compare_states(engine::read_trained_state(a), engine::read_trained_state(b));
  json["tensors"] = {{"compared", state.tensors}, {"different", state.different}, {"only_one", state.only_one}};
  if (state.is_equal()) {
    core::log_info("tensors   all {} are the same, to the bit", state.tensors);
  } else {
    core::log_info("tensors   {} of {} differ", state.different.size(), state.tensors);
    if (!state.different.empty()) {
      core::log_info("  the first is {}, by up to {:.3g}", state.different.front(), state.largest);
    }
    for (const std::string& name : state.only_one) core::log_info("  {} is in one alone, or has another shape", name);
  }
  return state.is_equal() && is_same(setup);
}

void log_divergence(const DivergencePoint& divergence, const Window& window, Json& json) {
  if (divergence.what.empty()) {
    core::log_info("diverged  after update {}, at update {} at the latest; recomputed, both are the same", window.equal,
                   window.different);
    return;
  }
  if (divergence.update == 0) {
    core::log_info("diverged  before the first update: they start from other weights");
  } else {
    core::log_info("diverged  epoch {}, update {}", divergence.epoch, divergence.update);
  }
  for (const std::string& line : divergence.what) core::log_info("  {}", core::printable(line));
  json["parted"] = {{"update", divergence.update},
                    {"epoch", divergence.epoch},
                    {"tensor", divergence.tensor.empty() ? Json(nullptr) : Json(divergence.tensor)},
                    {"what", divergence.what}};
}

bool diff_runs(const Context& context, const std::string& path_a, const std::string& path_b, Json& json) {
  const RecordedRun a = read_recorded_run(path_a), b = read_recorded_run(path_b);
  bool same = true;
  if (!a.checkpoints.empty() && !b.checkpoints.empty()) {
    const DifferentSetup setup = compare_setups(a.checkpoints.rbegin()->second, b.checkpoints.rbegin()->second);
    log_setup(setup, json);
    same = is_same(setup);
  }
  const Window window = compare_records(a, b);
  json["records"] = {{"compared", window.compared}, {"equal", window.equal}, {"different", window.different}};
  json["parted"] = nullptr;
  if (window.compared == 0) {
    throw Error(core::ErrorKind::data, "the runs have no record of the same update",
                "train both with --digest-every N, or --save-every with the same number of updates");
  }
  if (window.different == 0) {
    core::log_info("records   the {} updates of which both have one agree: the weights after update {} are the same",
                   window.compared, window.equal);
    return same;
  }
  core::log_info("records   agree up to update {}, differ at update {}: recomputing {} in both", window.equal,
                 window.different, core::count_text(window.different - window.equal));
  try {
    log_divergence(find_divergence(context.line, a, b, window), window, json);
  } catch (const Error& error) {
    core::log_warning("the updates in between cannot be recomputed: {}", error.text());
    core::log_info("diverged  after update {}, at update {} at the latest", window.equal, window.different);
  }
  return false;
}

}  // namespace

Outcome diff(const Context& context, const DiffFlags& flags) {
  if (flags.json) log_to_stderr();
  const std::string &a = flags.a, &b = flags.b;
  if (is_checkpoint(a) != is_checkpoint(b)) {
    throw Error(core::ErrorKind::usage, "one is a run, the other a checkpoint", "name two runs, or two checkpoints");
  }
  core::log_info("a         {}", core::printable(a));
  core::log_info("b         {}", core::printable(b));
  Json json = {{"a", core::printable(a)}, {"b", core::printable(b)}};
  const bool same = is_checkpoint(a) ? diff_checkpoints(a, b, json) : diff_runs(context, a, b, json);
  json["same"] = same;
  if (flags.json) write_result("-", core::json_page(json));
  return {core::kExitOk, same ? "same" : "different"};
}

}  // namespace stoker::train
