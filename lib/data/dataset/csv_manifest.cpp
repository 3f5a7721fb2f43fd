// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/csv_manifest.h"

#include <algorithm>

#include "core/format.h"

namespace stoker::data {

namespace {

char delimiter_of(config::CsvDelimiter delimiter) {
  switch (delimiter) {
    case config::CsvDelimiter::comma: return ',';
    case config::CsvDelimiter::semicolon: return ';';
    case config::CsvDelimiter::tab: return '\t';
    case config::CsvDelimiter::automatic: break;
  }
  return 0;
}

}  // namespace

CsvManifest::CsvManifest(const std::string& path, const config::DataOptions& options, const std::string& hint)
    : reader_(path, core::CsvReader::kUsualRowBytes, delimiter_of(options.csv_delimiter)), hint_(hint) {
  if (!reader_.next_row(header_)) reader_.fail("the file is empty", hint_);
  path_column_ = column(options.csv_path);
}

size_t CsvManifest::column(const std::string& name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  if (found != header_.end()) return static_cast<size_t>(found - header_.begin());
  std::vector<std::string> shown;
  for (const std::string& field : header_) shown.push_back("'" + core::printable(field.substr(0, 40)) + "'");
  fail(core::format("the header has no column '{}'; it reads {}", core::printable(name), core::list_text(shown)),
       hint_ + "; --csv-path and --csv-label name other columns");
}

bool CsvManifest::next() {
  if (!reader_.next_row(fields_)) return false;
  if (fields_.size() != header_.size()) {
    fail(core::format("{} fields where the header has {}", fields_.size(), header_.size()),
         "put a path that holds a comma in quotes");
  }
  if (path().empty()) fail("the path is missing", hint_);
  return true;
}

void CsvManifest::fail(const std::string& cause, const std::string& hint) const { reader_.fail(cause, hint); }

}  // namespace stoker::data
