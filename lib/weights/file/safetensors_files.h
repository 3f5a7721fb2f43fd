// SPDX-License-Identifier: Apache-2.0
// Weights in safetensors: one file, or several with an index beside them (model.safetensors.index.json of Hugging Face,
// whose pytorch_model.bin.index.json has the same form).
#pragma once

#include <memory>
#include <string>

#include "weights/file/weight_file.h"

namespace stoker::weights {

/// Throws Error{data}.
WeightFile open_safetensors(std::shared_ptr<const data::ByteReader> file);

/// Whether a file begins as JSON does.
bool is_shard_index(const data::ByteReader& file);
/// The tensors that an index names, each from the file that it gives, which lies in the folder of the index. Throws
/// Error{data, no_input}.
WeightFile open_shards(const std::string& index_path);

}  // namespace stoker::weights
