// SPDX-License-Identifier: Apache-2.0
#include "engine/train_state.h"

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
  visit("train_seconds", state.train_seconds);
}

}  // namespace

core::Json TrainState::to_json() const {
  core::Json json = core::Json::object();
  for_each_field(*this, [&](const char* name, const auto& field) { json[name] = field; });
  return json;
}

TrainState TrainState::from_json(const core::Json& json, const std::string& what) {
  TrainState state;
  for_each_field(state, [&](const char* name, auto& field) {
    try {
      json.at(name).get_to(field);
    } catch (const core::Json::exception&) {
      throw core::Error(core::ErrorKind::data, what + ": the training state lacks a usable field " + name);
    }
  });
  return state;
}

}  // namespace stoker::engine
