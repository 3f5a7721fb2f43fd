// SPDX-License-Identifier: Apache-2.0
// A source over a list of image files. Knows nothing of how the list came about.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/sample_file.h"
#include "data/source.h"

namespace stoker::data {

/// Labelled paths in order: 32 bytes each, and all paths in one text.
class FileList {
 public:
  /// Relative paths are below `directory`.
  explicit FileList(std::string directory) : directory_(std::move(directory)) {}

  void add(std::string_view path, int64_t label, const FileStamp& stamp);
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int64_t label(int64_t index) const { return entries_[static_cast<size_t>(index)].label; }
  FileStamp stamp(int64_t index) const;
  std::string_view relative_path(int64_t index) const;
  std::string path(int64_t index) const { return absolute(relative_path(index)); }
  std::string absolute(std::string_view relative_path) const;
  void shrink_to_fit();
  int64_t memory_bytes() const {
    return static_cast<int64_t>(paths_.capacity() + entries_.capacity() * sizeof(Entry));
  }

 private:
  struct Entry {
    uint64_t path_at;
    int64_t size, modified_ns;
    uint32_t path_length;
    int32_t label;
  };
  static_assert(sizeof(Entry) <= 64, "an entry must stay small: there are millions");

  std::string directory_;
  std::string paths_;
  std::vector<Entry> entries_;
};

std::shared_ptr<const Source> make_file_source(FileList files, std::vector<std::string> class_names);

}  // namespace stoker::data
