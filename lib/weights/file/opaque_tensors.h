// SPDX-License-Identifier: Apache-2.0
// Tensors that come out of an object of a class (a subclass of a tensor, a sparse tensor), which is never built: how
// they are named, and the way around it.
#pragma once

#include <string>
#include <vector>

#include "weights/file/torch_files.h"
#include "weights/file/weight_file.h"

namespace stoker::weights {

/// The entry for `value`, which is opaque, under these names.
OpaqueEntry opaque_entry(const PickleTree& tree, const PickleValue& value, std::string group, std::string name);

/// "fc.weight came out of __main__.Sub, and nothing in a file is executed": by class. Not empty.
std::string opaque_reason(const std::vector<OpaqueEntry>& entries);
/// The next step: how to save them as plain tensors.
std::string opaque_hint(const std::vector<OpaqueEntry>& entries);

}  // namespace stoker::weights
