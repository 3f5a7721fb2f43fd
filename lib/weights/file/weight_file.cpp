// SPDX-License-Identifier: Apache-2.0
#include "weights/file/weight_file.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/system/file.h"
#include "core/text/json.h"
#include "data/archive/zip_directory.h"
#include "engine/files/safetensors_header.h"
#include "weights/file/other_kinds.h"
#include "weights/file/torch_files.h"

namespace stoker::weights {
namespace {

// Weights in safetensors: one file, or several with an index beside them (model.safetensors.index.json of Hugging Face,
// whose pytorch_model.bin.index.json has the same form).

using core::format;
using core::printable;

constexpr uint64_t kMaxIndex = 64 << 20;  // bytes
constexpr size_t kMaxShards = 1000;

[[noreturn]] void fail_index(const std::string& path, const std::string& reason) {
  throw core::Error(core::ErrorKind::data, printable(path) + ": " + reason,
                    "give the index that lies beside its files, or one file of weights");
}

NumberType type_of(const std::string& name) {
  for (int type = 0; type <= static_cast<int>(NumberType::boolean); ++type) {
    if (name == safetensors_name(static_cast<NumberType>(type))) return static_cast<NumberType>(type);
  }
  throw core::Error(core::ErrorKind::bug, "the dtype " + name + " has a size but no type");
}

/// Tensors by the file that an index gives for them.
std::map<std::string, std::vector<std::string>> read_index(const std::string& path) {
  const core::Json json = core::parse_json(core::read_file(path, kMaxIndex), printable(path), /*max_depth=*/8);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    fail_index(path, "this JSON file is not an index of weights: it has no weight_map");
  }
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [name, shard] : json["weight_map"].items()) {
    if (!shard.is_string()) fail_index(path, "the file of " + printable(name) + " is not text");
    const auto file = shard.get<std::string>();
    if (file.empty() || file == "." || file == ".." ||
        file.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
      fail_index(path, format("{} should lie in {}, which is not a plain file name", printable(name), printable(file)));
    }
    names[file].push_back(name);
    if (names.size() > kMaxShards) fail_index(path, format("it names more than {} files", kMaxShards));
  }
  if (names.empty()) fail_index(path, "its weight_map is empty");
  return names;
}

/// Adds the named tensors of one file.
void add_shard(const std::string& index, WeightFile shard, const std::vector<std::string>& names, WeightFile& all) {
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < shard.tensors.size(); ++i) {
    if (shard.tensors[i].group.empty()) places.emplace(shard.tensors[i].name, i);
  }
  const size_t first_file = all.files.size(), first_storage = all.storages.size();
  for (const std::string& name : names) {
    const auto place = places.find(name);
    if (place == places.end()) {
      const auto opaque = std::find_if(shard.opaque.begin(), shard.opaque.end(), [&](const OpaqueEntry& entry) {
        return entry.group.empty() && entry.name == name;
      });
      if (opaque != shard.opaque.end()) {
        all.opaque.push_back(*opaque);
        continue;
      }
      fail_index(index, format("{} lacks {}", printable(shard.path()), printable(name)));
    }
    all.tensors.push_back(shard.tensors[place->second]);
    all.tensors.back().storage += first_storage;
  }
  for (Storage storage : shard.storages) {
    storage.file += first_file;
    all.storages.push_back(storage);
  }
  all.files.insert(all.files.end(), shard.files.begin(), shard.files.end());
  for (const std::string& name : shard.passed_over) {
    const bool is_new = std::find(all.passed_over.begin(), all.passed_over.end(), name) == all.passed_over.end();
    if (is_new) all.passed_over.push_back(name);
  }
}

/// Throws Error{data}.
WeightFile open_safetensors(std::shared_ptr<const data::ByteReader> file) {
  const std::string what = printable(file->name());
  std::string front(std::min(file->size(), engine::kMaxSafetensorsHeader), '\0');
  file->read(0, front.data(), front.size());
  engine::SafetensorsHeader header = engine::parse_safetensors_header(front, file->size(), what);
  WeightFile weights;
  weights.format = "safetensors";
  weights.files = {std::move(file)};
  weights.metadata = std::move(header.metadata);
  for (const engine::TensorRecord& record : header.tensors) {
    StoredTensor tensor;
    tensor.name = record.name;
    tensor.type = type_of(record.dtype);
    tensor.shape = record.shape;
    tensor.strides.resize(record.shape.size());
    int64_t stride = 1;
    for (size_t i = record.shape.size(); i-- > 0;) {
      tensor.strides[i] = stride;
      stride *= std::max<int64_t>(record.shape[i], 1);
    }
    tensor.storage = weights.storages.size();
    const uint64_t bytes = record.end - record.begin;
    weights.storages.push_back({0, header.data_start + record.begin, bytes, bytes, false, 0});
    weights.tensors.push_back(std::move(tensor));
  }
  return weights;
}

/// Whether a file begins as JSON does.
bool is_shard_index(const data::ByteReader& file) {
  char begin[8] = {};
  const uint64_t count = std::min<uint64_t>(file.size(), sizeof begin);
  file.read(0, begin, count);
  const std::string_view text(begin, count);
  return !text.empty() && text[0] == '{' && text.find('\0') == std::string_view::npos;
}

/// The tensors that an index names, each from the file that it gives, which lies in the folder of the index. Throws
/// Error{data, no_input}.
WeightFile open_shards(const std::string& index_path) {
  const size_t slash = index_path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : index_path.substr(0, slash + 1);
  const auto names = read_index(index_path);
  WeightFile all;
  for (const auto& [file, tensors] : names) {
    WeightFile shard = open_weight_file(std::make_shared<data::FileBytes>(folder + file));
    if (all.format.empty()) all.format = format("{} in {} files", shard.format, names.size());
    add_shard(index_path, std::move(shard), tensors, all);
  }
  return all;
}

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

std::string WeightFile::sha256() const {
  if (files.size() == 1) return data::sha256_of(*files[0]);
  std::string digests;
  for (const auto& file : files) digests += data::sha256_of(*file);
  return core::sha256_hex(digests);
}

WeightFile open_weight_file(const std::string& path) {
  auto file = std::make_shared<data::FileBytes>(path);
  if (is_shard_index(*file)) return open_shards(path);
  return open_weight_file(std::move(file));
}

WeightFile open_weight_file(std::shared_ptr<const data::ByteReader> file) {
  if (is_torch_zip(*file)) return open_torch_zip(std::move(file));
  if (is_torch_legacy(*file)) return open_torch_legacy(std::move(file));
  refuse_other_kind(*file);
  return open_safetensors(std::move(file));
}

}  // namespace stoker::weights
