// SPDX-License-Identifier: Apache-2.0
#include "engine/run/run_progress.h"

#include <cmath>
#include <string_view>

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
  visit("best_value", state.best_value);
  visit("best_epoch", state.best_epoch);
  visit("best_updates", state.best_updates);
  visit("epochs_without_improvement", state.epochs_without_improvement);
  visit("pieces", state.micro_batches);
  visit("train_seconds", state.train_seconds);
}

/// JSON would turn 1.5 or true into a count. The smallest value that a count can have is the one it starts with.
bool read_field(const core::Json& value, int64_t& field) {
  if (!value.is_number_integer() || value.get<int64_t>() < field) return false;
  field = value.get<int64_t>();
  return true;
}

bool read_field(const core::Json& value, double& field) {
  if (!value.is_number()) return false;
  field = value.get<double>();
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

bool RunProgress::note_result(double value, bool lower_is_better, double min_delta) {
  const double gain = lower_is_better ? best_value - value : value - best_value;
  const bool first = best_epoch < 0;
  const bool best = std::isfinite(value) && (first || gain > 0);
  const bool improved = std::isfinite(value) && (first || gain > min_delta);
  epochs_without_improvement = improved ? 0 : epochs_without_improvement + 1;
  if (best) {
    best_value = value;
    best_epoch = update_in_epoch == 0 ? epoch - 1 : epoch;
    best_updates = updates;
  }
  return best;
}

void RunProgress::begin_next_epoch() {
  ++epoch;
  update_in_epoch = 0;
  epoch_loss_sum = epoch_score_sum = 0;
  epoch_images = 0;
}

core::Json RunProgress::to_json() const {
  core::Json json = core::Json::object();
  for_each_field(*this, [&](const char* name, const auto& field) { json[name] = field; });
  return json;
}

RunProgress RunProgress::from_json(const core::Json& json, const std::string& what) {
  RunProgress state;
  for_each_field(state, [&](const char* name, auto& field) {
    const auto found = json.find(name);
    if (found == json.end() && std::string_view(name) == "pieces") return;
    if (found == json.end() || !read_field(*found, field)) {
      throw core::Error(core::ErrorKind::data, what + ": the training state lacks a usable field " + name);
    }
  });
  return state;
}

}  // namespace stoker::engine
