// SPDX-License-Identifier: Apache-2.0
// A file of weights as tensors to be written again: as they are, or as those of a network of ours.
#pragma once

#include <string>
#include <vector>

#include "model/image_model.h"
#include "weights/file/weight_file.h"
#include "weights/load/pretrained.h"

namespace stoker::weights {

struct Conversion {
  std::vector<model::NamedTensor> tensors;  ///< CPU
  PretrainedReport report;                  ///< what was loaded, left out and changed
};

/// The tensors of the dictionary that holds weights, without the prefixes of wrappers, in their own types.
Conversion convert_as_is(const WeightFile& file);
/// All tensors of a network by our names, in its types, with the classes, channels and image size of the file. Throws
/// Error{data} where they are not in the file, Error{config} for a network that is not known or made of others.
Conversion convert_for(const std::string& network, const WeightFile& file);

/// The networks of ours whose tensors the file has, each with its facts: "resnet50 (1000 classes, 3 channels)". Builds
/// those that come into question, which takes seconds.
std::vector<std::string> networks_of(const WeightFile& file);

}  // namespace stoker::weights
