// SPDX-License-Identifier: Apache-2.0
// A list of images: a CSV or TSV file with a header, the same without one, or lines of text (Caffe: path label).
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "config/options.h"
#include "core/text/csv.h"
#include "data/dataset/text_list.h"
#include "data/layout.h"
#include "data/sound/sound_source.h"
#include "data/storage/image_finder.h"

namespace stoker::data {

/// The list of a split: the split itself where it is called like a file, else <split>.csv, .tsv, .txt or .lst in any
/// case of letters, or the only table among the images in <split>/; empty: there is none.
std::string list_of_split(const std::string& data_dir, const std::string& split);
/// Whether a path ends as such a list does.
bool has_list_name(const std::string& path);
/// Without blanks and tabs at its ends.
std::string without_blanks(const std::string& text);

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
  /// The columns besides paths, --group and split_column(); those that are empty or count the rows, as pandas and MXNet
  /// write them, are left out.
  std::vector<size_t> data_columns();
  /// The column with the split of each row; empty: there is none.
  std::string split_column();
  /// A sentence on rows that were left out and columns that are not used; or empty.
  const std::string& remark() const { return remark_; }

  /// The next row; false at the end. Throws Error{data} when it lacks fields or its path.
  bool next();
  const std::string& path() const { return fields_[path_column_]; }
  const std::string& field(size_t column) const { return fields_[column]; }
  /// The seconds of a sound, by the columns begin and end; all of it where there are none. Throws Error{data}.
  SoundPart part() const;
  bool has_parts() const { return begin_column_ < header_.size() || end_column_ < header_.size(); }
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
  void find_path_column(const std::string& requested);
  void add_remark(const std::string& text) { remark_ += (remark_.empty() ? "" : "; ") + text; }
  /// Which field of a row names an image that is there; as many as it has when none does.
  size_t field_with_image(const std::vector<std::string>& row);

  const std::string file_, group_;
  const TextForm form_;
  core::CsvReader reader_;
  ImageFinder finder_;
  std::string hint_, remark_;
  std::vector<std::string> header_, fields_;
  std::deque<Row> ahead_;  ///< rows that were read before their turn
  int64_t line_ = 1;       ///< line number of the row at hand
  bool has_header_ = true;
  size_t path_column_ = 0;
  size_t begin_column_ = 0, end_column_ = 0;  ///< columns of start and end, seconds; the header's size: there is none
};

// A list of images with a class each: which column has the class, and how its values are read.

inline constexpr char kCsvHint[] = "first line: path,label; then lines like cats/1.jpg,0 or cats/1.jpg,cat";

/// Digits with at most one minus before them; anything else is a name.
bool looks_whole(const std::string& text);
/// A whole number that is a name: with zeros before it, or too large to be counted up to.
bool is_id(const std::string& text);
/// Whether a text is 0 or 1, false or true, no or yes, in any case of letters.
bool reads_flag(const std::string& text, float& flag);
/// Whether a cell is empty, also as pandas writes that: nan or <NA>.
bool is_missing(const std::string& cell);
/// Whether values of a column are lists of tags, which others of them share, and no names of classes. `with_blanks`:
/// also lists between blanks, which stand in names, too: "golden retriever", "labrador retriever".
bool look_like_tags(const std::set<std::string>& values, bool with_blanks);
/// Counts the row's image as missing, with the file that is nearly called so.
void count_missing(const CsvManifest& manifest, ScanNotes& notes);

/// Layout::column() of a list.
ColumnValues column_values(CsvManifest list, const std::string& name);

class LabelManifest : public CsvManifest {
 public:
  /// Throws Error{data} where no column holds classes, with the --task that learns what is there.
  LabelManifest(const std::string& path, const config::DataOptions& options, const std::string& split);

  /// As CsvManifest::next(); every row has a label.
  bool next();
  const std::string& label() const { return label_; }
  /// Whether the column is not called as labels usually are.
  bool is_guess() const { return is_guess_; }
  /// The label of this row as a class index.
  int64_t whole_label() const;
  /// The classes, where each has a column; else empty.
  std::vector<std::string> one_hot_names() const;
  /// How classes are read, where no column is called label; or empty.
  std::string note() const;
  /// After the last row: throws where the labels, all of them, are numbers to learn and no classes.
  void require_classes(const std::set<std::string>& labels) const;

 private:
  enum class Kind { column, one_hot, folder, stem };
  void choose_column(const std::string& requested);
  void choose_among(const std::vector<size_t>& others);
  std::string one_hot_label() const;

  Kind kind_ = Kind::column;
  size_t label_column_ = 0;
  bool is_guess_ = false, is_requested_ = false;
  std::vector<size_t> one_hot_;
  std::string label_;
  int64_t rows_ = 0;
};

}  // namespace stoker::data
