// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file, checked against the size of the file. Trusts nothing that it reads: every
// length is checked before memory is taken. Without LibTorch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::engine {

/// The entry of one tensor in the header.
struct TensorRecord {
  std::string name;
  std::string dtype;  ///< one that safetensors_element_bytes() supports
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  ///< bytes within the data section; end - begin fits shape and dtype
};

struct SafetensorsHeader {
  std::vector<TensorRecord> tensors;  ///< in the order of their data, which they cover without gap or overlap
  std::map<std::string, std::string> metadata;
  uint64_t data_start = 0;  ///< bytes from the start of the file
};

/// The longest header that is read, with its length in front: bytes.
inline constexpr uint64_t kMaxSafetensorsHeader = (16 << 20) + 8;

/// Bytes of one element of a dtype that we read ("F32": 4), or 0.
uint64_t safetensors_element_bytes(std::string_view dtype);

/// `bytes` are the whole file, `what` names it in messages. Throws Error{data} for anything malformed: overlap,
/// gaps, sizes that do not match or overflow, unknown types, a pickle or zip.
SafetensorsHeader parse_safetensors_header(std::string_view bytes, const std::string& what);
/// Parses from the first bytes of a file of `file_bytes`: all of it, or kMaxSafetensorsHeader.
SafetensorsHeader parse_safetensors_header(std::string_view front, uint64_t file_bytes, const std::string& what);

}  // namespace stoker::engine
