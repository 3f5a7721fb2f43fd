// SPDX-License-Identifier: Apache-2.0
// <data_dir>/<split>.csv with the columns path and label, or those that options name. Labels are whole numbers or class
// names; the first row of the training file decides which, for all files.
#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "data/dataset/csv_manifest.h"
#include "data/dataset/file_source.h"
#include "data/layout.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

constexpr int64_t kMaxClasses = 1'000'000;
constexpr char kCsvHint[] = "the file begins with the line path,label and goes on like cats/1.jpg,0 or cats/1.jpg,cat";

/// Digits with at most one minus before them; anything else is a name.
bool looks_whole(const std::string& text) {
  const size_t start = !text.empty() && text[0] == '-' ? 1 : 0;
  return text.size() > start && text.find_first_not_of("0123456789", start) == std::string::npos;
}

bool are_numbers(const std::vector<std::string>& class_names) { return !class_names.empty() && class_names[0] == "0"; }

/// A row of the manifest with its label.
class LabelManifest : public CsvManifest {
 public:
  LabelManifest(const std::string& path, const config::DataOptions& options)
      : CsvManifest(path, options, kCsvHint),
        label_column_(column(options.csv_label.empty() ? "label" : options.csv_label)) {}

  bool next() {
    if (!CsvManifest::next()) return false;
    if (label().empty()) fail("the label is missing", kCsvHint);
    return true;
  }

  const std::string& label() const { return field(label_column_); }

  /// The label of this row as a class index.
  int64_t whole_label() const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(label().data(), label().data() + label().size(), value);
    if (error != std::errc() || end != label().data() + label().size()) {
      fail(core::format("label '{}' is not a whole number, but other labels are", core::printable(label())),
           "use either numbers or class names for all rows of all splits");
    }
    if (value < 0) fail(core::format("label {} is negative", value), "labels are counted from 0");
    if (value >= kMaxClasses) fail(core::format("label {} is too large: there may be {} classes", value, kMaxClasses));
    return value;
  }

 private:
  size_t label_column_;
};

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
               "labels are counted from 0; the training split and --num-classes say how many there are");
    }
    const auto found = by_name_.find(row.label());
    if (found != by_name_.end()) return found->second;
    const std::string near = core::nearest_name(row.label(), class_names_);
    row.fail(core::format("class '{}' does not occur in the training split{}", core::printable(row.label()),
                          near.empty() ? "" : "; did you mean '" + core::printable(near) + "'?"));
  }

 private:
  const std::vector<std::string>& class_names_;
  const bool numbers_;
  std::unordered_map<std::string, int64_t> by_name_;
};

class CsvLayout : public Layout {
 public:
  explicit CsvLayout(const config::DataOptions& options) : options_(options) {}

  bool has_split(const std::string& split) const override { return core::file_exists(file_of(split)); }

  std::vector<std::string> class_names(const std::string& train_split) const override {
    LabelManifest manifest(file_of(train_split), options_);
    std::set<std::string> names;
    int64_t largest = -1;
    bool numbers = false;
    for (bool first = true; manifest.next(); first = false) {
      if (first) numbers = looks_whole(manifest.label());
      if (numbers) {
        largest = std::max(largest, manifest.whole_label());
        if (!options_.num_classes.is_auto() && largest >= options_.num_classes.value()) {
          manifest.fail(
              core::format("label {} is out of range: --num-classes is {}", largest, options_.num_classes.value()),
              "labels are counted from 0");
        }
        continue;
      }
      if (looks_whole(manifest.label())) {
        manifest.fail(core::format("label '{}' is a number, but the first label is a name", manifest.label()),
                      "use either numbers or class names for all rows of all splits");
      }
      names.insert(manifest.label());
    }
    if (!numbers && names.empty()) manifest.fail("there are no rows after the header", kCsvHint);
    if (!numbers) return {names.begin(), names.end()};
    const int64_t classes = options_.num_classes.is_auto() ? largest + 1 : options_.num_classes.value();
    std::vector<std::string> numbered;
    for (int64_t i = 0; i < classes; ++i) numbered.push_back(std::to_string(i));
    return numbered;
  }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& class_names, bool,
                                     std::vector<std::string>& notes) const override {
    LabelManifest manifest(file_of(split), options_);
    const LabelRule rule(class_names);
    FileList files(options_.data_dir);
    ScanNotes scan_notes;
    std::unordered_map<uint64_t, int64_t> seen;  // hash of a path -> its first entry
    while (manifest.next()) {
      core::throw_if_stopped();
      const int64_t label = rule.index_of(manifest);
      const auto [first, is_new] = seen.emplace(core::hash64(manifest.path()), files.size());
      if (!is_new && files.relative_path(first->second) == manifest.path()) {
        if (files.label(first->second) != label) manifest.fail("the same path stood earlier with another label");
        scan_notes.count("paths listed more than once", manifest.path());
      }
      const FileStamp stamp = stamp_of(files.absolute(manifest.path()));
      if (stamp.size < 0) scan_notes.count("files of the manifest that are not there", manifest.path());
      files.add(manifest.path(), label, stamp);
    }
    if (files.size() == 0) manifest.fail("there are no rows after the header", kCsvHint);
    files.stage(options_.stage_dir, scan_notes);
    for (const std::string& line : scan_notes.lines()) notes.push_back(split + ": " + line);
    return make_file_source(std::move(files), class_names);
  }

 private:
  std::string file_of(const std::string& split) const { return options_.data_dir + "/" + split + ".csv"; }

  const config::DataOptions options_;
};

}  // namespace

std::unique_ptr<Layout> make_csv_layout(const config::DataOptions& options) {
  return std::make_unique<CsvLayout>(options);
}

}  // namespace stoker::data
