// SPDX-License-Identifier: Apache-2.0
// Bytes as the pickle of a state dict: plain values that refer to each other inside their table, and tensors whose
// views lie inside their storages; or refused as data.
#include <string>
#include <string_view>

#include "core/error.h"
#include "data/archive/pickle_reader.h"
#include "fuzz_target.h"
#include "weights/file/torch_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace stoker::weights;
  using namespace stoker::data;
  const std::string what = "fuzz.pth";
  try {
    uint64_t consumed = 0;
    const PickleTree tree = read_pickle({reinterpret_cast<const char*>(bytes), size}, what, consumed);
    FUZZ_CHECK(consumed > 0 && consumed <= size && bytes[consumed - 1] == '.');
    FUZZ_CHECK(tree.root < tree.values.size());
    for (const PickleValue& value : tree.values) {
      for (const ValueIndex item : value.items) FUZZ_CHECK(item < tree.values.size());
      FUZZ_CHECK(value.kind != ValueKind::dictionary || value.items.size() % 2 == 0);
      if (value.kind == ValueKind::tensor) FUZZ_CHECK(tree.tensor(value).storage < tree.values.size());
    }
    for (const PickledTensor& tensor : tree.tensors) FUZZ_CHECK(tensor.shape.size() == tensor.strides.size());
    uint64_t asked = 0;
    WeightFile file;
    take_tensors(
        tree, what, [&](std::string_view, NumberType, uint64_t) { return asked++; }, file);
    const std::vector<StoredTensor>& tensors = file.tensors;
    FUZZ_CHECK(!tensors.empty());
    for (const StoredTensor& tensor : tensors) {
      FUZZ_CHECK(tensor.storage < asked);
      for (const int64_t side : tensor.shape) FUZZ_CHECK(side >= 0);
      for (const int64_t stride : tensor.strides) FUZZ_CHECK(stride >= 0);
    }
  } catch (const stoker::core::Error& error) {
    FUZZ_CHECK(error.kind() == stoker::core::ErrorKind::data);
  }
  return 0;
}
