// SPDX-License-Identifier: Apache-2.0
#include "engine/update_step.h"

#include "optim/gradients.h"

namespace stoker::engine {

Forward UpdateStep::accumulate(const data::Batch& batch, int64_t images_in_update, const Mix& mix) {
  Forward out;
  {
    const AutocastScope autocast(settings_.precision);
    out.outputs = trainee_.model->forward(mixed_images(batch.images, mix));
    out.loss_sum = task_.training_loss_sum(out.outputs, batch);
    out.judged_by = batch;
    if (mix.own_share < 1) {
      const data::Batch others = with_partners_targets(batch);
      out.loss_sum = mix.own_share * out.loss_sum + (1 - mix.own_share) * task_.training_loss_sum(out.outputs, others);
      if (mix.own_share < 0.5) out.judged_by = others;
    }
  }
  done(StepPart::forward);
  trainee_.scaler->scaled(out.loss_sum / static_cast<double>(images_in_update)).backward();
  done(StepPart::backward);
  return out;
}

void UpdateStep::correct_mean(int64_t planned, int64_t images) {
  const double correction = static_cast<double>(planned) / static_cast<double>(images);
  for (torch::Tensor& gradient : trainee_.optimizer->gradients()) gradient.mul_(correction);
}

void UpdateStep::apply(double learning_rate) {
  const std::vector<torch::Tensor> gradients = trainee_.optimizer->gradients();
  if (gradients.empty()) return;
  const torch::Tensor found_inf = trainee_.scaler->unscale(gradients);
  if (settings_.clip_grad > 0) {
    gradient_norm_ = optim::clip_gradients(gradients, settings_.clip_grad, settings_.clip_mode);
  }
  trainee_.optimizer->step(learning_rate, found_inf);
  trainee_.scaler->update();
  trainee_.optimizer->zero_grad();
  if (trainee_.ema) trainee_.ema->update(*trainee_.model, found_inf);
  done(StepPart::optimizer);
}

}  // namespace stoker::engine
