// SPDX-License-Identifier: Apache-2.0
#include "engine/step/recompute.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "engine/device/precision.h"
#include "engine/device/random_state.h"
#include "engine/device/torch_compat.h"
#include "engine/step/state_snapshot.h"
#include "model/layers/batch_norm.h"
#include "model/layers/random_source.h"

namespace stoker::engine {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Precision current_precision(torch::Device device) {
  Precision precision;
  precision.device = device;
  precision.autocast = compat::autocast_enabled(device.type());
  if (precision.autocast) precision.dtype = compat::autocast_dtype(device.type());
  return precision;
}

/// The random state before layers draw.
struct Drawing {
  at::Generator source;  ///< a copy of the one that they draw from; undefined: torch's own, which stood at `state`
  RandomState state;

  static Drawing now(torch::Device device) {
    const at::Generator& source = model::random_source();
    if (source.defined()) return {source.clone(), {}};
    return {{}, random_state(device)};
  }
};

/// For its lifetime layers draw the same once more; then torch's own generator continues from where it was.
class DrawReplay {
 public:
  DrawReplay(const Drawing& earlier, torch::Device device)
      : device_(device), scope_(earlier.source.defined() ? earlier.source.clone() : at::Generator()) {
    if (earlier.source.defined()) return;
    now_ = random_state(device);
    restore_random_state(earlier.state, device);
  }
  ~DrawReplay() {
    if (!now_.empty()) restore_random_state(now_, device_);
  }
  DrawReplay& operator=(DrawReplay&&) = delete;  // not copied, not moved

 private:
  RandomState now_;
  torch::Device device_;
  model::DrawScope scope_;
};

/// Puts a module's buffers back to what they were.
class BufferKeeper {
 public:
  explicit BufferKeeper(const torch::nn::Module& module) : kept_(module) {}
  ~BufferKeeper() { kept_.restore(); }
  BufferKeeper& operator=(BufferKeeper&&) = delete;  // not copied, not moved

 private:
  BufferSnapshot kept_;
};

/// The inputs of the second pass besides the input of the stage.
struct Replay : torch::CustomClassHolder {
  torch::nn::Module* stage = nullptr;  ///< lives as long as the model, which outlives the backward pass
  model::StageForward forward;
  Precision precision;
  Drawing drawing;
  const model::SharedBatch* shared = nullptr;
};

class RecomputedStage : public torch::autograd::Function<RecomputedStage> {
 public:
  /// `anchor` is empty and requires a gradient, so that backward() is called although `input` may require
  /// none.
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& input, const torch::Tensor& /*anchor*/,
                               const c10::intrusive_ptr<Replay>& replay) {
    context->save_for_backward({input});
    context->saved_data["replay"] = c10::IValue::make_capsule(replay);
    replay->precision = current_precision(input.device());
    replay->drawing = Drawing::now(input.device());
    replay->shared = model::shared_batch();
    return replay->forward(input);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto holder = context->saved_data["replay"].toCapsule();
    auto& replay = *static_cast<Replay*>(holder.get());
    const torch::Tensor saved = context->get_saved_variables().at(0);
    torch::Tensor input = saved.detach();
    input.requires_grad_(saved.requires_grad());
    const BufferKeeper buffers(*replay.stage);
    torch::Tensor output;
    {
      const torch::AutoGradMode with_gradients(true);
      const AutocastScope autocast(replay.precision);
      const DrawReplay draws(replay.drawing, input.device());
      const model::SharedBatchScope shared(replay.shared);
      output = replay.forward(input);
    }
    torch::autograd::backward({output}, {gradients.at(0)});
    return {input.grad(), torch::Tensor(), torch::Tensor()};
  }
};

bool learns(const torch::nn::Module& stage, const torch::Tensor& input) {
  if (input.requires_grad()) return true;
  for (const torch::Tensor& parameter : stage.parameters()) {
    if (parameter.requires_grad()) return true;
  }
  return false;
}

}  // namespace

torch::Tensor run_and_recompute(torch::nn::Module& stage, const model::StageForward& forward,
                                const torch::Tensor& input) {
  if (!torch::GradMode::is_enabled() || !learns(stage, input)) return forward(input);
  const auto replay = c10::make_intrusive<Replay>();
  replay->stage = &stage;
  replay->forward = forward;
  return RecomputedStage::apply(input, torch::empty({0}, input.options().requires_grad(true)), replay);
}

}  // namespace stoker::engine
