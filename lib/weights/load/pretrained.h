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

/// What is known of weights besides the file that they are in.
struct StartOptions {
  bool fresh_head = false;  ///< the classifier starts at random
  double norm_eps = 0;      ///< of their batch norms; 0: that of the library whose names they have
  /// For each class of the network its row in the file's classifier, -1 for none, which starts at random; empty: the
  /// same classes in the same order, as far as is known.
  std::vector<int64_t> head_rows;
};

/// What was loaded, left out and changed: lines for the log.
using PretrainedReport = std::vector<std::string>;

/// `network` is the model's name in the registry, `backbone` that of the networks inside it, if it has any: they take
/// weights of their own kind. A classifier of another shape keeps its fresh values. Throws Error{data} listing what is
/// missing or does not fit; nothing of the model is changed then.
PretrainedReport load_pretrained(model::ImageModel& model, const std::string& network, const std::string& backbone,
                                 const std::string& path, const StartOptions& start = {});
/// load_pretrained() from a file that is open.
PretrainedReport load_pretrained(model::ImageModel& model, const std::string& network, const std::string& backbone,
                                 const WeightFile& file, const StartOptions& start = {});

}  // namespace stoker::weights
