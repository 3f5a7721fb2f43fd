// SPDX-License-Identifier: Apache-2.0
// Files of tensors that commands write for people.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/image_model.h"

namespace stoker::train {

/// A safetensors file, whole or not at all, replacing one of that name. Throws io, cannot_create, permission.
void replace_safetensors(const std::string& path, const std::vector<model::NamedTensor>& tensors,
                         const std::map<std::string, std::string>& metadata);

}  // namespace stoker::train
