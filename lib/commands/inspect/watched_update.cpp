// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/watched_update.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/log.h"
#include "engine/checkpoint/trained_state.h"

namespace stoker::train {
namespace {

bool all_finite(const torch::Tensor& tensor) { return at::isfinite(tensor).all().item<bool>(); }

std::string name_of(const model::ImageModel& model, const torch::nn::Module& part) {
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    if (item.value().get() == &part) return item.key();
  }
  return "";
}

/// For its lifetime the stages of a network are watched.
class StageWatch {
 public:
  explicit StageWatch(model::ImageModel& network, bool may_watch) : model_(network), watches_(may_watch) {
    if (!watches_) return;
    model_.set_stage_runner(
        [this](torch::nn::Module& stage, const model::StageForward& forward, const torch::Tensor& x) {
          torch::Tensor output = forward(x);
          if (first_.empty() && !all_finite(output.detach()))
            first_ = all_finite(x.detach()) ? name_of(model_, stage) : kBefore;
          return output;
        });
  }
  ~StageWatch() {
    if (watches_) model_.set_stage_runner({});
  }
  StageWatch& operator=(StageWatch&&) = delete;  // not copied, not moved

  /// The first stage whose output is not finite although its input is; "" for none or when it was before all stages.
  std::string first() const { return first_ == kBefore ? "" : first_; }
  void forget() { first_.clear(); }

 private:
  static constexpr const char* kBefore = "(before)";
  model::ImageModel& model_;
  const bool watches_;
  std::string first_;
};

std::string first_not_finite(const model::ImageModel& model) {
  for (const model::NamedTensor& entry : model::state_of(model)) {
    if (entry.tensor.is_floating_point() && !all_finite(entry.tensor.detach())) return entry.name;
  }
  return "";
}

optim::LossScale loss_scale_of(const engine::Learner& learner) {
  if (!learner.scaler->enabled()) return {};
  const torch::Tensor figures = learner.scaler->figures().to(torch::kCPU);
  return optim::GradScaler::read(figures.data_ptr<double>());
}

/// A checkpoint that cannot be read is ignored.
void compare_with_checkpoint(Recomputation& part, const RecordedRun& run, WatchedUpdate& update) {
  const auto checkpoint = run.checkpoints.find(update.update);
  if (checkpoint == run.checkpoints.end()) return;
  try {
    const engine::StateDifference difference =
        engine::compare_states(engine::trained_state(part.learner()), engine::read_trained_state(checkpoint->second));
    if (difference.different.empty()) return;
    update.checkpoint = checkpoint->second;
    update.changed_tensor = difference.most_different;
    update.changed_by = difference.most;
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::data && error.kind() != core::ErrorKind::no_input) throw;
    core::log_warning("not compared: {}", error.text());
  }
}

}  // namespace

bool WatchedUpdate::is_finite() const {
  return std::isfinite(loss) && (is_skipped || std::isfinite(gradient_norm)) && stage.empty() && tensor.empty();
}

bool ends_by_skipping(const std::vector<WatchedUpdate>& updates, const engine::SkipLimits& limits) {
  if (updates.empty() || !updates.back().is_skipped || !updates.back().is_finite()) return false;
  const auto taken = std::find_if(updates.rbegin(), updates.rend(), [](const auto& one) { return !one.is_skipped; });
  const int64_t in_row = taken - updates.rbegin();
  return (limits.max_skipped > 0 && in_row >= limits.max_skipped) || updates.back().next_scale < limits.min_scale;
}

void watch_updates(Recomputation& part, const RecordedRun& run, int64_t last, const engine::SkipLimits& limits,
                   std::vector<WatchedUpdate>& updates) {
  StageWatch stages(*part.learner().model, !part.options().model.grad_checkpointing);
  const auto should_continue = [&] { return updates.empty() || updates.back().is_finite(); };
  while (part.at().updates < last && should_continue() && !ends_by_skipping(updates, limits)) {
    UpdateRecorder record(part.task(), /*keeps_images=*/false);
    const double rate_before = part.at().learning_rate;
    const optim::LossScale scale_before = loss_scale_of(part.learner());
    stages.forget();
    part.advance(&record);
    const optim::LossScale scale_after = loss_scale_of(part.learner());
    const engine::RunProgress at = part.at();
    WatchedUpdate update;
    update.update = at.updates;
    update.epoch = at.epoch + 1;
    update.learning_rate = at.learning_rate;
    update.rate_before = rate_before;
    update.loss_scale = scale_before.scale;
    update.next_scale = scale_after.scale;
    update.is_skipped = scale_after.skipped > scale_before.skipped;
    update.samples = record.samples();
    if (!update.samples.empty()) {
      update.loss = record.mean_loss();
      update.gradient_norm = record.gradient_norm();
    }
    update.layers = by_layer(record.gradients());
    update.stage = stages.first();
    update.tensor = first_not_finite(*part.learner().model);
    compare_with_checkpoint(part, run, update);
    updates.push_back(std::move(update));
  }
}

}  // namespace stoker::train
