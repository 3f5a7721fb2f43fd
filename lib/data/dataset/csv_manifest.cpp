// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/csv_manifest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

constexpr std::array kListEndings = {".csv", ".tsv", ".txt", ".lst"};
constexpr size_t kRowsSeen = 50;  // rows from which the kind of a column is derived
/// Usual names of columns with images in published lists.
constexpr std::array kPathNames = {"path",       "image_path", "img_path",  "filepath", "file_path",
                                   "filename",   "file_name",  "file",      "image",    "img",
                                   "image_name", "img_name",   "imagename", "image_id", "imageid",
                                   "images",     "id_code",    "id",        "name",     "relpath"};

char delimiter_of(const std::string& path, config::CsvDelimiter delimiter) {
  switch (delimiter) {
    case config::CsvDelimiter::comma: return ',';
    case config::CsvDelimiter::semicolon: return ';';
    case config::CsvDelimiter::tab: return '\t';
    case config::CsvDelimiter::automatic: break;
  }
  return core::ends_with(core::lower_case(path), ".tsv") ? '\t' : 0;
}

}  // namespace

bool has_list_name(const std::string& path) {
  const std::string name = core::lower_case(path);
  return std::any_of(kListEndings.begin(), kListEndings.end(),
                     [&](const char* ending) { return core::ends_with(name, ending); });
}

std::string list_of_split(const std::string& data_dir, const std::string& split) {
  const std::string stem = data_dir + "/" + split;
  if (has_list_name(split) && stamp_of(stem).size >= 0) return stem;
  for (const char* const ending : kListEndings) {
    if (core::file_exists(stem + ending)) return stem + ending;
  }
  for (const std::string& name : names_in(data_dir)) {
    const std::string own = name.substr(0, name.rfind('.'));
    if (has_list_name(name) && core::lower_case(own) == core::lower_case(split)) return data_dir + "/" + name;
  }
  // Among the images, as Roboflow (_classes.csv) and Hugging Face (metadata.csv) write it.
  std::string inside;
  bool has_images = false;
  for (const std::string& name : names_in(stem)) {
    has_images = has_images || has_sample_name(name);
    const std::string end = core::lower_case(name);
    if (!core::ends_with(end, ".csv") && !core::ends_with(end, ".tsv")) continue;
    if (!inside.empty()) return "";
    inside = stem + "/" + name;
  }
  return has_images ? inside : "";
}

std::string without_blanks(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

CsvManifest::CsvManifest(const std::string& path, const config::DataOptions& options, const std::string& hint,
                         const std::string& split)
    : file_(path),
      group_(options.group == config::kNoGroups ? "" : options.group),
      form_(options.csv_delimiter == config::CsvDelimiter::automatic ? text_form_of(path, options.data_dir, split)
                                                                     : TextForm()),
      reader_(path, core::CsvReader::kUsualRowBytes,
              form_.is_text ? kNoDelimiter : delimiter_of(path, options.csv_delimiter)),
      finder_(options.data_dir, split),
      hint_(hint) {
  Row first;
  if (!read_row(first)) reader_.fail("the file is empty", hint_);
  for (const std::string& field : first.fields) header_.push_back(without_blanks(field));
  line_ = first.line;
  find_path_column(options.csv_path);
  begin_column_ = has_header_ ? find_column("begin") : header_.size();
  end_column_ = has_header_ ? find_column("end") : header_.size();
  if (const std::string name = split_column(); !name.empty())
    add_remark("column '" + core::printable(name) + "' is not used: every row is of this split");
}

std::string CsvManifest::split_column() {
  static const std::set<std::string> kSplits = {"train",   "training", "val",  "valid",  "validation", "test",
                                                "testing", "dev",      "eval", "public", "private"};
  for (const char* const name : {"split", "subset", "partition", "usage", "phase"}) {
    const size_t found = find_column(name);
    if (!has_header_ || found >= header_.size() || found == path_column_) continue;
    const std::vector<std::vector<std::string>> rows = peek(kRowsSeen);
    if (std::all_of(rows.begin(), rows.end(), [&](const std::vector<std::string>& row) {
          return row.size() <= found || kSplits.count(core::lower_case(row[found])) > 0;
        })) {
      return header_[found];
    }
  }
  return "";
}

bool CsvManifest::read_row(Row& row) {
  if (!ahead_.empty()) {
    row = std::move(ahead_.front());
    ahead_.pop_front();
    return true;
  }
  return read_new_row(row);
}

bool CsvManifest::read_new_row(Row& row) {
  do {
    if (!reader_.next_row(row.fields)) return false;
    if (form_.is_text) row.fields = text_fields(row.fields[0], form_);
  } while (form_.is_text && (row.fields.empty() || row.fields[0][0] == '#'));
  while (!header_.empty() && row.fields.size() > header_.size() && row.fields.back().empty()) row.fields.pop_back();
  row.line = reader_.line();
  return true;
}

std::vector<std::vector<std::string>> CsvManifest::peek(size_t rows) {
  Row row;
  while (ahead_.size() < rows && read_new_row(row)) ahead_.push_back(row);
  std::vector<std::vector<std::string>> seen;
  for (size_t i = 0; i < std::min(rows, ahead_.size()); ++i) {
    seen.emplace_back();
    for (const std::string& field : ahead_[i].fields) seen.back().push_back(without_blanks(field));
  }
  return seen;
}

std::vector<size_t> CsvManifest::data_columns() {
  const std::vector<std::vector<std::string>> rows = peek(kRowsSeen);
  const std::string split = split_column();
  const bool has_sounds = !rows.empty() && path_column_ < rows[0].size() && has_sound_name(rows[0][path_column_]);
  std::vector<size_t> columns, counting;
  for (size_t i = 0; i < header_.size(); ++i) {
    if (i == path_column_ || (!group_.empty() && i == find_column(group_))) continue;
    if ((has_sounds && (i == begin_column_ || i == end_column_)) || (!split.empty() && i == find_column(split)))
      continue;
    std::set<std::string> values;
    bool are_numbers = true, is_next = true;  // each one more than the last
    int64_t last = -1;
    for (const std::vector<std::string>& row : rows) {
      if (row.size() != header_.size()) continue;
      int64_t number = -1;
      std::from_chars(row[i].data(), row[i].data() + row[i].size(), number);
      are_numbers = are_numbers && !row[i].empty() && row[i].find_first_not_of("0123456789") == std::string::npos;
      is_next = is_next && (values.empty() ? number <= 1 : number == last + 1);
      last = number;
      values.insert(row[i]);
    }
    const bool is_nameless = has_header_ && (header_[i].empty() || header_[i].rfind("Unnamed: ", 0) == 0);
    const bool is_empty = is_nameless && values.size() == 1 && values.begin()->empty();
    const bool is_mxnets = i == 0 && core::ends_with(core::lower_case(file_), ".lst");
    const bool counts = are_numbers && values.size() == rows.size() && rows.size() > 2 &&
                        (is_nameless || (!has_header_ && (is_next || is_mxnets)));
    if (!is_empty) (counts ? counting : columns).push_back(i);
  }
  if (columns.empty()) return counting;  // each image has a number of its own
  for (const size_t column : counting) {
    add_remark("column '" + core::printable(header_[column]) + "' counts the rows and is left out");
  }
  return columns;
}

/// Names of images count before ids, and columns that are called like ones with paths before others: an id may be the
/// label of another row.
size_t CsvManifest::field_with_image(const std::vector<std::string>& row) {
  const auto is_there = [&](size_t i) {
    FileStamp stamp;
    if (row[i].empty()) return false;
    finder_.find(row[i], stamp);
    return stamp.size >= 0;
  };
  for (size_t i = 0; i < row.size(); ++i) {
    if (has_sample_name(row[i]) && is_there(i)) return i;
  }
  for (const char* const name : kPathNames) {
    const size_t i = find_column(name);
    if (i < row.size() && is_there(i)) return i;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    const bool is_label = row[i].find_first_not_of("0123456789") == std::string::npos && (i > 0 || !is_id(row[i]));
    if (!is_label && is_there(i)) return i;
  }
  return row.size();
}

void CsvManifest::find_path_column(const std::string& requested) {
  path_column_ = find_column(requested);
  if (path_column_ < header_.size() || requested != config::DataOptions().csv_path) {
    path_column_ = column(requested);
    return;
  }
  path_column_ = field_with_image(header_);
  if (path_column_ < header_.size()) {  // a header whose words are files is none
    has_header_ = false;
    ahead_.push_front({header_, line_});
    for (size_t i = 0; i < header_.size(); ++i) {
      header_[i] = i == path_column_ ? "path" : core::format("column {}", i + 1);
    }
    return;
  }
  const std::vector<std::vector<std::string>> rows = peek(1);
  if (!rows.empty() && rows[0].size() == header_.size()) path_column_ = field_with_image(rows[0]);
  for (size_t i = 0; path_column_ >= header_.size() && i < kPathNames.size(); ++i) {
    path_column_ = find_column(kPathNames[i]);
  }
  if (path_column_ < header_.size())
    return add_remark("images are in '" + core::printable(header_[path_column_]) + "'");
  if (const std::string step = pixels_step(file_, header_); !step.empty())
    fail("its columns hold pixels, not the paths of images", step);
  column(requested);
}

size_t CsvManifest::find_column(const std::string& name) const {
  auto found = std::find(header_.begin(), header_.end(), name);
  if (found == header_.end()) {
    found = std::find_if(header_.begin(), header_.end(),
                         [&](const std::string& other) { return core::lower_case(other) == core::lower_case(name); });
  }
  return static_cast<size_t>(found - header_.begin());
}

size_t CsvManifest::column(const std::string& name) const {
  const size_t found = find_column(name);
  if (found < header_.size()) return found;
  std::vector<std::string> shown;
  for (const std::string& field : header_) shown.push_back("'" + core::printable(field.substr(0, 40)) + "'");
  fail(core::format("the header has no column '{}'; it reads {}", core::printable(name), core::list_text(shown)),
       hint_ + "; --csv-path and --csv-label name other columns");
}

bool CsvManifest::next() {
  Row row;
  if (!read_row(row)) {
    line_ = reader_.line();
    return false;
  }
  fields_ = std::move(row.fields);
  line_ = row.line;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (i != path_column_) fields_[i] = without_blanks(fields_[i]);
  }
  if (fields_.size() != header_.size()) {
    fail(core::format("{} fields where the {} has {}", fields_.size(), has_header_ ? "header" : "first line",
                      header_.size()),
         form_.is_text ? "a path that holds a blank needs a .csv file with commas"
                       : "put a path that holds a comma in quotes");
  }
  if (path().empty()) fail("the path is missing", hint_);
  return true;
}

void CsvManifest::fail(const std::string& cause, const std::string& hint) const {
  throw core::Error(core::ErrorKind::data, core::format("{}:{}: {}", core::printable(file_), line_, cause), hint);
}

namespace {

constexpr int64_t kMaxClasses = 1'000'000;
constexpr size_t kLookedAt = 50;  // rows that show what columns hold
constexpr std::array kLabelNames = {"label",   "labels",   "class",  "class_name", "classname", "class_id",
                                    "classid", "category", "target", "label_id",   "y"};

/// Whether it is a number; `value` is then it.
bool reads_number(const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

bool is_list(const std::string& text) { return text.size() > 1 && text.front() == '[' && text.back() == ']'; }

std::string quoted_names(const CsvManifest& manifest, const std::vector<size_t>& columns) {
  std::vector<std::string> names;
  for (const size_t column : columns) names.push_back("'" + core::printable(manifest.header()[column]) + "'");
  return core::list_text(names, 6);
}

}  // namespace

bool reads_flag(const std::string& text, float& flag) {
  const std::string word = core::lower_case(text);
  double value = -1;
  if (word == "true" || word == "false" || word == "yes" || word == "no") {
    value = word == "true" || word == "yes" ? 1 : 0;
  } else if (!reads_number(text, value)) {
    return false;
  }
  flag = static_cast<float>(value);
  return value == 0 || value == 1;
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

void LabelManifest::choose_column(const std::string& requested) {
  is_requested_ = !requested.empty();
  if (is_requested_) {
    label_column_ = column(requested);
    return;
  }
  for (const char* const name : kLabelNames) {
    label_column_ = find_column(name);
    if (label_column_ < header().size() && label_column_ != path_column()) return;
  }
  const std::vector<size_t> others = data_columns();
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
  bool are_flags = !rows.empty(), is_one = true, are_numbers = !rows.empty(), has_one = false;
  std::vector<size_t> counting = others;  // 0, 1, 2 or 1, 2, 3 and so on
  for (const std::vector<std::string>& row : rows) {
    if (row.size() != header().size()) break;
    int ones = 0;
    for (const size_t column : others) {
      double value = 0;
      float flag = 0;
      are_numbers = are_numbers && reads_number(row[column], value);
      are_flags = (is_missing(row[column]) || reads_flag(row[column], flag)) && are_flags;
      ones += flag == 1;
    }
    is_one = is_one && ones == 1;
    has_one = has_one || ones > 0;
    const auto at = static_cast<double>(&row - rows.data());
    counting.erase(std::remove_if(counting.begin(), counting.end(),
                                  [&](size_t column) {
                                    double value = -1, first = -1;
                                    return !reads_number(rows[0][column], first) || first < 0 || first > 1 ||
                                           !reads_number(row[column], value) || value != first + at;
                                  }),
                   counting.end());
  }
  are_flags = are_flags && has_one;
  if (are_flags && is_one) {
    kind_ = Kind::one_hot;
    one_hot_ = others;
    return;
  }
  const std::string names = quoted_names(*this, others);
  if (are_flags)
    fail(core::format("columns {} hold several labels per row, as 0 and 1", names), "add --task multilabel");
  const bool is_pose = find_column("yaw") < header().size() && find_column("pitch") < header().size();
  if (is_pose) fail("columns 'yaw', 'pitch' and 'roll' hold angles: --task head-pose");
  if (are_numbers) {
    fail(core::format("columns {} hold numbers: --task regression", names),
         "or name the one with classes: --csv-label NAME");
  }
  if (rows.size() > 2 && counting.size() + 1 == others.size()) {
    const auto left = std::find_if(others.begin(), others.end(), [&](size_t i) {
      return std::find(counting.begin(), counting.end(), i) == counting.end();
    });
    fail(core::format("{} {} the rows, and no column is called label", quoted_names(*this, counting),
                      counting.size() == 1 ? "counts" : "count"),
         core::format("where '{0}' holds the classes: --csv-label '{0}'", core::printable(header()[*left])));
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
  if (is_missing(label_)) {
    fail("the label is missing" +
             (label_.empty() ? "" : " (it reads '" + label_ + "': give a class of that name another one)"),
         std::string(kCsvHint) + "; where an image may have no label, or several: --task multilabel");
  }
  return true;
}

std::string LabelManifest::one_hot_label() const {
  std::string found;
  for (const size_t column : one_hot_) {
    float value = 0;
    if (is_missing(field(column))) continue;
    if (!reads_flag(field(column), value) || (value == 1 && !found.empty())) {
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
         label_.find_first_not_of("0123456789 ,;|") == std::string::npos
             ? "several labels per image: --task multilabel"
             : "use either numbers or class names for all rows of all splits");
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
  const bool is_usual = !is_guess_ && !is_requested_ && core::lower_case(header()[label_column_]) != "label";
  if (!is_guess_ && !is_usual) return "";
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

void LabelManifest::require_classes(const std::set<std::string>& labels) const {
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
  if (!is_requested_ && look_like_tags(labels, is_guess_)) refuse("lists of tags", "multilabel");
  if (all_numbers && has_fraction) refuse("numbers", "regression");
  if (!is_guess_) return;
  if (has_header() && (name == "tags" || name == "tag")) refuse("tags", "multilabel");
  const auto distinct = static_cast<double>(labels.size());
  const std::string& column_name = header()[label_column_];
  const bool has_name = has_header() && !column_name.empty() && column_name.rfind("Unnamed: ", 0) != 0;
  if (all_numbers && has_name && rows_ > 2 && static_cast<int64_t>(labels.size()) == rows_ && least <= 1 &&
      most == least + distinct - 1) {
    refuse("a number for each row and no classes", "regression");
  }
  // A quantity: it has gaps, or hardly any value stands twice.
  if (all_numbers && has_header() && (distinct < most - least + 1 || least > 1) &&
      2 * labels.size() > static_cast<size_t>(rows_) / 2) {
    refuse("numbers", "regression");
  }
}

}  // namespace stoker::data
