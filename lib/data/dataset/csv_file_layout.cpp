// SPDX-License-Identifier: Apache-2.0
// A layout whose splits are called otherwise there: those of published data sets, and a list of images (.csv, .tsv,
// .txt) itself as --data-dir, which is the training split, whatever it is called, while other splits are files beside
// it.
#include <filesystem>
#include <utility>

#include "config/task_facts.h"
#include "data/layout.h"

namespace stoker::data {
namespace {

class RenamedLayout : public Layout {
 public:
  RenamedLayout(std::unique_ptr<Layout> layout, SplitNames names)
      : layout_(std::move(layout)), names_(std::move(names)) {
    type = layout_->type;
    note = layout_->note;
  }

  bool has_split(const std::string& split) const override { return layout_->has_split(there(split)); }

  std::vector<std::string> class_names(const std::string& train_split) const override {
    return layout_->class_names(there(train_split));
  }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& class_names,
                                     bool is_train, std::vector<std::string>& notes) const override {
    return layout_->open(there(split), class_names, is_train, notes);
  }

  std::string found_text() const override { return layout_->found_text(); }

 private:
  const std::string& there(const std::string& split) const {
    const auto found = names_.find(split);
    return found == names_.end() ? split : found->second;
  }

  const std::unique_ptr<Layout> layout_;
  const SplitNames names_;
};

}  // namespace

std::unique_ptr<Layout> make_csv_file_layout(const config::DataOptions& options) {
  const std::filesystem::path file(options.data_dir);
  config::DataOptions beside = options;
  beside.data_dir = file.has_parent_path() ? file.parent_path().string() : ".";
  beside.train_split = file.filename().string();
  SplitNames names = {{options.train_split, beside.train_split}};
  return make_renamed_layout(
      config::learns_numbers(options.task) ? make_csv_target_layout(beside) : make_csv_layout(beside), names);
}

std::unique_ptr<Layout> make_renamed_layout(std::unique_ptr<Layout> layout, SplitNames names) {
  return std::make_unique<RenamedLayout>(std::move(layout), std::move(names));
}

}  // namespace stoker::data
