// SPDX-License-Identifier: Apache-2.0
// A CSV file itself as --data-dir: it is the training split, whatever it is called, and other splits are files beside
// it. Knows nothing of columns: the layouts of a folder with CSV files read them.
#include <filesystem>
#include <utility>

#include "config/task_facts.h"
#include "data/layout.h"

namespace stoker::data {
namespace {

class CsvFileLayout : public Layout {
 public:
  explicit CsvFileLayout(const config::DataOptions& options) : train_(options.train_split) {
    const std::filesystem::path file(options.data_dir);
    config::DataOptions beside = options;
    beside.data_dir = file.has_parent_path() ? file.parent_path().string() : ".";
    beside.train_split = stem_ = file.stem().string();
    layout_ = config::learns_numbers(options.task) ? make_csv_target_layout(beside) : make_csv_layout(beside);
  }

  bool has_split(const std::string& split) const override { return layout_->has_split(stem_of(split)); }

  std::vector<std::string> class_names(const std::string& train_split) const override {
    return layout_->class_names(stem_of(train_split));
  }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& class_names,
                                     bool is_train, std::vector<std::string>& notes) const override {
    return layout_->open(stem_of(split), class_names, is_train, notes);
  }

 private:
  const std::string& stem_of(const std::string& split) const { return split == train_ ? stem_ : split; }

  const std::string train_;
  std::string stem_;
  std::unique_ptr<Layout> layout_;
};

}  // namespace

std::unique_ptr<Layout> make_csv_file_layout(const config::DataOptions& options) {
  return std::make_unique<CsvFileLayout>(options);
}

}  // namespace stoker::data
