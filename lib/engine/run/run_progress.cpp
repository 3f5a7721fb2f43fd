// SPDX-License-Identifier: Apache-2.0
#include "engine/run/run_progress.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "core/error.h"

namespace stoker::engine {
namespace {

/// Calls visit(name, field) for every field: reading and writing cannot disagree.
template <typename State, typename Visit>
void for_each_field(State& state, Visit visit) {
  visit("epoch", state.epoch);
  visit("update_in_epoch", state.update_in_epoch);
  visit("updates", state.updates);
  visit("images", state.images);
  visit("learning_rate", state.learning_rate);
  visit("epoch_loss_sum", state.epoch_loss_sum);
  visit("epoch_score_sum", state.epoch_score_sum);
  visit("epoch_images", state.epoch_images);
  const auto visit_evaluated = [&](const std::string& name, auto& evaluated) {
    visit(name + "_value", evaluated.value);
    visit(name + "_epoch", evaluated.epoch);
    visit(name + "_updates", evaluated.updates);
    visit(name + "_loss", evaluated.loss);
  };
  visit_evaluated("best", state.best);
  visit_evaluated("due_best", state.due_best);
  visit_evaluated("counted", state.counted);
  visit_evaluated("latest", state.latest);
  visit("epochs_without_improvement", state.epochs_without_improvement);
  visit("evaluated_updates", state.evaluated_updates);
  visit("evaluated_seconds", state.evaluated_seconds);
  visit_evaluated("plateau_best", state.plateau_best);
  visit("plateau_bad", state.plateau_bad);
  visit("plateau_rest", state.plateau_rest);
  visit("rate_cuts", state.rate_cuts);
  visit("pieces", state.micro_batches);
  visit("train_seconds", state.train_seconds);
}

/// Whether states of before have no such field.
bool came_later(const std::string& name) {
  return name == "pieces" || name == "best_loss" || name.rfind("due_best_", 0) == 0 || name.rfind("counted_", 0) == 0 ||
         name.rfind("latest_", 0) == 0 || name.rfind("evaluated_", 0) == 0 || name.rfind("plateau_", 0) == 0 ||
         name == "rate_cuts";
}

/// Fields for which older states had one record.
void fill_evaluations(RunProgress& state) {
  state.due_best = state.counted = state.best;
  state.counted.epoch = state.epoch - 1 - state.epochs_without_improvement;
  if (state.best.updates == state.updates) state.latest = state.best;
  state.evaluated_updates = state.updates;  // every epoch was evaluated
}

/// JSON would turn 1.5 or true into a count. The smallest value that a count can have is the one it starts with.
bool read_field(const core::Json& value, int64_t& field) {
  constexpr int64_t kMost = int64_t{1} << 53;  // what is computed with them stays a number
  if (!value.is_number_integer() || value.get<int64_t>() < field || value.get<int64_t>() > kMost) return false;
  field = value.get<int64_t>();
  return true;
}

bool read_field(const core::Json& value, double& field) {
  if (!value.is_number()) return false;
  field = value.get<double>();
  return true;
}

bool read_field(const core::Json& value, std::optional<double>& field) { return read_field(value, field.emplace()); }

void write_field(core::Json& json, const std::string& name, const std::optional<double>& field) {
  if (field) json[name] = *field;
}

template <typename Field>
void write_field(core::Json& json, const std::string& name, const Field& field) {
  json[name] = field;
}

/// Counts that do not fall.
bool read_field(const core::Json& value, std::vector<int64_t>& field) {
  if (!value.is_array()) return false;
  for (const core::Json& item : value) {
    int64_t count = field.empty() ? 0 : field.back();
    if (!read_field(item, count)) return false;
    field.push_back(count);
  }
  return true;
}

}  // namespace

void RunProgress::add_update(int64_t new_images, double rate, int64_t batch_micro_batches) {
  images += new_images;
  learning_rate = rate;
  micro_batches = batch_micro_batches;
  ++updates;
  ++update_in_epoch;
}

bool Evaluated::is_beaten_by(double other, bool lower_is_better, double by) const {
  return std::isfinite(other) && (!exists() || (lower_is_better ? value - other : other - value) > by);
}

bool Evaluated::gives_way_to(const Evaluated& other, bool lower_is_better) const {
  if (is_beaten_by(other.value, lower_is_better)) return true;
  return value == other.value && loss && other.loss && *other.loss < *loss;
}

bool RunProgress::note_result(double value, double loss, bool lower_is_better, double min_delta, bool is_due,
                              bool counts_evaluations) {
  // JSON has no infinity.
  const double largest = std::numeric_limits<double>::max();
  const Evaluated now = {value, update_in_epoch == 0 ? epoch - 1 : epoch, updates,
                         std::isfinite(loss) ? loss : largest};
  const bool is_best = best.gives_way_to(now, lower_is_better);
  if (is_best) best = now;
  latest = std::isfinite(value) ? now : Evaluated();
  if (!is_due) return is_best;
  if (due_best.gives_way_to(now, lower_is_better)) due_best = now;
  evaluated_updates = updates;
  const bool improves = counted.is_beaten_by(value, lower_is_better, min_delta);
  if (improves) counted = now;
  epochs_without_improvement =
      counts_evaluations && !improves ? epochs_without_improvement + 1 : now.epoch - counted.epoch;
  return is_best;
}

void RunProgress::note_for_plateau(double value, bool lower_is_better, const config::ResolvedScheduleOptions& rule) {
  const double wanted = plateau_best.value * (1 + (lower_is_better ? -rule.plateau_threshold : rule.plateau_threshold));
  const bool is_better = !plateau_best.exists() || (lower_is_better ? value < wanted : value > wanted);
  if (is_better && std::isfinite(value)) {
    plateau_best = {value, epoch, updates};
    plateau_bad = 0;
  } else {
    ++plateau_bad;
  }
  if (plateau_rest > 0) {
    --plateau_rest;
    plateau_bad = 0;
  }
  if (plateau_bad <= rule.plateau_patience) return;
  plateau_bad = 0;
  plateau_rest = rule.plateau_rest;
  rate_cuts.push_back(updates);
}

void RunProgress::begin_next_epoch() {
  ++epoch;
  begin_epoch_again();
}

void RunProgress::begin_epoch_again() {
  update_in_epoch = 0;
  epoch_loss_sum = epoch_score_sum = 0;
  epoch_images = 0;
}

core::Json RunProgress::to_json() const {
  core::Json json = core::Json::object();
  for_each_field(*this, [&](const std::string& name, const auto& field) { write_field(json, name, field); });
  return json;
}

RunProgress RunProgress::from_json(const core::Json& json, const std::string& what) {
  RunProgress state;
  for_each_field(state, [&](const std::string& name, auto& field) {
    const auto found = json.find(name);
    if (found == json.end() && came_later(name)) return;
    if (found == json.end() || !read_field(*found, field)) {
      throw core::Error(core::ErrorKind::data, what + ": the training state lacks a usable field " + name);
    }
  });
  if (json.find("latest_updates") == json.end()) fill_evaluations(state);
  return state;
}

}  // namespace stoker::engine
