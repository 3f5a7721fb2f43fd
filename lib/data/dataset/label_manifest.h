// SPDX-License-Identifier: Apache-2.0
// A list of images with a class each: which column has the class, and how its values are read.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "data/dataset/csv_manifest.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {

inline constexpr char kCsvHint[] =
    "the file begins with the line path,label and goes on like cats/1.jpg,0 or cats/1.jpg,cat";

/// Digits with at most one minus before them; anything else is a name.
bool looks_whole(const std::string& text);
/// A whole number that is a name: with zeros before it, or too large to be counted up to.
bool is_id(const std::string& text);
/// Counts the row's image as missing, with the file that is nearly called so.
void count_missing(const CsvManifest& manifest, ScanNotes& notes);

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
  void refuse_numbers_to_learn(const std::set<std::string>& labels) const;

 private:
  enum class Kind { column, one_hot, folder, stem };
  void choose_column(const std::string& asked);
  void choose_among(const std::vector<size_t>& others);
  std::string one_hot_label() const;

  Kind kind_ = Kind::column;
  size_t label_column_ = 0;
  bool is_guess_ = false;
  std::vector<size_t> one_hot_;
  std::string label_;
  int64_t rows_ = 0;
};

}  // namespace stoker::data
