// SPDX-License-Identifier: Apache-2.0
// A folder with images and two CSV manifests, for the tests of what manifests say.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/open_datasets.h"
#include "tests/data/made_data.h"

namespace stoker::data {

class CsvFiles : public testing::Test {
 protected:
  /// Writes one pixel under each name.
  explicit CsvFiles(const std::vector<std::string>& images = {"a.png", "b.png", "c.png"}) {
    for (const std::string& name : images) folder_.write(name, png_of({1, 2, 3}, 1, 1, 3));
    options_.data_dir = folder_.path();
  }

  /// The data sets of train.csv and val.csv with these texts.
  Datasets open(const std::string& train, const std::string& val) {
    folder_.write("train.csv", train);
    folder_.write("val.csv", val);
    return open_datasets(options_);
  }

  static std::vector<float> targets(const Source& source, int64_t index) {
    std::vector<float> row(static_cast<size_t>(source.num_targets()));
    source.targets(index, row.data());
    return row;
  }

  const TempFolder folder_;
  config::DataOptions options_;
};

}  // namespace stoker::data
