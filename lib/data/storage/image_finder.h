// SPDX-License-Identifier: Apache-2.0
// Where the images lie that a list names: below the data folder as written, else in another folder, with an extension
// behind an id, or without the folder that the list was written in. Images found so are reported.
#pragma once

#include <string>
#include <vector>

#include "data/storage/tree_walk.h"

namespace stoker::data {

class ImageFinder {
 public:
  /// `split` is what the list is called: its folders are looked into first.
  ImageFinder(std::string data_dir, std::string split);

  /// The path below data_dir of what a list calls `listed`; the name itself, and an empty stamp, when there is none.
  std::string find(const std::string& listed, FileStamp& stamp);
  /// How names are read, where not as written: "images are in train_images/, with .jpg behind the name"; or empty.
  std::string note() const;
  /// The file that is nearly `name`, for a message; empty: none is.
  std::string nearest(const std::string& name) const;

 private:
  /// The changes to a name: its first folders go, a folder comes before it, an extension behind it.
  struct Rule {
    size_t dropped = 0;
    std::string folder, suffix;
    size_t digits = 0;  ///< length to which zeros fill a number up: spreadsheets take them away; 0: as it is
  };
  std::string apply(const Rule& rule, const std::string& name) const;
  bool try_rule(const Rule& rule, const std::string& name, std::string& path, FileStamp& stamp) const;
  const std::vector<std::string>& folders();
  const std::vector<std::string>& folders_below();
  bool find_new_rule(const std::string& name, std::string& path, FileStamp& stamp);
  bool find_rule(const std::string& name, const Rule& like, const std::vector<std::string>& places, std::string& path,
                 FileStamp& stamp);
  std::string absolute(const std::string& path) const;

  const std::string data_dir_, split_;
  std::vector<Rule> rules_;                           ///< that were right once, the last one first
  std::vector<std::string> folders_, folders_below_;  ///< each listed once
  bool has_folders_below_ = false;
  bool has_found_ = false;  ///< a name as it was written
  int misses_ = 0;
};

}  // namespace stoker::data
