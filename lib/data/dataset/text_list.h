// SPDX-License-Identifier: Apache-2.0
// Lists of text whose fields stand between blanks, as Caffe's: "path label". Paths and names of classes may hold
// blanks.
#pragma once

#include <string>
#include <vector>

namespace stoker::data {

inline constexpr char kNoDelimiter = '\1';  // for the reader of rows: a line is one field

/// How the lines of a list are taken apart.
struct TextForm {
  bool is_text = false;      ///< .txt, and no comma, tab or semicolon in the first line
  bool joins_path = false;   ///< a path goes up to the word that ends as images do: "my photos/a 1.jpg 0"
  bool joins_label = false;  ///< all words behind the path are one field: "1025794 Boeing 707-320"
};

/// Decided by the rows of the list, and by the images that are there for its split. Throws core::Error.
TextForm text_form_of(const std::string& list, const std::string& data_dir, const std::string& split);
std::vector<std::string> text_fields(const std::string& line, const TextForm& form);

}  // namespace stoker::data
