// SPDX-License-Identifier: Apache-2.0
// Small data sets as rows of a table, opened and written as a line: what was read, or the message.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "data/open_datasets.h"
#include "tests/data/made_data.h"

namespace stoker::data {

using Names = std::vector<std::string>;

inline const Bytes& one_pixel() {
  static const Bytes png = png_of({1, 2, 3}, 1, 1, 3);
  return png;
}

inline void write_images(const TempFolder& folder, const Names& names) {
  for (const std::string& name : names) folder.write(name, one_pixel());
}

inline std::string joined(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "|") + name;
  return text;
}

inline std::string labels_of(const Source& source) {
  std::string text;
  for (int64_t i = 0; i < source.size(); ++i) text += source.class_names()[static_cast<size_t>(source.label(i))] + " ";
  return text;
}

/// "train labels / val labels", class names; or the message.
inline std::string read_as(const TempFolder& folder, config::DataOptions options) {
  if (options.data_dir == config::DataOptions().data_dir) options.data_dir = folder.path();
  try {
    const Datasets data = open_datasets(options);
    std::vector<uint8_t> buffer;
    SampleContent content;
    for (int64_t i = 0; i < data.val->size(); ++i) {
      if (const std::string cause = data.val->read(i, buffer, content); !cause.empty()) return "val: " + cause;
    }
    return labels_of(*data.train) + "/ " + labels_of(*data.val) + "of " + joined(data.train->class_names());
  } catch (const core::Error& error) {
    return std::string(error.what()) + " # " + error.hint();
  }
}

inline std::string notes_of(const TempFolder& folder) {
  config::DataOptions options;
  options.data_dir = folder.path();
  return joined(open_datasets(options).notes);
}

struct Case {
  const char* name;
  std::function<void(const TempFolder&)> make;
  const char* read;  ///< what read_as() begins with
  std::function<void(config::DataOptions&)> set = [](config::DataOptions&) {};
};

inline void expect_all(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    const TempFolder folder;
    one.make(folder);
    config::DataOptions options;
    one.set(options);
    if (options.data_dir == "photos.zip") options.data_dir = folder / "photos.zip";
    std::string text = read_as(folder, options);
    for (size_t at = text.find(folder.path()); at != std::string::npos; at = text.find(folder.path())) {
      text.replace(at, folder.path().size(), "DIR");
    }
    EXPECT_NE(text.find(one.read), std::string::npos) << one.name << " was " << text;
  }
}

}  // namespace stoker::data
