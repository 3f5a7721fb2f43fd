// SPDX-License-Identifier: Apache-2.0
// A list per split with a path and a class for each image: <split>.csv, .tsv or .txt. Labels are whole numbers, class
// names, one column per class of which one is 1, or the folders of the paths; the training file decides which, for all
// files.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <set>
#include <unordered_map>
#include <utility>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "data/dataset/csv_manifest.h"
#include "data/dataset/file_source.h"
#include "data/layout.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

/// Turns labels into class indices by the rule of the class list.
class LabelRule {
 public:
  explicit LabelRule(const std::vector<std::string>& class_names)
      : class_names_(class_names), numbers_(are_numbers(class_names)) {
    for (size_t i = 0; i < class_names.size(); ++i) by_name_.emplace(class_names[i], static_cast<int64_t>(i));
  }

  int64_t index_of(const LabelManifest& row) const {
    const auto classes = static_cast<int64_t>(class_names_.size());
    if (numbers_) {
      const int64_t value = row.whole_label();
      if (value < classes) return value;
      row.fail(core::format("label {} is out of range: there are {} classes, 0 to {}", value, classes, classes - 1),
               "labels are counted from 0; their number follows from the training split or --num-classes");
    }
    const auto found = by_name_.find(row.label());
    if (found != by_name_.end()) return found->second;
    const std::string near = core::nearest_name(row.label(), class_names_);
    row.fail(core::format("class '{}' does not occur in the training split{}", core::printable(row.label()),
                          near.empty() ? "" : "; did you mean '" + core::printable(near) + "'?"));
  }

 private:
  static bool are_numbers(const std::vector<std::string>& class_names) {
    for (size_t i = 0; i < class_names.size(); ++i) {
      if (class_names[i] != std::to_string(i)) return false;
    }
    return !class_names.empty();
  }

  const std::vector<std::string>& class_names_;
  const bool numbers_;
  std::unordered_map<std::string, int64_t> by_name_;
};

class CsvLayout : public Layout {
 public:
  explicit CsvLayout(const config::DataOptions& options) : options_(options) {}

  bool has_split(const std::string& split) const override { return !list_of_split(options_.data_dir, split).empty(); }

  std::vector<std::string> class_names(const std::string& train_split) const override {
    LabelManifest manifest = opened(train_split);
    std::set<std::string> names;
    int64_t largest = -1;
    bool numbers = false, are_ids = false;
    for (bool first = true; manifest.next(); first = false) {
      const std::string& label = manifest.label();
      if (first) numbers = looks_whole(label);
      if (numbers && !looks_whole(label) && manifest.is_guess()) {
        names.insert(label);
        manifest.require_classes(names);
      }
      if (numbers) {
        are_ids = are_ids || is_id(label);
        if (!are_ids) largest = std::max(largest, manifest.whole_label());
        if (!are_ids && !options_.num_classes.is_auto() && largest >= options_.num_classes.value()) {
          manifest.fail(
              core::format("label {} is out of range: --num-classes is {}", largest, options_.num_classes.value()),
              "labels are counted from 0");
        }
        if (are_ids && !looks_whole(label)) manifest.whole_label();
      } else if (looks_whole(label)) {
        names.insert(label);
        manifest.require_classes(names);
        manifest.fail(
            core::format("label '{}' is a number, but the first label is a name", label),
            "use either numbers or class names for all rows of all splits; where an image has several: --task "
            "multilabel");
      }
      names.insert(label);
    }
    if (names.empty()) manifest.fail("there are no rows after the header", kCsvHint);
    manifest.require_classes(names);
    if (!manifest.one_hot_names().empty()) return manifest.one_hot_names();
    if (!numbers || are_ids) return {names.begin(), names.end()};
    const int64_t classes = options_.num_classes.is_auto() ? largest + 1 : options_.num_classes.value();
    std::vector<std::string> numbered;
    for (int64_t i = 0; i < classes; ++i) numbered.push_back(std::to_string(i));
    return numbered;
  }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& class_names, bool,
                                     std::vector<std::string>& notes) const override {
    LabelManifest manifest = opened(split);
    const LabelRule rule(class_names);
    FileList files(options_.data_dir);
    ScanNotes scan_notes;
    ListedFiles listed(files);
    while (manifest.next()) {
      core::throw_if_stopped();
      const int64_t label = rule.index_of(manifest);
      FileStamp stamp;
      std::string path = manifest.image(stamp);
      const SoundPart part = manifest.part();
      if (const int64_t earlier = listed.earlier(path, part); earlier >= 0) {
        if (files.label(earlier) != label) manifest.fail("the same path stood earlier with another label");
        scan_notes.count("paths listed more than once", manifest.path());
        path = files.relative_path(earlier);  // in its spelling: one file is on one side of a split
      }
      if (stamp.size < 0) count_missing(manifest, scan_notes);
      files.add(path, label, stamp);
      if (manifest.has_parts()) files.set_part(part);
    }
    if (files.size() == 0) manifest.fail("there are no rows after the header", kCsvHint);
    files.stage(options_.stage_dir, scan_notes);
    for (const std::string& note : {manifest.note(), manifest.remark(), manifest.finder().note()}) {
      if (!note.empty()) notes.push_back(split + ": " + note);
    }
    for (const std::string& line : scan_notes.lines()) notes.push_back(split + ": " + line);
    return make_file_source(std::move(files), class_names, options_);
  }

  ColumnValues column(const std::string& split, const std::string& name) const override {
    return column_values({list_of_split(options_.data_dir, split), options_, kCsvHint, split}, name);
  }

  std::string found_text() const override {
    const std::string column = has_split(options_.train_split) ? opened(options_.train_split).split_column() : "";
    if (column.empty()) return "";
    return core::format(
        "\nits column '{}' names splits: write the rows of each into a list of its own, {}.csv and val.csv",
        core::printable(column), core::printable(options_.train_split));
  }

 private:
  LabelManifest opened(const std::string& split) const {
    return {list_of_split(options_.data_dir, split), options_, split};
  }

  const config::DataOptions options_;
};

}  // namespace

bool looks_whole(const std::string& text) {
  const size_t start = !text.empty() && text[0] == '-' ? 1 : 0;
  return text.size() > start && text.find_first_not_of("0123456789", start) == std::string::npos;
}

bool is_id(const std::string& text) {
  if (!looks_whole(text) || text[0] == '-') return false;
  return (text.size() > 1 && text[0] == '0') || text.size() > 6;
}

void count_missing(const CsvManifest& manifest, ScanNotes& notes) {
  constexpr char kMissing[] = "files of the manifest that are not there";
  const std::string near = notes.has_counted(kMissing) ? "" : manifest.finder().nearest(manifest.path());
  notes.count(kMissing, manifest.path() + (near.empty() ? "" : "; there is " + near));
}

ColumnValues column_values(CsvManifest list, const std::string& name) {
  ColumnValues values;
  const size_t column = list.find_column(name);
  if (column >= list.header().size()) return values;
  FileStamp stamp;
  while (list.next()) values.emplace_back(list.image(stamp) + part_text(list.part()), list.field(column));
  return values;
}

std::unique_ptr<Layout> make_csv_layout(const config::DataOptions& options) {
  return std::make_unique<CsvLayout>(options);
}

// A layout whose splits are called otherwise there: those of published data sets, and a list of images (.csv, .tsv,
// .txt) itself as --data-dir, which is the training split, whatever it is called, while other splits are files beside
// it.

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

  ColumnValues column(const std::string& split, const std::string& name) const override {
    return layout_->column(there(split), name);
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
      config::is_numeric_task(options.task) ? make_csv_target_layout(beside) : make_csv_layout(beside), names);
}

std::unique_ptr<Layout> make_renamed_layout(std::unique_ptr<Layout> layout, SplitNames names) {
  return std::make_unique<RenamedLayout>(std::move(layout), std::move(names));
}

}  // namespace stoker::data
