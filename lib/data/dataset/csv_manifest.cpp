// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/csv_manifest.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/format.h"
#include "core/system/file.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {

namespace {

constexpr char kNoDelimiter = '\1';  // of lines whose fields stand between blanks: they are taken apart here
constexpr std::array kListEndings = {".csv", ".tsv", ".txt"};
/// What columns with images are called in published lists.
constexpr std::array kPathNames = {"path",       "image_path", "img_path",  "filepath", "file_path",
                                   "filename",   "file_name",  "file",      "image",    "img",
                                   "image_name", "img_name",   "imagename", "image_id", "imageid",
                                   "images",     "id_code",    "id",        "name",     "relpath"};

/// Whether no comma, tab or semicolon stands in the first line of a list.
bool has_blanks_only(const std::string& path) {
  if (!core::ends_with(core::lower_case(path), ".txt")) return false;
  core::CsvReader reader(path, core::CsvReader::kUsualRowBytes, kNoDelimiter);
  std::vector<std::string> row;
  do {
    if (!reader.next_row(row)) return true;
  } while (row[0][0] == '#');
  return row[0].find_first_of(",;\t") == std::string::npos;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (size_t begin = line.find_first_not_of(" \t"); begin != std::string::npos;) {
    const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(" \t", end);
  }
  return words;
}

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
    if (has_list_name(name) && name.size() == split.size() + 4 && name.compare(0, split.size(), split) == 0) {
      return data_dir + "/" + name;
    }
  }
  return "";
}

CsvManifest::CsvManifest(const std::string& path, const config::DataOptions& options, const std::string& hint,
                         const std::string& split)
    : file_(path),
      is_text_(options.csv_delimiter == config::CsvDelimiter::automatic && has_blanks_only(path)),
      reader_(path, core::CsvReader::kUsualRowBytes,
              is_text_ ? kNoDelimiter : delimiter_of(path, options.csv_delimiter)),
      finder_(options.data_dir, split),
      hint_(hint) {
  Row first;
  if (!read_row(first)) reader_.fail("the file is empty", hint_);
  header_ = std::move(first.fields);
  line_ = first.line;
  find_path_column(options.csv_path);
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
    if (is_text_) row.fields = words_of(row.fields[0]);
  } while (is_text_ && (row.fields.empty() || row.fields[0][0] == '#'));
  row.line = reader_.line();
  return true;
}

std::vector<std::vector<std::string>> CsvManifest::peek(size_t rows) {
  Row row;
  while (ahead_.size() < rows && read_new_row(row)) ahead_.push_back(row);
  std::vector<std::vector<std::string>> seen;
  for (size_t i = 0; i < std::min(rows, ahead_.size()); ++i) seen.push_back(ahead_[i].fields);
  return seen;
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
    if (has_image_name(row[i]) && is_there(i)) return i;
  }
  for (const char* const name : kPathNames) {
    const size_t i = find_column(name);
    if (i < row.size() && is_there(i)) return i;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    const bool is_number = row[i].find_first_not_of("0123456789") == std::string::npos;  // a label, rather than an id
    if (!is_number && is_there(i)) return i;
  }
  return row.size();
}

void CsvManifest::find_path_column(const std::string& asked) {
  path_column_ = find_column(asked);
  if (path_column_ < header_.size() || asked != config::DataOptions().csv_path) {
    path_column_ = column(asked);
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
  if (path_column_ >= header_.size()) column(asked);
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
  if (fields_.size() != header_.size()) {
    fail(core::format("{} fields where the {} has {}", fields_.size(), has_header_ ? "header" : "first line",
                      header_.size()),
         is_text_ ? "a path that holds a blank needs a .csv file with commas"
                  : "put a path that holds a comma in quotes");
  }
  if (path().empty()) fail("the path is missing", hint_);
  return true;
}

void CsvManifest::fail(const std::string& cause, const std::string& hint) const {
  throw core::Error(core::ErrorKind::data, core::format("{}:{}: {}", core::printable(file_), line_, cause), hint);
}

}  // namespace stoker::data
