// SPDX-License-Identifier: Apache-2.0
// The classes of images that lie in the folder of a split without class folders, out of a list in or beside it: as
// ImageNet's and Tiny-ImageNet's validation images and GTSRB's test images come.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/source.h"

namespace stoker::data {

/// The images of the split with their classes; null when no list names them. What was taken for what goes to `notes`.
/// Throws Error{data} where a list is there and does not fit.
std::shared_ptr<const Source> open_split_list(const config::DataOptions& options, const std::string& split,
                                              const std::vector<std::string>& class_names,
                                              std::vector<std::string>& notes);

}  // namespace stoker::data
