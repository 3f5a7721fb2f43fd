// SPDX-License-Identifier: Apache-2.0
// A network whose code is not in this program: what libstoker_torchscript.so makes of a file, and all that the program
// sees of it. Both sides are compiled from this header; neither links the other.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>
#include <vector>

namespace stoker::model {

/// A module of such a network. The tensors are those that it computes with: what changes them in place, or gives them
/// other data, changes the network.
struct ForeignPart {
  struct Tensor {
    std::string name;  ///< without the part's
    torch::Tensor tensor;
  };
  std::string name;       ///< dotted, "layer1.0.bn1"; that of the whole network is empty
  bool has_mode = false;  ///< it has a switch between training and evaluation
  std::vector<Tensor> parameters, buffers;
};

class ForeignNetwork {
 public:
  virtual ~ForeignNetwork() = default;

  /// images [B, C, H, W] -> what its forward() gives, [B, outputs]. Throws std::exception with its error.
  virtual torch::Tensor forward(const torch::Tensor& images) = 0;
  /// Every part, a part after that around it. The same in each call.
  virtual std::vector<ForeignPart> parts() const = 0;
  /// Whether the part of that place in parts() trains; those inside it are not visited. Without effect where it has no
  /// mode.
  virtual void set_training(size_t part, bool on) = 0;
  /// Whether its code computes dropout or batch norm in evaluation mode whatever is set, as torch.jit.trace() records
  /// it.
  virtual bool has_fixed_mode() const = 0;
  /// The bytes of a file that holds it as it is now, with `extra` files in it by name.
  virtual std::string saved(const std::map<std::string, std::string>& extra) const = 0;
};

/// The function that the library exports, extern "C", under kOpenForeignNetwork: makes a network of the bytes of a
/// file. Runs code of the file. Null, and what is wrong in `problem`, where it is no such file.
using OpenForeignNetwork = ForeignNetwork* (*)(const std::string& bytes, std::string& problem);
/// Changes with everything above.
inline constexpr char kOpenForeignNetwork[] = "stoker_open_foreign_network_2";

}  // namespace stoker::model
