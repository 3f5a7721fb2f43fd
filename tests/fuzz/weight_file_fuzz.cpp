// SPDX-License-Identifier: Apache-2.0
// Bytes as a whole file of weights, of any format: tensors whose numbers lie in storages that lie in the file, names
// that any network's plan can be made of; or refused as data.
#include <algorithm>
#include <memory>
#include <vector>

#include "core/error.h"
#include "fuzz_target.h"
#include "weights/file/weight_file.h"
#include "weights/names/name_plan.h"

namespace {

using namespace stoker;

void check(const weights::WeightFile& file, uint64_t size) {
  for (const weights::Storage& storage : file.storages) {
    FUZZ_CHECK(storage.begin <= size && storage.stored_bytes <= size - storage.begin);
    FUZZ_CHECK(storage.deflated ? storage.bytes / 1032 <= storage.stored_bytes : storage.bytes == storage.stored_bytes);
  }
  for (const weights::StoredTensor& tensor : file.tensors) {
    const uint64_t numbers = file.storages.at(tensor.storage).bytes / weights::bytes_of(tensor.type);
    uint64_t last = tensor.offset;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      if (tensor.shape[i] > 0)
        last += static_cast<uint64_t>(tensor.shape[i] - 1) * static_cast<uint64_t>(tensor.strides[i]);
    }
    const uint64_t count = tensor.count();
    FUZZ_CHECK(count == 0 || (last < numbers && count <= numbers));
  }
}

void plan(const weights::WeightFile& file, const char* network) {
  std::vector<weights::GroupedName> names;
  for (const weights::StoredTensor& tensor : file.tensors) names.push_back({tensor.group, tensor.name});
  try {
    for (const auto& source : weights::plan_names(network, {"conv1.weight"}, names, "fuzz.pth").sources) {
      for (const size_t place : source.theirs) FUZZ_CHECK(place < file.tensors.size());
    }
  } catch (const core::Error& error) {
    FUZZ_CHECK(error.kind() == core::ErrorKind::data);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  try {
    const auto reader = std::make_shared<data::MemoryBytes>("fuzz.pth", bytes, size);
    const weights::WeightFile file = weights::open_weight_file(reader);
    check(file, size);
    for (const char* network : {"resnet18", "efficientnet_b1", "mobilenet_v3_small", "vit_b_16"}) plan(file, network);
    for (size_t i = 0; i < file.storages.size(); ++i) {
      std::vector<uint8_t> content(file.storages[i].bytes);
      file.read_storage(i, content.data());
    }
  } catch (const core::Error& error) {
    FUZZ_CHECK(error.kind() == core::ErrorKind::data);
  }
  return 0;
}

/// Mostly changes a part in place: archives and older files know where their parts begin.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size, unsigned int seed) {
  fuzz::Choices choices(seed);
  if (size == 0 || choices.one_in(4)) return LLVMFuzzerMutate(bytes, size, max_size);
  const size_t at = choices.below(size), count = 1 + choices.below(std::min<size_t>(size - at, 64));
  LLVMFuzzerMutate(bytes + at, count, count);
  return size;
}
