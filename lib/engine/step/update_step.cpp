// SPDX-License-Identifier: Apache-2.0
#include "engine/step/update_step.h"

#include <ATen/ops/cat.h>

#include <algorithm>

#include "engine/memory/activation_arena.h"
#include "engine/step/teacher.h"
#include "optim/grad_scaler.h"

namespace stoker::engine {

namespace {

/// Rows [begin, end); `samples` stay behind.
data::Batch rows_of(const data::Batch& batch, int64_t begin, int64_t end) {
  if (begin == 0 && end == batch.image_count()) return batch;
  data::Batch rows;
  rows.images = batch.images.slice(0, begin, end);
  rows.labels = batch.labels.slice(0, begin, end);
  if (batch.targets.defined()) rows.targets = batch.targets.slice(0, begin, end);
  rows.planned_images = end - begin;
  return rows;
}

/// Before the own forward pass: the teacher's activations are gone before those come that the backward pass needs.
torch::Tensor taught_of(const Teacher& teacher, const data::Batch& batch) {
  const bool has_kept = teacher.keeps() && batch.targets.defined() && batch.targets.numel() > 0;
  return has_kept ? batch.targets : teacher.outputs(batch.images);
}

}  // namespace

PassResult UpdateStep::accumulate_micro_batch(const MicroBatch& micro_batch, StepTimer* timer,
                                              const std::function<void()>& before_backward) const {
  PassResult out;
  {
    const AutocastScope autocast(settings_.precision);
    const Teacher* const teacher = learner_.teacher.get();
    const torch::Tensor taught = teacher ? taught_of(*teacher, micro_batch.batch) : torch::Tensor();
    out.outputs = learner_.model->forward(micro_batch.batch.images);
    out.loss_sum = micro_batch.is_mixed() ? task_.mixed_loss_sum(out.outputs, micro_batch.batch, micro_batch.partners,
                                                                 micro_batch.lambda, micro_batch.shares)
                                          : task_.training_loss_sum(out.outputs, micro_batch.batch);
    if (teacher) out.loss_sum = teacher->loss_sum(out.loss_sum, out.outputs, taught);
  }
  if (timer) timer->done(StepPart::forward);
  if (before_backward) before_backward();
  learner_.scaler->scaled(out.loss_sum / static_cast<double>(micro_batch.planned_images)).backward();
  if (timer) timer->done(StepPart::backward);
  return out;
}

/// The marks of a timer would become part of the record: both passes count as the one that ends them.
PassResult UpdateStep::accumulate_by_graph(const MicroBatch& whole, StepGraph& graph) const {
  PassResult out = graph.compute(
      whole, [&](const MicroBatch& input) { return accumulate_micro_batch(input, /*timer=*/nullptr, {}); });
  if (timer_) timer_->done(StepPart::backward);
  return out;
}

Forward UpdateStep::accumulate(const data::Batch& batch, int64_t images_in_update, const Mix& mix,
                               const Along& along) const {
  const ActivationArenaScope arena;
  const int64_t images = batch.image_count(), micro_batches = std::clamp<int64_t>(images / 2, 1, micro_batches_);
  const bool is_mixed = mix.lambda < 1;
  data::Batch mixed = batch;
  mixed.images = mixed_images(batch.images, mix);
  if (learner_.teacher && learner_.teacher->keeps()) {
    mixed.targets = learner_.teacher->kept(batch);  // of classes, which have no other targets
  }
  const data::Batch partners = is_mixed ? with_partners_targets(batch) : data::Batch();
  Forward out;
  std::vector<torch::Tensor> outputs;
  for (int64_t i = 0; i < micro_batches; ++i) {
    const int64_t begin = i * images / micro_batches, end = (i + 1) * images / micro_batches;
    const MicroBatch micro_batch{rows_of(mixed, begin, end),
                                 is_mixed ? rows_of(partners, begin, end) : partners,
                                 mix.lambda,
                                 {},
                                 images_in_update};
    if (micro_batches == 1) {
      static_cast<PassResult&>(out) = along.graph
                                          ? accumulate_by_graph(micro_batch, *along.graph)
                                          : accumulate_micro_batch(micro_batch, timer_, along.before_last_backward);
      break;
    }
    // Without its graph: the activations of this micro-batch go before those of the next come.
    const bool is_last = i + 1 == micro_batches;
    PassResult result =
        accumulate_micro_batch(micro_batch, timer_, is_last ? along.before_last_backward : std::function<void()>());
    outputs.push_back(result.outputs.detach());
    out.loss_sum = i == 0 ? result.loss_sum.detach() : out.loss_sum + result.loss_sum.detach();
  }
  if (micro_batches > 1) out.outputs = at::cat(outputs);
  out.scored_against = mix.lambda < 0.5 ? partners : batch;
  if (along.watcher) along.watcher->on_batch({along.batch_in_window, batch, mixed.images, out.outputs, mix});
  return out;
}

void UpdateStep::correct_mean(int64_t planned, int64_t images) {
  const double correction = static_cast<double>(planned) / static_cast<double>(images);
  optim::multiply_gradients(learner_.optimizer->gradients(), correction);
}

void UpdateStep::apply(const optim::UpdateRates& rates) {
  const std::vector<torch::Tensor> gradients = learner_.optimizer->gradients();
  if (gradients.empty()) return;
  const torch::Tensor found_inf = learner_.scaler->unscale(gradients);
  if (settings_.clip_grad > 0) {
    gradient_norm_ = optim::clip_gradients(gradients, settings_.clip_grad, settings_.clip_mode);
  }
  learner_.optimizer->step(rates, found_inf);
  learner_.scaler->update();
  learner_.optimizer->zero_grad();
  if (learner_.ema) learner_.ema->update(found_inf);
  if (timer_) timer_->done(StepPart::optimizer);
}

}  // namespace stoker::engine
