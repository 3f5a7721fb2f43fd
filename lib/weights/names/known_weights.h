// SPDX-License-Identifier: Apache-2.0
// Weights by name: where they lie on this machine, in a folder of the user and in the caches of PyTorch and Hugging
// Face, and where they are published. Nothing is downloaded. Without LibTorch.
#pragma once

#include <string>
#include <vector>

namespace stoker::weights {

/// Files that may be the weights of a name.
struct LocalWeights {
  std::vector<std::string> files;       ///< newest first
  std::vector<std::string> unfinished;  ///< downloads that broke off, and links to what is gone
  std::vector<std::string> folders;     ///< where they were looked for: "DIR", "DIR (absent)"
};

/// `name`: a network, timm's name with a tag ("resnet50.a1_in1k"), a repository of Hugging Face
/// ("microsoft/resnet-50"), torchvision's name of weights ("IMAGENET1K_V2"; of `network` then), a file of a cache; or a
/// folder, all of whose files may be those of `network`. Looks into $STOKER_WEIGHTS, into the cache of PyTorch
/// ($TORCH_HOME) and that of Hugging Face ($HF_HUB_CACHE, $HF_HOME).
LocalWeights find_local_weights(const std::string& name, const std::string& network);
/// The weights in a folder as Hugging Face has them: model.safetensors, an index of several files, pytorch_model.bin;
/// "": there are none.
std::string weights_of_folder(const std::string& folder);

/// The network that the weights of a name are for, as far as the name has it: "resnet50" for "timm/resnet50.a1_in1k"
/// and "microsoft/resnet-50"; "": not known.
std::string network_of_name(const std::string& name);

bool ends_as_weights(const std::string& name);  ///< .pth, .safetensors and so on

/// Why a file differs from its name: "" or the cause. PyTorch's caches have the first digits of the SHA-256 in the
/// name, Hugging Face's all of them. Digits of a date are none.
std::string mismatch_of_name(const std::string& path, const std::string& sha256);

/// How the weights of a name or network are fetched on another machine, a line for each that is published: address,
/// size, SHA-256 as far as public sources give it, and the command, which puts them into `folder` ("": the working
/// one).
std::vector<std::string> ways_to_fetch(const std::string& name, const std::string& network, const std::string& folder);
/// The same for every network that has published weights: `train list weights`.
std::vector<std::string> all_published_weights();

}  // namespace stoker::weights
