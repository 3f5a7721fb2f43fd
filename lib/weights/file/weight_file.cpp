// SPDX-License-Identifier: Apache-2.0
#include "weights/file/weight_file.h"

#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "data/archive/inflate.h"
#include "weights/file/safetensors_files.h"
#include "weights/file/torch_files.h"

namespace stoker::weights {
namespace {

struct TypeFacts {
  uint64_t bytes;
  const char* name;
};
/// In the order of NumberType.
constexpr TypeFacts kTypes[] = {{8, "F64"}, {4, "F32"}, {2, "F16"}, {2, "BF16"}, {8, "I64"},
                                {4, "I32"}, {2, "I16"}, {1, "I8"},  {1, "U8"},   {1, "BOOL"}};

}  // namespace

uint64_t bytes_of(NumberType type) { return kTypes[static_cast<size_t>(type)].bytes; }

const char* safetensors_name(NumberType type) { return kTypes[static_cast<size_t>(type)].name; }

uint64_t StoredTensor::count() const {
  uint64_t count = 1;
  for (const int64_t side : shape) count *= static_cast<uint64_t>(side);
  return count;
}

void WeightFile::read_storage(size_t storage, void* bytes) const {
  const Storage& place = storages.at(storage);
  data::read_stored(*files.at(place.file), place, core::format("storage {}", storage), bytes);
}

WeightFile open_weight_file(const std::string& path) {
  auto file = std::make_shared<data::FileBytes>(path);
  if (is_shard_index(*file)) return open_shards(path);
  return open_weight_file(std::move(file));
}

WeightFile open_weight_file(std::shared_ptr<const data::ByteReader> file) {
  if (is_torch_zip(*file)) return open_torch_zip(std::move(file));
  if (is_torch_legacy(*file)) return open_torch_legacy(std::move(file));
  return open_safetensors(std::move(file));
}

}  // namespace stoker::weights
