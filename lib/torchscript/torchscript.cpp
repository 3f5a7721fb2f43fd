// SPDX-License-Identifier: Apache-2.0
// The library libstoker_torchscript.so: TorchScript files as networks. Only here is LibTorch's loader linked, which
// runs code of the file; `train` opens this library only with --trust-model.
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <memory>
#include <sstream>
#include <stdexcept>

#include "model/script/foreign_network.h"

namespace stoker::torchscript {
namespace {

namespace jit = torch::jit;

class TorchScriptNetwork : public model::ForeignNetwork {
 public:
  explicit TorchScriptNetwork(jit::Module module) : module_(std::move(module)) {
    for (const auto& item : module_.named_modules()) parts_.push_back({item.name, item.value});
  }

  torch::Tensor forward(const torch::Tensor& images) override {
    // As it is written. The optimizer rewrites the graph after its first calls, and what it writes may have other bits:
    // a run that is killed and resumed could differ.
    const jit::GraphOptimizerEnabledGuard as_written(false);
    const c10::IValue output = module_.forward({images});
    if (output.isTensor()) return output.toTensor();
    throw std::runtime_error("its forward() gives a " + output.tagKind() + ", not one tensor");
  }

  std::vector<model::ForeignPart> parts() const override {
    std::vector<model::ForeignPart> listed;
    for (const auto& [name, module] : parts_) {
      model::ForeignPart part;
      part.name = name;
      part.has_mode = module.type()->findAttributeSlot("training").has_value();
      for (const auto& item : module.named_parameters(/*recurse=*/false)) {
        part.parameters.push_back({item.name, item.value});
      }
      for (const auto& item : module.named_buffers(/*recurse=*/false)) part.buffers.push_back({item.name, item.value});
      listed.push_back(std::move(part));
    }
    return listed;
  }

  void set_training(size_t part, bool on) override {
    const jit::Module& module = parts_.at(part).second;
    const auto slot = module.type()->findAttributeSlot("training");
    if (slot) module._ivalue()->setSlot(*slot, on);
  }

  bool has_fixed_mode() const override {
    const std::shared_ptr<jit::Graph> graph = module_.get_method("forward").graph()->copy();
    jit::Inline(*graph);
    return has_fixed_mode(*graph->block());
  }

  std::string saved(const std::map<std::string, std::string>& extra) const override {
    std::ostringstream stream;
    module_.save(stream, {extra.begin(), extra.end()});
    return stream.str();
  }

 private:
  static bool has_fixed_mode(const jit::Block& block) {
    for (const jit::Node* const node : block.nodes()) {
      for (const jit::Block* const inner : node->blocks()) {
        if (has_fixed_mode(*inner)) return true;
      }
      const std::string kind = node->kind().toQualString();
      const bool is_dropout = kind == "aten::dropout" || kind == "aten::feature_dropout";  // (input, p, train)
      if (!is_dropout && kind != "aten::batch_norm") continue;  // (input, weight, bias, mean, variance, training, ...)
      if (jit::constant_as<bool>(node->input(is_dropout ? 2 : 5)) == false) return true;
    }
    return false;
  }

  mutable jit::Module module_;
  std::vector<std::pair<std::string, jit::Module>> parts_;  ///< share all with module_
};

}  // namespace
}  // namespace stoker::torchscript

extern "C" __attribute__((visibility("default"))) stoker::model::ForeignNetwork* stoker_open_foreign_network_2(
    const std::string& bytes, std::string& problem) {
  try {
    std::istringstream stream(bytes);
    return std::make_unique<stoker::torchscript::TorchScriptNetwork>(torch::jit::load(stream, c10::kCPU)).release();
  } catch (const c10::Error& error) {
    problem = error.what_without_backtrace();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  return nullptr;
}
