// SPDX-License-Identifier: Apache-2.0
// From the values of a pickle to tensors by name. Interprets dictionaries; where bytes lie is left to others.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/file/pickle_value.h"

namespace stoker::weights {

/// The storage of this key, type and size in the file: an index into WeightFile::storages. Throws Error{data}.
using FindStorage = std::function<size_t(std::string_view key, NumberType type, uint64_t bytes)>;

/// Every tensor in the dictionaries of `tree`, with views checked against their storages. Values that are no tensors
/// are passed over. Throws Error{data}: not a dictionary, no tensor in it, dictionaries too deep, a view beyond its
/// storage.
std::vector<StoredTensor> tensors_of(const PickleTree& tree, const std::string& what, const FindStorage& find_storage);

}  // namespace stoker::weights
