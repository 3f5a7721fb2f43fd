// SPDX-License-Identifier: Apache-2.0
// Writes networks as Python's torch.jit.script() would, for tests that have no Python:
//     made_torchscript KIND FILE
// net: batch norm and dropout, 10 outputs for gray images; other: the same with other weights; five: 5 outputs; pair:
// gives two tensors; traced: dropout as in evaluation.
#include <ATen/Functions.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/utils.h>

#include <string>

namespace {

using torch::jit::Module;

Module part(const std::string& name) {
  Module made(name);
  made.register_attribute("training", c10::BoolType::get(), true);
  return made;
}

Module norm(int64_t channels) {
  Module made = part("Norm");
  made.register_parameter("weight", at::ones({channels}).requires_grad_(), false);
  made.register_parameter("bias", at::zeros({channels}).requires_grad_(), false);
  made.register_buffer("running_mean", at::zeros({channels}));
  made.register_buffer("running_var", at::ones({channels}));
  made.define(
      "def forward(self, x):\n"
      "    return torch.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var, self.training, 0.1, "
      "1e-5, False)\n");
  return made;
}

Module layer(const std::string& name, const at::Tensor& weight, const std::string& body) {
  Module made = part(name);
  made.register_parameter("weight", weight.clone().requires_grad_(), false);
  made.define("def forward(self, x):\n    return " + body + "\n");
  return made;
}

/// `mode`: of dropout, as code.
Module network(int64_t outputs, bool gives_pair, const std::string& mode) {
  constexpr int64_t kChannels = 8;
  Module made = part("Net");
  made.register_module("conv", layer("Conv", at::randn({kChannels, 1, 3, 3}) / 3,
                                     "torch.conv2d(x, self.weight, None, [1, 1], [1, 1], [1, 1], 1)"));
  made.register_module("bn", norm(kChannels));
  made.register_module("fc", layer("Linear", at::randn({outputs, kChannels}) / 3, "torch.linear(x, self.weight)"));
  made.define(std::string("def forward(self, x):\n"
                          "    x = torch.relu(self.bn.forward(self.conv.forward(x)))\n"
                          "    x = self.fc.forward(torch.dropout(torch.mean(x, [2, 3]), 0.5, ") +
              mode + "))\n" + (gives_pair ? "    return x, x\n" : "    return x\n"));
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string kind = argv[1];
  torch::manual_seed(kind == "other" ? 2 : 1);
  const std::string mode = kind == "traced" ? "False" : "self.training";
  network(kind == "five" ? 5 : 10, kind == "pair", mode).save(argv[2]);
  return 0;
}
