// SPDX-License-Identifier: Apache-2.0
#include "engine/step/gradient_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

namespace stoker::engine {
namespace {

class Hook : public torch::autograd::FunctionPostHook {
 public:
  explicit Hook(std::function<void()> call) : call_(std::move(call)) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    call_();
    return outputs;
  }

 private:
  const std::function<void()> call_;
};

}  // namespace

GradientHooks::GradientHooks(const std::vector<torch::Tensor>& parameters) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].requires_grad()) continue;
    const std::shared_ptr<torch::autograd::Node> accumulator = torch::autograd::impl::grad_accumulator(parameters[i]);
    accumulator->add_post_hook(std::make_unique<Hook>([armed = armed_, i] {
      if (armed->call) armed->call(i);
    }));
    accumulators_.push_back(accumulator);
  }
}

GradientHooks::~GradientHooks() { disarm(); }

void GradientHooks::arm(Call call) { armed_->call = std::move(call); }

void GradientHooks::disarm() { armed_->call = nullptr; }

}  // namespace stoker::engine
