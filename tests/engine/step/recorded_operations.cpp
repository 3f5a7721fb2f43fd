// SPDX-License-Identifier: Apache-2.0
#include "step/recorded_operations.h"

#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <limits>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/device/random_state.h"

namespace stoker::fixtures {
namespace {

using torch::jit::Stack;

// A key below autograd and autocast that LibTorch leaves to others.
constexpr c10::DispatchKey kListening = c10::DispatchKey::Fake;

template <typename Visitor>
void visit_tensors(const c10::IValue& value, const Visitor& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) visit(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) visit_tensors(item, visit);
  }
}

std::vector<at::Tensor> tensors_in(const std::vector<c10::IValue>& values) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : values) {
    visit_tensors(value, [&tensors](const at::Tensor& tensor) { tensors.push_back(tensor); });
  }
  return tensors;
}

struct Operation {
  c10::OperatorHandle name;
  std::vector<c10::IValue> inputs, outputs;
};

struct Tape {
  std::vector<Operation> operations;
  std::unordered_set<const void*> made;  ///< storages that operations made
  struct Kept {
    at::Tensor tensor, values;
  };
  std::unordered_map<const void*, Kept> before;  ///< values of other tensors, by their storage and place in it
  std::string refused;

  void see_inputs(const std::vector<c10::IValue>& inputs) {
    for (const at::Tensor& tensor : tensors_in(inputs)) {
      if (made.count(tensor.storage().unsafeGetStorageImpl()) > 0 || tensor.numel() == 0) continue;
      if (before.count(tensor.data_ptr()) == 0) before[tensor.data_ptr()] = {tensor, tensor.clone()};
    }
  }
  void see_outputs(const Operation& done) {
    std::unordered_set<const void*> read;
    for (const at::Tensor& tensor : tensors_in(done.inputs)) read.insert(tensor.storage().unsafeGetStorageImpl());
    for (const at::Tensor& tensor : tensors_in(done.outputs)) {
      const void* const storage = tensor.storage().unsafeGetStorageImpl();
      if (read.count(storage) == 0) made.insert(storage);
    }
  }
  void undo() const {
    for (const auto& [place, kept] : before) at::Tensor(kept.tensor).copy_(kept.values);
    for (const Operation& operation : operations) {
      for (const at::Tensor& tensor : tensors_in(operation.outputs)) {
        if (made.count(tensor.storage().unsafeGetStorageImpl()) == 0 || !tensor.is_floating_point()) continue;
        if (tensor.is_non_overlapping_and_dense()) tensor.fill_(std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
};

thread_local Tape* recording = nullptr;

void listen(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard not_here(kListening);
  const c10::DispatchKeySet below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kListening);
  if (!recording) {
    op.redispatchBoxed(below, stack);
    return;
  }
  if (op.operator_name().name == recording->refused) throw std::runtime_error(recording->refused + " while recording");
  const auto arguments = static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  const auto results = static_cast<std::ptrdiff_t>(op.schema().returns().size());
  Operation done{op, {stack->end() - arguments, stack->end()}, {}};
  recording->see_inputs(done.inputs);
  op.redispatchBoxed(below, stack);
  done.outputs.assign(stack->end() - results, stack->end());
  recording->see_outputs(done);
  recording->operations.push_back(std::move(done));
}

/// Without autograd, which was there when the operations were recorded.
void do_again(const Operation& operation) {
  Stack stack = operation.inputs;
  operation.name.callBoxed(stack);
  const std::vector<at::Tensor> now = tensors_in(stack), recorded = tensors_in(operation.outputs);
  for (size_t i = 0; i < recorded.size(); ++i) {
    if (recorded[i].numel() > 0 && recorded[i].data_ptr() != now[i].data_ptr()) recorded[i].copy_(now[i]);
  }
}

class RecordedOperations : public engine::RecordedWork {
 public:
  RecordedOperations(std::vector<Operation> operations, int64_t& replays)
      : operations_(std::move(operations)), replays_(replays) {}
  void replay() override {
    const at::NoGradGuard no_gradients;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    for (const Operation& operation : operations_) do_again(operation);
    ++replays_;
  }

 private:
  const std::vector<Operation> operations_;
  int64_t& replays_;
};

}  // namespace

void OperationRecorder::warm_up(const std::function<void()>& work) {
  ++warm_ups;
  work();
}

std::unique_ptr<engine::RecordedWork> OperationRecorder::record(const std::function<void()>& work) {
  Tape tape;
  tape.refused = cannot_record;
  const engine::RandomState drawn = engine::random_state(torch::kCPU);
  std::exception_ptr failed;
  recording = &tape;
  is_recording = true;
  try {
    const c10::impl::IncludeDispatchKeyGuard here(kListening);
    work();
  } catch (...) {
    failed = std::current_exception();
  }
  recording = nullptr;
  is_recording = false;
  const at::NoGradGuard no_gradients;
  tape.undo();
  engine::restore_random_state(drawn, torch::kCPU);
  if (failed) std::rethrow_exception(failed);
  ++records;
  operations = static_cast<int64_t>(tape.operations.size());
  return std::make_unique<RecordedOperations>(std::move(tape.operations), replays);
}

}  // namespace stoker::fixtures

TORCH_LIBRARY_IMPL(_, Fake, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&stoker::fixtures::listen>());
}
