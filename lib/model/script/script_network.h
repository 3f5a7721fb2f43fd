// SPDX-License-Identifier: Apache-2.0
// A network of a file as one of ours: its parameters and buffers under their names, in a tree of modules that mirrors
// its own. Independent of file formats.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "model/image_model.h"
#include "model/script/foreign_network.h"

namespace stoker::model {

class ScriptNetwork : public ImageModel {
 public:
  /// `name` is for messages. Throws Error{config} where there is nothing to learn, or parameters are not float32.
  ScriptNetwork(std::unique_ptr<ForeignNetwork> network, std::string name);

  /// Throws c10::Error with the error of the network.
  torch::Tensor forward(torch::Tensor images) override;
  /// The module of the last parameter.
  std::string head_prefix() const override { return head_prefix_; }
  void train(bool on = true) override;
  void set_stage_runner(StageRunner) override;
  /// A file of the same kind, with the weights as they are now, in evaluation mode.
  std::string saved(const std::map<std::string, std::string>& extra);
  /// False when no part can be switched to training: then dropout and batch norm do as when it was written.
  bool has_mode() const { return has_mode_; }

 private:
  void mirror_parts();

  std::shared_ptr<ForeignNetwork> network_;
  std::string name_, head_prefix_;
  bool has_mode_ = false;
};

/// The network in the file at `spec.name`. Tries it on two images. Throws as the functions of network_library.h,
/// and Error{config} where it does not take the images or gives other outputs than those of `spec`, or where the
/// options request what only networks of ours can do.
std::shared_ptr<ImageModel> make_script_network(const ModelSpec& spec);

}  // namespace stoker::model
