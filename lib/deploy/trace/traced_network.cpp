// SPDX-License-Identifier: Apache-2.0
#include "deploy/trace/traced_network.h"

#include <ATen/ops/cat.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/lower_tuples.h>

#include <sstream>

#include "core/error.h"
#include "core/format.h"

namespace stoker::deploy {
namespace {

namespace jit = torch::jit;

/// The tree of modules with their tensors, under the same names; without code.
jit::Module mirrored(const torch::nn::Module& from, const std::string& type_name,
                     const std::shared_ptr<jit::CompilationUnit>& unit) {
  jit::Module to(c10::QualifiedName(type_name), unit, /*shouldMangle=*/true);
  to.register_attribute("training", c10::BoolType::get(), false);
  for (const auto& item : from.named_parameters(/*recurse=*/false)) {
    to.register_parameter(item.key(), item.value(), /*is_buffer=*/false);
  }
  for (const auto& item : from.named_buffers(/*recurse=*/false)) to.register_buffer(item.key(), item.value());
  for (const auto& item : from.named_children())
    to.register_module(item.key(), mirrored(*item.value(), type_name, unit));
  return to;
}

[[noreturn]] void refuse(const std::string& why) {
  throw core::Error(core::ErrorKind::config, "this network cannot be exported: " + why,
                    "--format safetensors writes its weights, which the same network in Python loads");
}

/// Another batch than the one that was traced must give what the network gives.
void require_any_batch(const TracedNetwork& traced, const NetworkForward& forward, const torch::Tensor& example) {
  const torch::Tensor three = at::cat({example, example.narrow(0, 0, 1).flip({-1})}).contiguous();
  const torch::Tensor expected = forward(three), got = traced.forward(three);
  const bool agrees = got.sizes() == expected.sizes() && at::allclose(got, expected, /*rtol=*/1e-4, /*atol=*/1e-5);
  if (!agrees) refuse("what it computes depends on the number of images");
}

}  // namespace

torch::Tensor TracedNetwork::forward(const torch::Tensor& input) const {
  const torch::NoGradGuard no_gradients;
  jit::Module module = module_;  // shares everything
  return module.forward({input}).toTensor();
}

std::shared_ptr<jit::Graph> TracedNetwork::graph() const {
  std::shared_ptr<jit::Graph> graph = module_.get_method("forward").graph()->copy();
  jit::Inline(*graph);
  return graph;
}

std::string TracedNetwork::torchscript(const std::map<std::string, std::string>& extra) const {
  std::ostringstream stream;
  module_.save(stream, {extra.begin(), extra.end()});
  return stream.str();
}

TracedNetwork trace_network(const model::ImageModel& model, const NetworkForward& forward,
                            const torch::Tensor& example) {
  const torch::NoGradGuard no_gradients;
  const auto unit = std::make_shared<jit::CompilationUnit>();
  jit::Module module = mirrored(model, "__torch__.stoker.Network", unit);
  try {
    const auto run = [&forward](jit::Stack inputs) -> jit::Stack { return {forward(inputs.at(0).toTensor())}; };
    const auto no_names = [](const torch::autograd::Variable&) { return std::string(); };
    const auto [state, outputs] =
        jit::tracer::trace({example}, run, no_names, /*strict=*/true, /*force_outplace=*/true, &module, {"images"});
    jit::EliminateDeadCode(state->graph);
    jit::LowerSimpleTuples(state->graph);
    const c10::QualifiedName name(*module.type()->name(), "forward");
    module.type()->addMethod(unit->create_function(name, state->graph));
  } catch (const c10::Error& error) {
    refuse(error.what_without_backtrace());
  }
  const TracedNetwork traced(std::move(module));
  require_any_batch(traced, forward, example);
  return traced;
}

}  // namespace stoker::deploy
