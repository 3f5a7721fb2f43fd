// SPDX-License-Identifier: Apache-2.0
// The content of a file of weights: tensors by name, each a view of a run of bytes somewhere in the file. Reads
// safetensors (also several files behind an index) and what Python's torch.save() writes of a state dict. Nothing in a
// file is ever executed, and every size is checked against the file before memory is taken. Without LibTorch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/archive/pickle_reader.h"
#include "data/archive/zip_directory.h"
#include "data/storage/byte_reader.h"

namespace stoker::weights {

using data::NumberType;
using data::Storage;

uint64_t bytes_of(NumberType type);             ///< size of one number
const char* safetensors_name(NumberType type);  ///< "F32"

struct StoredTensor {
  std::string group;  ///< keys of the dictionaries around it, joined by dots: "state_dict"; empty at the top
  std::string name;
  NumberType type = NumberType::f32;
  std::vector<int64_t> shape;    ///< sides, 0 or more; their product fits 63 bits
  std::vector<int64_t> strides;  ///< in numbers, not negative; as many as sides
  uint64_t offset = 0;           ///< numbers before the first one in its storage
  size_t storage = 0;            ///< all numbers lie inside this storage, and are not more than it has

  uint64_t count() const;  ///< numbers
};

/// An object of an unknown class in place of a tensor: never built.
struct OpaqueEntry {
  std::string group, name;
  std::string type;        ///< the class that it comes out of: "__main__.Sub"; the builder where none is given
  std::string builder;     ///< the class or function that Python would call
  bool is_tensor = false;  ///< PyTorch builds a tensor with it: one of a subclass, a sparse one
};

class WeightFile {
 public:
  std::string format;  ///< in words: "safetensors", "PyTorch zip", "PyTorch before 1.6"
  std::vector<StoredTensor> tensors;
  std::vector<Storage> storages;  ///< runs of bytes that one or more tensors look at
  std::vector<OpaqueEntry> opaque;
  std::vector<std::string> passed_over;  ///< names of Python that stand beside the tensors: nothing of them was run
  std::vector<std::shared_ptr<const data::ByteReader>> files;
  std::map<std::string, std::string> metadata{};  ///< metadata of one safetensors file

  const std::string& path() const { return files.at(0)->name(); }
  /// Reads all of a storage: storages[i].bytes bytes. Throws Error{data} where the content does not fit its checksum or
  /// does not inflate to its size, {io} when the disk fails.
  void read_storage(size_t storage, void* bytes) const;
  /// The file's digest as sha256sum prints it; with several files, that of their digests one after the other.
  std::string sha256() const;
};

/// Throws Error{no_input} when the file cannot be read, {data} with the reason for all that is not a state dict.
WeightFile open_weight_file(const std::string& path);
/// Opens one file through its reader; an index of several files is refused.
WeightFile open_weight_file(std::shared_ptr<const data::ByteReader> file);

}  // namespace stoker::weights
