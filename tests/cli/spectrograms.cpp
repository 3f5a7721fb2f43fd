// SPDX-License-Identifier: Apache-2.0
#include "spectrograms.h"

#include <filesystem>

#include "data/made_hdf5.h"

namespace stoker::cli {
namespace {

void write_split(const std::string& path, int64_t samples) {
  std::vector<float> values;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < samples; ++i) {
    labels.push_back(i % 3 == 0 ? 1 : 0);
    for (int64_t k = 0; k < 16 * 24; ++k) {
      const bool is_loud = (k < 8 * 24) == (labels.back() == 1);
      values.push_back(static_cast<float>(-50 + (k * 31 + i * 17) % 13 + (is_loud ? 6 : 0)));
    }
  }
  data::MadeHdf5 file(path);
  data::Hdf5Recipe recipe;
  recipe.chunk = {8, 16, 24};
  recipe.shuffle = recipe.deflate = true;
  file.add("x", "float32", {samples, 16, 24}, data::floats_of(values), recipe);
  file.add_labels("y", labels);
}

}  // namespace

void write_spectrograms(const Workplace& work) {
  std::filesystem::create_directories(work / "data");
  write_split(work / "data/train.h5", 64);
  write_split(work / "data/val.h5", 20);
}

}  // namespace stoker::cli
