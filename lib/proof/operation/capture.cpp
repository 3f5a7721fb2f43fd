// SPDX-License-Identifier: Apache-2.0
#include "proof/operation/capture.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/device/torch_compat.h"
#include "proof/rules/rules.h"

namespace stoker::proof {
namespace {

struct Captured {
  std::mutex mutex;
  std::vector<Operation> operations;
  BeforeCall before;
};
Captured* capturing = nullptr;  // callbacks of LibTorch are plain functions

/// Whether autocast converts the arguments of this call and makes it again with those: that one counts.
bool is_before_autocast(const c10::OperatorName& name) {
  for (const auto& [device, key] :
       {std::pair(at::kCPU, c10::DispatchKey::AutocastCPU), std::pair(at::kCUDA, c10::DispatchKey::Autocast)}) {
    if (!engine::compat::autocast_enabled(device) || c10::impl::tls_is_dispatch_key_excluded(key)) continue;
    if (c10::Dispatcher::singleton().findSchema(name)->hasKernelForDispatchKey(key)) return true;
  }
  return false;
}

std::unique_ptr<at::ObserverContext> keep(const at::RecordFunction& function) {
  const auto name = function.operator_name();
  if (!name || rule_of(name->name) == nullptr || is_before_autocast(*name)) return nullptr;
  const std::lock_guard<std::mutex> lock(capturing->mutex);
  capturing->operations.push_back(operation_of(name->name, name->overload_name, arguments_of(function)));
  capturing->before(capturing->operations.back());
  return nullptr;
}

bool are_alike(const std::vector<Operation>& left, const std::vector<Operation>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const Operation& a, const Operation& b) { return a.name == b.name; });
}

}  // namespace

std::vector<Operation> captured(const std::function<void()>& work, const BeforeCall& before) {
  Captured all;
  all.before = before;
  capturing = &all;
  const at::CallbackHandle handle =
      at::addGlobalCallback(at::RecordFunctionCallback(keep).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  try {
    work();
  } catch (...) {
    at::removeCallback(handle);
    capturing = nullptr;
    throw;
  }
  at::removeCallback(handle);
  capturing = nullptr;
  return std::move(all.operations);
}

void Operations::add(Operation operation) {
  const std::string key = key_of(operation);
  Counted& counted = by_key_.try_emplace(key, Counted{std::move(operation), 0}).first->second;
  ++counted.calls;
}

void Operations::add(int64_t images, const std::function<void(int64_t images)>& pass, const BeforeCall& before) {
  std::vector<Operation> two = captured([&] { pass(2); }, before);
  const std::vector<Operation> three = captured([&] { pass(3); }, before);
  if (!are_alike(two, three)) {
    for (Operation& operation : captured([&] { pass(images); }, before)) add(std::move(operation));
    return;
  }
  for (size_t i = 0; i < two.size(); ++i) add(for_images(two[i], three[i], images));
}

}  // namespace stoker::proof
