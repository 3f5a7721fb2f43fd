// SPDX-License-Identifier: Apache-2.0
// The two layouts in which torch.save() writes: a zip archive (PyTorch 1.6 and later), and before that pickles with the
// storages behind them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/file/weight_file.h"

namespace stoker::weights {

bool is_torch_zip(const data::ByteReader& file);
bool is_torch_legacy(const data::ByteReader& file);

/// Throw Error{data} with the reason.
WeightFile open_torch_zip(std::shared_ptr<const data::ByteReader> file);
WeightFile open_torch_legacy(std::shared_ptr<const data::ByteReader> file);

// From the values of a pickle to tensors by name. Interprets dictionaries; where bytes lie is left to others.

using data::PickledTensor;
using data::PickleTree;
using data::PickleValue;
using data::ValueIndex;
using data::ValueKind;

/// The storage of this key, type and size in the file: an index into WeightFile::storages. Throws Error{data}.
using FindStorage = std::function<size_t(std::string_view key, NumberType type, uint64_t bytes)>;

/// Fills `file` with every tensor in the dictionaries of `tree`, views checked against their storages, and with the
/// names of what is opaque. Values that are not tensors are passed over. Throws Error{data}: not a dictionary, no
/// tensor in it, dictionaries too deep, a view beyond its storage.
void take_tensors(const PickleTree& tree, const std::string& what, const FindStorage& find_storage, WeightFile& file);

}  // namespace stoker::weights
