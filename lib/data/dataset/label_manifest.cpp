// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/label_manifest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/format.h"

namespace stoker::data {
namespace {

constexpr int64_t kMaxClasses = 1'000'000;
constexpr size_t kLookedAt = 50;  // rows that say what columns hold
constexpr std::array kLabelNames = {"label",   "labels",   "class",  "class_name", "classname", "class_id",
                                    "classid", "category", "target", "label_id",   "y"};

/// Whether it is a number; `value` is then it.
bool reads_number(const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

bool is_zero_or_one(const std::string& text) {
  double value = -1;
  return reads_number(text, value) && (value == 0 || value == 1);
}

bool is_list(const std::string& text) { return text.size() > 1 && text.front() == '[' && text.back() == ']'; }

std::string quoted_names(const CsvManifest& manifest, const std::vector<size_t>& columns) {
  std::vector<std::string> names;
  for (const size_t column : columns) names.push_back("'" + core::printable(manifest.header()[column]) + "'");
  return core::list_text(names, 6);
}

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
  const std::string near = manifest.finder().nearest(manifest.path());
  notes.count("files of the manifest that are not there", manifest.path() + (near.empty() ? "" : "; there is " + near));
}

LabelManifest::LabelManifest(const std::string& path, const config::DataOptions& options, const std::string& split)
    : CsvManifest(path, options, kCsvHint, split) {
  choose_column(options.csv_label);
  // Oxford's pets: "great_dane_12 17 2 9", where the number of the class is less informative than its name.
  const std::string last = path.substr(path.find_last_of('/') + 1);
  const bool is_of_pets = core::ends_with(path, "annotations/" + last) &&
                          (last == "trainval.txt" || last == "test.txt" || last == "list.txt");
  if (is_of_pets && !has_header() && header().size() == 4 && options.csv_label.empty()) kind_ = Kind::stem;
}

void LabelManifest::choose_column(const std::string& asked) {
  if (!asked.empty()) {
    label_column_ = column(asked);
    return;
  }
  for (const char* const name : kLabelNames) {
    label_column_ = find_column(name);
    if (label_column_ < header().size() && label_column_ != path_column()) return;
  }
  std::vector<size_t> others;
  for (size_t i = 0; i < header().size(); ++i) {
    if (i != path_column()) others.push_back(i);
  }
  is_guess_ = true;
  if (others.empty()) {
    kind_ = Kind::folder;
  } else if (others.size() == 1 || !has_header()) {
    label_column_ = others.front();
  } else {
    choose_among(others);
  }
}

/// Several columns, of which none is called like a label.
void LabelManifest::choose_among(const std::vector<size_t>& others) {
  const std::vector<std::vector<std::string>> rows = peek(kLookedAt);
  bool are_flags = !rows.empty(), is_one = true, are_numbers = !rows.empty();
  for (const std::vector<std::string>& row : rows) {
    if (row.size() != header().size()) break;
    int ones = 0;
    for (const size_t column : others) {
      double value = 0;
      are_numbers = are_numbers && reads_number(row[column], value);
      are_flags = are_flags && is_zero_or_one(row[column]);
      ones += value == 1;
    }
    is_one = is_one && ones == 1;
  }
  if (are_flags && is_one) {
    kind_ = Kind::one_hot;
    one_hot_ = others;
    return;
  }
  const std::string names = quoted_names(*this, others);
  if (are_flags) fail(core::format("columns {} hold 0 and 1, not one 1 in each row: --task multilabel", names));
  const bool is_pose = find_column("yaw") < header().size() && find_column("pitch") < header().size();
  if (is_pose) fail("columns 'yaw', 'pitch' and 'roll' hold angles: --task head-pose");
  if (are_numbers) {
    fail(core::format("columns {} hold numbers: --task regression", names),
         "or name the one with classes: --csv-label NAME");
  }
  column("label");
}

bool LabelManifest::next() {
  if (!CsvManifest::next()) return false;
  ++rows_;
  if (kind_ == Kind::column) {
    label_ = field(label_column_);
  } else if (kind_ == Kind::stem) {
    label_ = path().substr(0, path().rfind('_'));
  } else if (kind_ == Kind::one_hot) {
    label_ = one_hot_label();
  } else {
    const std::string folder =
        path().substr(0, path().find_last_of("/\\") == std::string::npos ? 0 : path().find_last_of("/\\"));
    label_ = folder.substr(folder.find_last_of("/\\") + 1);
    if (label_.empty()) fail("the label is missing: the list has paths alone, and this one has no folder", kCsvHint);
  }
  if (label_.empty()) fail("the label is missing", kCsvHint);
  return true;
}

std::string LabelManifest::one_hot_label() const {
  std::string found;
  for (const size_t column : one_hot_) {
    double value = -1;
    if (!reads_number(field(column), value) || (value != 0 && value != 1) || (value == 1 && !found.empty())) {
      fail(core::format("columns {} hold a class, but not one 1 and else 0 in this row", quoted_names(*this, one_hot_)),
           "several labels per image: --task multilabel; numbers: --task regression");
    }
    if (value == 1) found = header()[column];
  }
  if (found.empty()) {
    fail(core::format("columns {} hold a class, but no 1 in this row", quoted_names(*this, one_hot_)),
         "images without a label: --task multilabel");
  }
  return found;
}

int64_t LabelManifest::whole_label() const {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(label_.data(), label_.data() + label_.size(), value);
  if (error != std::errc() || end != label_.data() + label_.size()) {
    fail(core::format("label '{}' is not a whole number, but other labels are", core::printable(label_)),
         "use either numbers or class names for all rows of all splits");
  }
  if (value < 0) fail(core::format("label {} is negative", value), "labels are counted from 0");
  if (value >= kMaxClasses) fail(core::format("label {} is too large: there may be {} classes", value, kMaxClasses));
  return value;
}

std::vector<std::string> LabelManifest::one_hot_names() const {
  std::vector<std::string> names;
  for (const size_t column : one_hot_) names.push_back(header()[column]);
  std::sort(names.begin(), names.end());
  return names;
}

std::string LabelManifest::note() const {
  if (!is_guess_) return "";
  const std::string begin = has_header() ? "" : "the list has no header; ";
  switch (kind_) {
    case Kind::column: return begin + core::format("labels are in '{}'", core::printable(header()[label_column_]));
    case Kind::one_hot:
      return begin + core::format("labels are the columns with a 1: {}", quoted_names(*this, one_hot_));
    case Kind::stem: return begin + "labels are the names of the images up to their number";
    case Kind::folder: break;
  }
  return begin + "labels are the folders of the paths";
}

void LabelManifest::refuse_numbers_to_learn(const std::set<std::string>& labels) const {
  if (kind_ != Kind::column) return;
  const std::string name = core::printable(header()[label_column_]);
  const auto refuse = [&](const std::string& what, const char* task) {
    throw core::Error(core::ErrorKind::data, core::format("column '{}' holds {}: --task {}", name, what, task),
                      core::format("or, where they are classes: --csv-label {}", name));
  };
  bool all_numbers = true, has_fraction = false, all_lists = true;
  double least = 0, most = 0;
  for (const std::string& label : labels) {
    double value = 0;
    const bool is_first = label == *labels.begin();
    all_lists = all_lists && is_list(label);
    all_numbers = all_numbers && reads_number(label, value);
    has_fraction = has_fraction || value != std::floor(value);
    least = is_first ? value : std::min(least, value);
    most = is_first ? value : std::max(most, value);
  }
  if (all_lists) refuse("lists", "multilabel");
  if (all_numbers && has_fraction) refuse("numbers", "regression");
  if (!is_guess_) return;
  if (has_header() && (name == "tags" || name == "tag")) refuse("tags", "multilabel");
  const auto distinct = static_cast<double>(labels.size());
  // A quantity: it has gaps, or hardly any value stands twice.
  if (all_numbers && has_header() && (distinct < most - least + 1 || least > 1) &&
      2 * labels.size() > static_cast<size_t>(rows_) / 2) {
    refuse("numbers", "regression");
  }
}

}  // namespace stoker::data
