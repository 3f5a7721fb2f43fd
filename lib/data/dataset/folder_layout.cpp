// SPDX-License-Identifier: Apache-2.0
// <data_dir>/<split>/<class>/**/<image>: the folder's name is the class.
#include "data/dataset/class_folders.h"
#include "data/dataset/file_source.h"

namespace stoker::data {
namespace {

class ImageScan : public ClassFolderScan {
 public:
  ImageScan(const std::string& folder, const std::string& stage_dir)
      : folder_(folder), stage_dir_(stage_dir), files_(folder) {}

  void add_class(TreeWalker& walker, const std::string& class_name, int64_t label) override {
    walker.visit_images(folder_, class_name,
                        [&](const std::string& path, const FileStamp& stamp) { files_.add(path, label, stamp); });
  }
  int64_t samples() const override { return files_.size(); }
  std::shared_ptr<const Source> source(const std::vector<std::string>& class_names, ScanNotes& notes) override {
    files_.stage(stage_dir_, notes);
    return make_file_source(std::move(files_), class_names);
  }

 private:
  const std::string folder_, stage_dir_;
  FileList files_;
};

class FolderLayout : public ClassFolders {
 public:
  using ClassFolders::ClassFolders;

 protected:
  std::unique_ptr<ClassFolderScan> begin_scan(const std::string& folder) const override {
    return std::make_unique<ImageScan>(folder, options_.stage_dir);
  }
  std::string expected_tree() const override {
    return "expected <data-dir>/<split>/<class>/*.jpg: one folder per class";
  }
  std::string samples_word() const override { return "images"; }
};

}  // namespace

std::unique_ptr<Layout> make_folder_layout(const config::DataOptions& options, bool root_is_train) {
  return std::make_unique<FolderLayout>(options, root_is_train);
}

}  // namespace stoker::data
