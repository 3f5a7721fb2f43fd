// SPDX-License-Identifier: Apache-2.0
// <data_dir>/<split>/<class>/...: what is the same whether a class folder holds images or videos.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/layout.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {

/// The folder itself, or train/train where it holds nothing else, as some archives unpack.
std::string folder_of_classes(const std::string& folder);

/// The content of the class folders of one split.
class ClassFolderScan {
 public:
  virtual ~ClassFolderScan() = default;
  /// Adds what is at or below `class_name`, a folder that has been claimed. Classes come in the order of
  /// their labels.
  virtual void add_class(TreeWalker& walker, const std::string& class_name, int64_t label) = 0;
  virtual int64_t samples() const = 0;  ///< so far
  /// A sentence where the folders below those of the classes may be the classes; or empty.
  virtual std::string levels(const std::vector<std::string>& /*class_names*/) const { return ""; }
  /// Ends the scan.
  virtual std::shared_ptr<const Source> source(const std::vector<std::string>& class_names, ScanNotes& notes) = 0;
};

class ClassFolders : public Layout {
 public:
  /// `root_is_train`: the class folders of the split named train_split lie directly in data_dir.
  ClassFolders(const config::DataOptions& options, bool root_is_train)
      : options_(options), root_is_train_(root_is_train) {}

  bool has_split(const std::string& split) const override;
  std::vector<std::string> class_names(const std::string& train_split) const override;
  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& class_names,
                                     bool is_train, std::vector<std::string>& notes) const override;

 protected:
  /// For the split in `folder`.
  virtual std::unique_ptr<ClassFolderScan> begin_scan(const std::string& folder) const = 0;
  virtual std::string expected_tree() const = 0;
  /// "images": what the samples are called.
  virtual std::string samples_noun() const = 0;

  const config::DataOptions options_;

 private:
  std::string folder_of(const std::string& split) const;
  void on_empty_class(const std::string& folder, bool is_train, int64_t samples_before, ScanNotes& notes) const;

  const bool root_is_train_;
};

}  // namespace stoker::data
