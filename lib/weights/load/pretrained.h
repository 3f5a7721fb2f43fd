// SPDX-License-Identifier: Apache-2.0
// Starting weights for a network from a file of any kind that weights/file reads, in any dialect that weights/names
// supports: adapted where the network has other classes, input channels or another image size, all or nothing.
#pragma once

#include <string>
#include <vector>

#include "model/image_model.h"
#include "weights/file/weight_file.h"

namespace stoker::weights {

/// What was loaded, left out and changed: lines for the log.
using PretrainedReport = std::vector<std::string>;

/// `network` is the model's name in the registry, `backbone` that of the networks inside it, if it has any: they take
/// weights of their own kind. A classifier of another shape keeps its fresh values. Throws Error{data} listing what is
/// missing or does not fit; nothing of the model is changed then.
PretrainedReport load_pretrained(model::ImageModel& model, const std::string& network, const std::string& backbone,
                                 const std::string& path);
/// load_pretrained() from a file that is open.
PretrainedReport load_pretrained(model::ImageModel& model, const std::string& network, const std::string& backbone,
                                 const WeightFile& file);

}  // namespace stoker::weights
