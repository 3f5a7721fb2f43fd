// SPDX-License-Identifier: Apache-2.0
#include "engine/device/random_state.h"

#include <ATen/Context.h>

#include <mutex>

namespace stoker::engine {

RandomState random_state(torch::Device device) {
  RandomState state;
  const auto add = [&](const std::string& name, at::Generator generator) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    state.push_back({name, generator.get_state()});
  };
  add("cpu", at::globalContext().defaultGenerator(torch::kCPU));
  if (device.is_cuda()) add("cuda", at::globalContext().defaultGenerator(device));
  return state;
}

void restore_random_state(const RandomState& state, torch::Device device) {
  for (const model::NamedTensor& entry : state) {
    if (entry.name == "cuda" && !device.is_cuda()) continue;
    at::Generator generator =
        at::globalContext().defaultGenerator(entry.name == "cuda" ? device : torch::Device(torch::kCPU));
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(entry.tensor);
  }
}

at::Generator make_generator(uint64_t seed, torch::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device).clone();
  generator.set_current_seed(seed);
  return generator;
}

}  // namespace stoker::engine
