// SPDX-License-Identifier: Apache-2.0
// Bytes as an array of NumPy: behind an even first byte a .npy file, behind an odd one a pickle. Images and labels are
// as many as the shape requires, or the file is refused as data.
#include <cstdint>
#include <string>
#include <utility>

#include "core/error.h"
#include "data/arrays/numpy_array.h"
#include "fuzz_target.h"

namespace {

void take(stoker::data::PythonArray array, bool as_labels) {
  using namespace stoker::data;
  if (as_labels) {
    const std::vector<int64_t> shape = array.shape;
    const std::vector<int32_t> labels = labels_in(array);
    FUZZ_CHECK(shape.empty() || static_cast<int64_t>(labels.size()) == shape[0]);
    return;
  }
  int height = 0, width = 0, channels = 0;
  const std::vector<uint8_t> pixels = pixels_in(std::move(array), height, width, channels);
  const auto area = static_cast<size_t>(height) * static_cast<size_t>(width) * static_cast<size_t>(channels);
  FUZZ_CHECK(height > 0 && width > 0 && (channels == 1 || channels == 3) && pixels.size() % area == 0);
}

void take_pickle(const std::string& content, bool as_labels) {
  using namespace stoker::data;
  uint64_t consumed = 0;
  const PickleTree tree = read_pickle(content, "fuzz.pkl", consumed);
  for (ValueIndex index = 0; index < tree.values.size(); ++index) {
    bytes_in_pickle(tree, index);
    integer_in_pickle(tree, index);
    if (!is_array_in_pickle(tree, index)) continue;
    take(array_in_pickle(tree, index, "fuzz.pkl"), as_labels);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::string content(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const bool as_labels = (bytes[0] & 2) != 0;
  try {
    if ((bytes[0] & 1) != 0) {
      take_pickle(content, as_labels);
    } else {
      take(stoker::data::read_npy(content, "fuzz.npy"), as_labels);
    }
  } catch (const stoker::core::Error& error) {
    FUZZ_CHECK(error.kind() == stoker::core::ErrorKind::data);
  }
  return 0;
}
