// SPDX-License-Identifier: Apache-2.0
// Starting weights for a network from a file of any kind that weights/file reads, in any dialect that weights/names
// supports: adapted where the network has other classes, input channels or another image size, all or nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/image_model.h"
#include "weights/file/weight_file.h"

namespace stoker::weights {

/// Facts about weights besides the file that they are in.
struct StartOptions {
  bool fresh_head = false;    ///< the classifier starts at random
  double norm_eps = 0;        ///< epsilon of their batch norms; 0: that of the library whose names they have
  bool same_padding = false;  ///< the network pads as TensorFlow does
  /// For each class of the network its row in the file's classifier, -1 for none, which starts at random; empty: the
  /// same classes in the same order, as far as is known.
  std::vector<int64_t> head_rows;
  int64_t head_classes = 0;  ///< classes of the file's classifier, where head_rows is given
};

/// The weights that were loaded, left out and changed: lines for the log.
using PretrainedReport = std::vector<std::string>;

/// `network` is the model's name in the registry, `backbone` that of the networks inside it, if it has any: they take
/// weights of their own kind. A classifier of another shape keeps its fresh values. Throws Error{data} listing what is
/// missing or does not fit; nothing of the model is changed then.
PretrainedReport load_pretrained(model::ImageModel& model, const std::string& network, const std::string& backbone,
                                 const std::string& path, const StartOptions& start = {});
/// load_pretrained() from a file that is open.
PretrainedReport load_pretrained(model::ImageModel& model, const std::string& network, const std::string& backbone,
                                 const WeightFile& file, const StartOptions& start = {});

/// Throws as load_by_name() does where this machine has no file of that name: before anything else costs time.
void require_local_weights(const std::string& name, const std::string& network);

/// The loaded file and the lines about it.
struct LoadedWeights {
  std::string file, sha256;
  PretrainedReport report;
};

/// load_pretrained() from the newest file of this machine that has `name`, see find_local_weights(), and fits. Throws
/// Error{no_input} with what was passed over, and how to fetch such weights.
LoadedWeights load_by_name(model::ImageModel& model, const std::string& network, const std::string& backbone,
                           const std::string& name, const StartOptions& start = {});

// A file of weights as tensors to be written again: as they are, or as those of a network of ours.

struct Conversion {
  std::vector<model::NamedTensor> tensors;  ///< CPU
  PretrainedReport report;                  ///< what was loaded, left out and changed
};

/// The tensors of the dictionary that holds weights, without the prefixes of wrappers, in their own types; those that
/// come out of objects are left out. Throws Error{data} where all of them do.
Conversion convert_as_is(const WeightFile& file);
/// All tensors of a network by our names, in its types, with the classes, channels and image size of the file. Throws
/// Error{data} where they are not in the file, Error{config} for a network that is not known or made of others.
Conversion convert_for(const std::string& network, const WeightFile& file);

/// The networks of ours whose tensors the file has, each with its facts: "resnet50 (1000 classes, 3 channels)". Builds
/// those that come into question, which takes seconds.
std::vector<std::string> networks_of(const WeightFile& file);

}  // namespace stoker::weights
