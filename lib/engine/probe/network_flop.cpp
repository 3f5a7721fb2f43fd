// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/network_flop.h"

#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>

#include <memory>
#include <string>

#include "engine/device/without_onednn.h"

namespace stoker::engine {
namespace {

thread_local NetworkFlop* counted = nullptr;  // callbacks of LibTorch are plain functions

/// The FLOPs of a product of two operands: as much again for the gradient of each of them.
void count_product(double flop, const at::Tensor& left, const at::Tensor& right) {
  counted->forward += flop;
  counted->training += flop * (1.0 + (left.requires_grad() ? 1 : 0) + (right.requires_grad() ? 1 : 0));
}

/// Elements of `result` times what each of them sums up, each with an addition and a multiplication.
double flop_of(const at::Tensor& result, int64_t terms) {
  return 2.0 * static_cast<double>(result.numel()) * static_cast<double>(terms);
}

void count(const at::RecordFunction& function) {
  const std::string name = function.name();
  const auto inputs = function.inputs();
  const auto outputs = function.outputs();
  const auto tensor = [&](size_t i) { return inputs.at(i).toTensor(); };
  if (outputs.empty() || !outputs[0].isTensor()) return;
  const at::Tensor& result = outputs[0].toTensor();
  if (name == "aten::convolution") {
    const at::Tensor input = tensor(0), weight = tensor(1);
    const double flop = flop_of(result, weight.numel() / weight.size(0));
    count_product(flop, input, weight);
    if (weight.size(1) != input.size(1)) counted->grouped += flop;  // [out x in / groups x ...]
  } else if (name == "aten::mm" || name == "aten::bmm") {
    count_product(flop_of(result, tensor(0).size(-1)), tensor(0), tensor(1));
    counted->products += flop_of(result, tensor(0).size(-1));
  } else if (name == "aten::addmm" || name == "aten::baddbmm") {  // bias, left, right
    count_product(flop_of(result, tensor(1).size(-1)), tensor(1), tensor(2));
    counted->products += flop_of(result, tensor(1).size(-1));
  } else if (name == "aten::scaled_dot_product_attention") {  // query, key, value: two products, fused on some devices
    const at::Tensor query = tensor(0), key = tensor(1), value = tensor(2);
    const double scores = 2.0 * static_cast<double>(query.numel()) * static_cast<double>(key.size(-2));
    count_product(scores, query, key);
    counted->products += scores + flop_of(result, key.size(-2));
    count_product(flop_of(result, key.size(-2)), query, value);
  }
}

/// True inside an operation that was counted as a whole.
thread_local int inside_counted = 0;

struct Entered : at::ObserverContext {
  bool whole = false;
};

/// For its lifetime the operations that this thread starts are counted.
class Counting {
 public:
  explicit Counting(NetworkFlop& flop) {
    counted = &flop;
    inside_counted = 0;
    handle_ =
        at::addThreadLocalCallback(at::RecordFunctionCallback(
                                       [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
                                         auto entered = std::make_unique<Entered>();
                                         const std::string name = function.name();
                                         entered->whole = name == "aten::scaled_dot_product_attention";
                                         if (entered->whole) ++inside_counted;
                                         return entered;
                                       },
                                       [](const at::RecordFunction& function, at::ObserverContext* context) {
                                         if (static_cast<Entered*>(context)->whole) --inside_counted;
                                         if (inside_counted == 0) count(function);
                                       })
                                       .needsInputs(true)
                                       .needsOutputs(true)
                                       .scopes({at::RecordScope::FUNCTION}));
  }
  ~Counting() {
    at::removeCallback(handle_);
    counted = nullptr;
  }
  Counting& operator=(Counting&&) = delete;  // not copied, not moved

 private:
  at::CallbackHandle handle_ = 0;
};

}  // namespace

NetworkFlop network_flop(Learner& learner, const ProbeSettings& settings) {
  const ScopedSnapshot undisturbed(learner);
  learner.model->eval();  // one image is enough, and nothing is dropped
  const int64_t side = side_of(settings);
  const int64_t tried = side_to_try(*learner.model, settings, learner.device);  // convolutions grow with the area
  const data::Batch batch = noise_batch(settings, /*images=*/1, tried, learner.device);
  NetworkFlop flop;
  {
    const WithoutOnednn only_shapes;
    const Counting counting(flop);
    learner.model->forward(batch.images);
  }
  const int64_t area = settings.input.end()[-1] * settings.input.end()[-2];
  const double areas = tried == side ? 1 : static_cast<double>(area) / static_cast<double>(tried * tried);
  return {flop.forward * areas, flop.grouped * areas, flop.products * areas, flop.training * areas};
}

}  // namespace stoker::engine
