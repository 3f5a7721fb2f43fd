// SPDX-License-Identifier: Apache-2.0
// Tensors by name in a file that Python's `safetensors` reads: 8 bytes of header length (little-endian), a JSON
// header, then the data without gaps. https://github.com/huggingface/safetensors describes the format.
// Reading trusts nothing: every length is checked before memory is taken, and no code is ever run.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/system/file_system.h"
#include "model/image_model.h"

namespace stoker::engine {

using model::NamedTensor;

struct WrittenFile {
  int64_t bytes = 0;
  std::string digest;  ///< XXH3-128, hexadecimal
};

/// Writes a new file durably; tensors of any device and layout are stored contiguously. Throws core::Error.
WrittenFile write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                              const std::map<std::string, std::string>& metadata = {},
                              core::FileSystem& files = core::posix_file_system());

/// Such a file, whole or not at all, in place of one of that name. Throws core::Error.
void replace_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                         const std::map<std::string, std::string>& metadata);

struct SafetensorsContent {
  std::vector<NamedTensor> tensors;  ///< CPU, contiguous, owned, in file order of the data
  std::map<std::string, std::string> metadata;
};

/// Throws Error{data} for anything malformed (overlap, gaps, sizes that do not match, unknown types, text that is
/// a pickle or zip), Error{no_input} when the file cannot be read.
SafetensorsContent read_safetensors(const std::string& path);
/// read_safetensors() of bytes in memory; `what` names them in messages.
SafetensorsContent parse_safetensors(const std::string& bytes, const std::string& what);

}  // namespace stoker::engine
