// SPDX-License-Identifier: Apache-2.0
// A list of images: a CSV or TSV file with a header, the same without one, or lines of text (Caffe: path label).
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "config/options.h"
#include "core/text/csv.h"
#include "data/storage/image_finder.h"

namespace stoker::data {

/// The list of a split: the split itself where it is called like a file, else <split>.csv, .tsv or .txt in any case of
/// letters; empty: there is none.
std::string list_of_split(const std::string& data_dir, const std::string& split);
/// Whether a path ends as such a list does.
bool has_list_name(const std::string& path);

class CsvManifest {
 public:
  /// Reads the header; `options` name the folder that paths are relative to, the column with paths and the delimiter.
  /// `hint` describes what the file should look like, `split` what it is the list of. Throws core::Error.
  CsvManifest(const std::string& path, const config::DataOptions& options, const std::string& hint,
              const std::string& split);

  const std::vector<std::string>& header() const { return header_; }
  bool has_header() const { return has_header_; }
  size_t path_column() const { return path_column_; }
  /// Where a column stands, in any case of letters. Throws Error{data} with the header when there is none.
  size_t column(const std::string& name) const;
  /// The same; as many as the header has when there is none.
  size_t find_column(const std::string& name) const;
  /// The next rows, without reading past them; fewer at the end.
  std::vector<std::vector<std::string>> peek(size_t rows);

  /// The next row; false at the end. Throws Error{data} when it lacks fields or its path.
  bool next();
  const std::string& path() const { return fields_[path_column_]; }
  const std::string& field(size_t column) const { return fields_[column]; }
  /// The path of the row's image below the data folder, and its stamp, empty when it is not there.
  std::string image(FileStamp& stamp) { return finder_.find(path(), stamp); }
  const ImageFinder& finder() const { return finder_; }
  /// Throws Error{data}: "file:line: cause".
  [[noreturn]] void fail(const std::string& cause, const std::string& hint = "") const;

 private:
  struct Row {
    std::vector<std::string> fields;
    int64_t line = 0;  ///< counted from 1
  };
  bool read_row(Row& row);
  bool read_new_row(Row& row);
  void find_path_column(const std::string& asked);
  /// Which field of a row names an image that is there; as many as it has when none does.
  size_t field_with_image(const std::vector<std::string>& row);

  const std::string file_;
  const bool is_text_;  ///< of fields between blanks
  core::CsvReader reader_;
  ImageFinder finder_;
  std::string hint_;
  std::vector<std::string> header_, fields_;
  std::deque<Row> ahead_;  ///< rows that were read before their turn
  int64_t line_ = 1;       ///< of the row at hand
  bool has_header_ = true;
  size_t path_column_ = 0;
};

}  // namespace stoker::data
