// SPDX-License-Identifier: Apache-2.0
#include "model/script/script_network.h"

#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <set>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "model/script/network_library.h"

namespace stoker::model {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// A module of the network: holds its tensors and hands on the mode.
class ScriptPart : public torch::nn::Module {
 public:
  ScriptPart(std::shared_ptr<ForeignNetwork> network, size_t place) : network_(std::move(network)), place_(place) {}

  void train(bool on = true) override {
    torch::nn::Module::train(on);
    network_->set_training(place_, on);
  }

 private:
  std::shared_ptr<ForeignNetwork> network_;
  size_t place_;
};

/// The last line that is not empty, the error itself: the interpreter puts its stack of calls before it.
std::string last_line_of(const std::string& text) {
  size_t end = text.size();
  while (end > 0) {
    const size_t begin = text.rfind('\n', end - 1) + 1;  // npos + 1 is 0
    if (text.find_first_not_of(" \t\n", begin) < end) return text.substr(begin, end - begin);
    if (begin == 0) break;
    end = begin - 1;
  }
  return text;
}

void refuse_options(const ModelSpec& spec) {
  const auto refuse = [&](const char* option) {
    throw Error(ErrorKind::config,
                format("{} does not reach into {}: a network of a file does as it was written", option, spec.name),
                "build it into the network in Python before torch.jit.script()");
  };
  if (spec.drop_rate != 0) refuse("--drop-rate");
  if (spec.drop_path_rate != 0) refuse("--drop-path-rate");
  if (spec.zero_init_residual) refuse("--zero-init-residual");
  if (spec.same_padding) refuse("--same-padding");
}

/// The output for two black images must be two rows.
void try_out(ScriptNetwork& network, const ModelSpec& spec) {
  const torch::NoGradGuard no_gradients;
  network.eval();
  torch::Tensor outputs;
  try {
    outputs = network.forward(at::zeros({2, spec.in_chans, spec.img_size.height, spec.img_size.width}));
  } catch (const c10::Error& error) {
    throw Error(ErrorKind::config,
                format("{} does not take images [2, {}, {}, {}]: {}", spec.name, spec.in_chans, spec.img_size.height,
                       spec.img_size.width, error.what_without_backtrace()),
                "--in-chans and --img-size set what it is given; forward() must take and give one tensor");
  }
  network.train();
  if (outputs.dim() == 2 && outputs.size(0) == 2 && outputs.size(1) == spec.num_classes) return;
  throw Error(ErrorKind::config,
              format("{} gives {} for two images; [2, {}] is needed, a number for each class or target", spec.name,
                     c10::str(outputs.sizes()), spec.num_classes),
              format("write it in Python with {} outputs, as in timm.create_model(NAME, num_classes={})",
                     spec.num_classes, spec.num_classes));
}

}  // namespace

ScriptNetwork::ScriptNetwork(std::unique_ptr<ForeignNetwork> network, std::string name)
    : network_(std::move(network)), name_(std::move(name)) {
  mirror_parts();
  add_layer({""});  // its code does not show where layers begin
  bool learns = false;
  for (const auto& item : named_parameters()) {
    const size_t dot = item.key().rfind('.');
    head_prefix_ = dot == std::string::npos ? item.key() : item.key().substr(0, dot + 1);
    learns = learns || item.value().requires_grad();
    if (item.value().scalar_type() == at::kFloat) continue;
    throw Error(ErrorKind::config,
                format("{}: {} is {}; weights of a network that learns are float32", name_, item.key(),
                       c10::toString(item.value().scalar_type())),
                "call .float() in Python before saving it; --amp computes in 16 bits");
  }
  if (!learns) {
    throw Error(ErrorKind::config, format("{} has no parameter that learns", name_),
                "torch.jit.freeze() and optimize_for_inference() turn parameters into constants: save it without them");
  }
  if (!has_mode_) {
    core::log_warning("{} has no training mode: dropout and batch norm do as when it was saved", name_);
  } else if (network_->has_fixed_mode()) {
    core::log_warning(
        "{} computes dropout or batch norm as in evaluation, in training, too: torch.jit.trace() records it so, "
        "torch.jit.script() keeps both",
        name_);
  }
}

void ScriptNetwork::mirror_parts() {
  const std::vector<ForeignPart> parts = network_->parts();
  std::map<std::string, torch::nn::Module*> by_name;
  std::set<const c10::TensorImpl*> seen;  // a tensor that two parts share learns once, under its first name
  for (size_t place = 0; place < parts.size(); ++place) {
    const ForeignPart& part = parts[place];
    torch::nn::Module* own = this;
    if (!part.name.empty()) {
      const size_t dot = part.name.rfind('.');
      torch::nn::Module* const around = by_name.at(dot == std::string::npos ? "" : part.name.substr(0, dot));
      own = around->register_module(part.name.substr(dot + 1), std::make_shared<ScriptPart>(network_, place)).get();
    }
    by_name[part.name] = own;
    has_mode_ = has_mode_ || part.has_mode;
    for (const ForeignPart::Tensor& item : part.parameters) {
      if (seen.insert(item.tensor.unsafeGetTensorImpl()).second)
        own->register_parameter(item.name, item.tensor, item.tensor.requires_grad());
    }
    for (const ForeignPart::Tensor& item : part.buffers) {
      if (item.tensor.defined() && seen.insert(item.tensor.unsafeGetTensorImpl()).second)
        own->register_buffer(item.name, item.tensor);
    }
  }
}

torch::Tensor ScriptNetwork::forward(torch::Tensor images) {
  std::string problem;
  try {
    return network_->forward(images);
  } catch (const c10::Error&) {
    throw;
  } catch (const std::exception& error) {  // the interpreter turns errors of operations into its own
    problem = last_line_of(error.what());
  }
  TORCH_CHECK(false, problem);
}

void ScriptNetwork::train(bool on) {
  network_->set_training(0, on);  // before the parts, some of which stay in evaluation mode
  ImageModel::train(on);
}

void ScriptNetwork::set_stage_runner(StageRunner) {
  throw Error(ErrorKind::config,
              name_ + ": the code of a file does not show where stages begin whose activations could be recomputed",
              "leave --grad-checkpointing out");
}

std::string ScriptNetwork::saved(const std::map<std::string, std::string>& extra) {
  eval();
  return network_->saved(extra);
}

std::shared_ptr<ImageModel> make_script_network(const ModelSpec& spec) {
  refuse_options(spec);
  const auto network =
      std::make_shared<ScriptNetwork>(open_foreign_network(read_network_file(spec.name).bytes, spec.name), spec.name);
  try_out(*network, spec);
  return network;
}

}  // namespace stoker::model
