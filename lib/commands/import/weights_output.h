// SPDX-License-Identifier: Apache-2.0
// Files of tensors that commands write for people.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/image_model.h"

namespace stoker::train {

/// A safetensors file, whole or not at all, replacing one of that name or what a link of that name leads to; through a
/// device, a pipe or standard output where `path` is one. Throws io, cannot_create, permission.
void write_weights(const std::string& path, const std::vector<model::NamedTensor>& tensors,
                   const std::map<std::string, std::string>& metadata);

}  // namespace stoker::train
