// SPDX-License-Identifier: Apache-2.0
// A CSV file that lists images: a column with paths, other columns by name.
#pragma once

#include <string>
#include <vector>

#include "config/options.h"
#include "core/text/csv.h"

namespace stoker::data {

class CsvManifest {
 public:
  /// Reads the header; `options` name the column with paths and the delimiter. `hint` tells what the file should look
  /// like. Throws core::Error.
  CsvManifest(const std::string& path, const config::DataOptions& options, const std::string& hint);

  const std::vector<std::string>& header() const { return header_; }
  /// Where a column stands. Throws Error{data} with the header when there is none. Before the first next().
  size_t column(const std::string& name) const;

  /// The next row; false at the end. Throws Error{data} when it lacks fields or its path.
  bool next();
  const std::string& path() const { return fields_[path_column_]; }
  const std::string& field(size_t column) const { return fields_[column]; }
  /// Throws Error{data}: "file:line: cause".
  [[noreturn]] void fail(const std::string& cause, const std::string& hint = "") const;

 private:
  core::CsvReader reader_;
  std::string hint_;
  std::vector<std::string> header_, fields_;
  size_t path_column_ = 0;
};

}  // namespace stoker::data
