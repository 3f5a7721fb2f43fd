// SPDX-License-Identifier: Apache-2.0
// <data_dir>/<split>.csv with the column path and one column per target: 0 or 1 for multilabel, any finite
// number for regression, degrees for head pose. The training file's header decides which targets there are,
// and their order, unless options name the columns. For multilabel one column may hold lists of tags.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <set>

#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"
#include "data/dataset/csv_manifest.h"
#include "data/dataset/file_source.h"
#include "data/layout.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
bool is_missing(const std::string& cell) {
  const std::string word = core::lower_case(cell);
  return word.empty() || word == "nan" || word == "<na>";
}

namespace {

constexpr size_t kMaxTargets = 4096;
constexpr double kMaxDegrees = 360;

const char* hint_for(config::TaskKind task) {
  switch (task) {
    case config::TaskKind::multilabel: return "first line: path,cat,dog; then lines like 1.jpg,0,1";
    case config::TaskKind::head_pose: return "first line: path,yaw,pitch,roll; then lines like 1.jpg,-12.5,3.25,0";
    default: return "first line: path,age or path,x,y; then lines like 1.jpg,0.25 or 1.jpg,0.25,-3";
  }
}

/// Whether it is a number as some spreadsheets write it: "0,25".
bool is_decimal_comma(const std::string& text) {
  const size_t comma = text.find(',');
  return comma != std::string::npos && comma > 0 && text.find_first_not_of("-+0123456789,") == std::string::npos &&
         text.find(',', comma + 1) == std::string::npos;
}

/// The columns that options name, "x,y".
std::vector<std::string> named_columns(const std::string& text) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

/// The separator of the tags of a file: that of one of its lists, else blanks.
constexpr char kTagSeparators[] = {';', '|', ','};

/// A list, tuple or set as Python and JSON write it: ['sea', "dog's"].
bool is_python_list(const std::string& text) {
  constexpr std::string_view kOpen = "[({", kClose = "])}";
  const size_t kind = text.empty() ? std::string_view::npos : kOpen.find(text.front());
  return kind != std::string_view::npos && text.size() > 1 && text.back() == kClose[kind];
}

/// The words in quotes, or between commas; where there is no comma, between blanks, as NumPy writes it.
std::vector<std::string> python_list(const std::string& text) {
  std::vector<std::string> items;
  const std::string list = text.substr(1, text.size() - 2);
  const char* const ends = list.find(',') == std::string::npos ? " \n" : ",\n";
  for (size_t at = list.find_first_not_of(" ,\n"); at != std::string::npos; at = list.find_first_not_of(" ,\n", at)) {
    std::string item;
    if (list[at] == '\'' || list[at] == '"') {
      const char quote = list[at++];
      for (; at < list.size() && list[at] != quote; ++at) {
        if (list[at] == '\\' && at + 1 < list.size()) ++at;
        item += list[at];
      }
      ++at;
    } else {
      const size_t end = std::min(list.find_first_of(ends, at), list.size());
      item = without_blanks(list.substr(at, end - at));
      at = end;
    }
    if (!item.empty()) items.push_back(item);
  }
  return items;
}

std::vector<std::string> tags_of(const std::string& text, char separator) {
  std::vector<std::string> tags;
  if (is_python_list(text)) {
    tags = python_list(text);
    tags.erase(std::remove_if(tags.begin(), tags.end(), is_missing), tags.end());
    return tags;
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    const std::string tag = without_blanks(text.substr(begin, end - begin));
    if (!is_missing(tag)) tags.push_back(tag);
    begin = end + 1;
  }
  return tags;
}

bool is_number(const std::string& text) {
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Words of pandas and R for a missing value.
bool is_missing(const std::string& text) {
  const std::string word = core::lower_case(text);
  return word.empty() || word == "nan" || word == "na" || word == "null" || word == "none";
}

class CsvTargetLayout : public Layout {
 public:
  explicit CsvTargetLayout(const config::DataOptions& options) : options_(options) {}

  bool has_split(const std::string& split) const override { return !file_of(split).empty(); }

  std::vector<std::string> class_names(const std::string& train_split) const override {
    if (options_.task == config::TaskKind::head_pose) return {"yaw", "pitch", "roll"};
    CsvManifest manifest = opened(train_split);
    const std::string column = tag_column(train_split);
    if (!column.empty()) return all_tags(train_split, column);
    std::vector<std::string> names;
    const std::vector<std::string> wanted = named_columns(options_.csv_label);
    for (const std::string& name : wanted) manifest.column(name);
    for (const std::string& name : wanted.empty() ? names_of(manifest) : wanted) {
      if (name == manifest.header()[manifest.path_column()]) continue;
      if (name.empty()) manifest.fail("a column has no name", hint_for(options_.task));
      if (std::find(names.begin(), names.end(), name) != names.end()) {
        manifest.fail(core::format("two columns are called '{}'", core::printable(name)));
      }
      names.push_back(name);
    }
    if (names.empty()) manifest.fail("there is no column besides path", hint_for(options_.task));
    if (names.size() > kMaxTargets) {
      manifest.fail(core::format("{} targets; there may be {}", names.size(), kMaxTargets));
    }
    return names;
  }

  std::shared_ptr<const Source> open(const std::string& split, const std::vector<std::string>& names, bool,
                                     std::vector<std::string>& notes) const override {
    std::string tags = only_column(split);
    if (names == std::vector<std::string>{tags}) tags.clear();  // a label of this name, 0 or 1
    CsvManifest manifest = opened(split);
    manifest.data_columns();  // for its remark
    std::vector<size_t> columns;
    for (const std::string& name : names) columns.push_back(manifest.column(tags.empty() ? name : tags));
    const char separator = tags.empty() ? ' ' : separator_of(split, tags);
    FileList files(options_.data_dir, static_cast<int64_t>(names.size()));
    ScanNotes scan_notes;
    ListedFiles listed(files);
    std::vector<float> targets(names.size());
    while (manifest.next()) {
      core::throw_if_stopped();
      for (size_t i = 0; tags.empty() && i < names.size(); ++i) {
        targets[i] = target_of(manifest, columns[i], names[i], scan_notes);
      }
      if (!tags.empty()) set_tags(manifest, columns.front(), separator, names, targets);
      FileStamp stamp;
      std::string path = manifest.image(stamp);
      const SoundPart part = manifest.part();
      if (const int64_t earlier = listed.earlier(path, part); earlier >= 0) {
        if (!std::equal(targets.begin(), targets.end(), files.targets(earlier))) {
          manifest.fail("the same path stood earlier with other targets");
        }
        scan_notes.count("paths listed more than once", manifest.path());
        path = files.relative_path(earlier);
      }
      if (stamp.size < 0) count_missing(manifest, scan_notes);
      files.add(path, targets, stamp);
      if (manifest.has_parts()) files.set_part(part);
    }
    if (files.size() == 0) manifest.fail("there are no rows after the header", hint_for(options_.task));
    files.stage(options_.stage_dir, scan_notes);
    for (const std::string& note : {manifest.remark(), manifest.finder().note()}) {
      if (!note.empty()) notes.push_back(split + ": " + note);
    }
    for (const std::string& line : scan_notes.lines()) notes.push_back(split + ": " + line);
    return make_target_source(std::move(files), names, options_);
  }

  ColumnValues column(const std::string& split, const std::string& name) const override {
    return column_values(opened(split), name);
  }

 private:
  std::string file_of(const std::string& split) const { return list_of_split(options_.data_dir, split); }
  CsvManifest opened(const std::string& split) const {
    return {file_of(split), options_, hint_for(options_.task), split};
  }

  static std::vector<std::string> names_of(CsvManifest& manifest) {
    std::vector<std::string> names;
    for (const size_t column : manifest.data_columns()) names.push_back(manifest.header()[column]);
    return names;
  }

  /// The only column to learn from of a multilabel file; empty: there are several, or another task.
  std::string only_column(const std::string& split) const {
    if (options_.task != config::TaskKind::multilabel) return "";
    CsvManifest manifest = opened(split);
    std::vector<std::string> columns = named_columns(options_.csv_label);
    if (columns.empty()) columns = names_of(manifest);
    columns.erase(std::remove(columns.begin(), columns.end(), manifest.header()[manifest.path_column()]),
                  columns.end());
    return columns.size() == 1 ? columns.front() : "";
  }

  /// The only column of the training file, where it holds lists of tags: something besides numbers.
  std::string tag_column(const std::string& split) const {
    const std::string name = only_column(split);
    if (name.empty()) return "";
    CsvManifest manifest = opened(split);
    const size_t column = manifest.column(name);
    while (manifest.next()) {
      const std::string& text = manifest.field(column);
      float flag = 0;
      if (!is_missing(text) && !is_number(text) && !reads_flag(text, flag)) return name;
    }
    return "";
  }

  char separator_of(const std::string& split, const std::string& column) const {
    CsvManifest manifest = opened(split);
    const size_t place = manifest.column(column);
    size_t best = std::size(kTagSeparators);
    while (manifest.next()) {
      if (is_python_list(manifest.field(place))) continue;
      for (size_t i = 0; i < best; ++i) {
        if (manifest.field(place).find(kTagSeparators[i]) != std::string::npos) best = i;
      }
    }
    return best < std::size(kTagSeparators) ? kTagSeparators[best] : ' ';
  }

  std::vector<std::string> all_tags(const std::string& split, const std::string& column) const {
    CsvManifest manifest = opened(split);
    const size_t place = manifest.column(column);
    const char separator = separator_of(split, column);
    std::set<std::string> tags;
    while (manifest.next()) {
      for (const std::string& tag : tags_of(manifest.field(place), separator)) tags.insert(tag);
      if (tags.size() > kMaxTargets) manifest.fail(core::format("more than {} tags", kMaxTargets));
    }
    if (tags.empty()) manifest.fail("no row has a tag in the column " + core::printable(column));
    return {tags.begin(), tags.end()};
  }

  /// An empty list has no label.
  void set_tags(const CsvManifest& row, size_t column, char separator, const std::vector<std::string>& names,
                std::vector<float>& targets) const {
    std::fill(targets.begin(), targets.end(), 0.0F);
    const std::string& list = row.field(column);
    const bool is_one = std::find(names.begin(), names.end(), list) != names.end();
    for (const std::string& tag : is_one ? std::vector<std::string>{list} : tags_of(list, separator)) {
      const auto found = std::find(names.begin(), names.end(), tag);
      if (found == names.end()) {
        const std::string near = core::nearest_name(tag, names);
        row.fail(core::format("tag '{}' does not occur in the training split{}", core::printable(tag),
                              near.empty() ? "" : "; did you mean '" + core::printable(near) + "'?"));
      }
      targets[static_cast<size_t>(found - names.begin())] = 1.0F;
    }
  }

  float target_of(const CsvManifest& row, size_t column, const std::string& name, ScanNotes& notes) const {
    const std::string& text = row.field(column);
    const auto refuse = [&](const char* wanted) {
      row.fail(core::format("{} '{}' is not {}", core::printable(name), core::printable(text), wanted),
               is_decimal_comma(text) ? "numbers have a decimal point: 0.25, not 0,25"
               : text[0] == '-' && options_.task == config::TaskKind::multilabel
                   ? "write 0 for -1 where absent labels are -1; where -1 is uncertain, choose 0 or 1 for it"
                   : hint_for(options_.task));
    };
    if (options_.task == config::TaskKind::multilabel) {
      if (is_missing(text)) {
        notes.count("cells without a number, taken for 0", core::format("{} of {}", name, row.path()));
        return 0.0F;
      }
      float flag = -1;
      if (!reads_flag(text, flag)) refuse("0 or 1");
      return flag;
    }
    float value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
      refuse("a finite number");
    }
    if (options_.task == config::TaskKind::head_pose && std::abs(value) > kMaxDegrees) {
      refuse("an angle in degrees");
    }
    return value;
  }

  const config::DataOptions options_;
};

}  // namespace

bool look_like_tags(const std::set<std::string>& values, bool with_blanks) {
  for (const char separator : {';', '|', ',', ' '}) {
    std::set<std::string> tags;
    bool has_lists = false, are_values = true;
    for (const std::string& value : values) {
      const std::vector<std::string> parts = tags_of(value, separator);
      tags.insert(parts.begin(), parts.end());
      if (parts.size() < 2) continue;
      has_lists = true;
      for (const std::string& part : parts) are_values = are_values && values.count(part) > 0;
    }
    if (!has_lists) continue;
    // Parts of "Animal|Dog", "Animal|Cat" are more than there are values.
    if (separator != ' ') return tags.size() <= values.size();
    return are_values || (with_blanks && 2 * tags.size() <= values.size());
  }
  return false;
}

std::unique_ptr<Layout> make_csv_target_layout(const config::DataOptions& options) {
  return std::make_unique<CsvTargetLayout>(options);
}

}  // namespace stoker::data
