// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/text_list.h"

#include <algorithm>
#include <charconv>

#include "core/format.h"
#include "core/text/csv.h"
#include "data/storage/image_finder.h"

namespace stoker::data {
namespace {

constexpr int64_t kRowsScanned = 200'000;  // of a list that may be no list

struct Word {
  size_t begin = 0, end = 0;
};

std::vector<Word> words_in_line(const std::string& line) {
  std::vector<Word> words;
  for (size_t begin = line.find_first_not_of(" \t"); begin != std::string::npos;) {
    const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    words.push_back({begin, end});
    begin = line.find_first_not_of(" \t", end);
  }
  return words;
}

std::string text_between(const std::string& line, const Word& first, const Word& last) {
  return line.substr(first.begin, last.end - first.begin);
}

/// The first word that ends as images do; the first one where none does.
size_t image_word(const std::string& line, const std::vector<Word>& words) {
  const auto found = std::find_if(words.begin(), words.end(),
                                  [&](const Word& word) { return has_image_name(text_between(line, word, word)); });
  return found == words.end() ? 0 : static_cast<size_t>(found - words.begin());
}

bool is_number_word(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

TextForm text_form_of(const std::string& list, const std::string& data_dir, const std::string& split) {
  TextForm form;
  if (!core::ends_with(core::lower_case(list), ".txt")) return form;
  core::CsvReader reader(list, core::CsvReader::kUsualRowBytes, kNoDelimiter);
  std::vector<std::string> row;
  bool is_first = true, is_path_known = false, has_names = false;
  size_t least = SIZE_MAX, most = 0;  // words behind the path
  for (int64_t rows = 0; rows < kRowsScanned && reader.next_row(row); ++rows) {
    const std::string& line = row[0];
    const std::vector<Word> words = words_in_line(line);
    if (words.empty() || line[words[0].begin] == '#') continue;
    if (is_first && line.find_first_of(",;\t") != std::string::npos) return form;
    const size_t image = image_word(line, words);
    if (image > 0 && !is_path_known) {
      FileStamp stamp;
      ImageFinder(data_dir, split).find(text_between(line, words[0], words[image]), stamp);
      form.joins_path = stamp.size >= 0;
      is_path_known = true;
    }
    const size_t path = form.joins_path ? image : 0, behind = words.size() - path - 1;
    for (size_t i = path + 1; i < words.size() && !is_first && !has_names; ++i) {
      has_names = !is_number_word(text_between(line, words[i], words[i]));
    }
    if (behind > 0) least = std::min(least, behind);
    most = std::max(most, behind);
    is_first = false;
  }
  form.is_text = true;
  form.joins_label = has_names && least < most;  // numbers alone are columns, of which one row lacks some
  return form;
}

std::vector<std::string> text_fields(const std::string& line, const TextForm& form) {
  std::vector<std::string> fields;
  const std::vector<Word> words = words_in_line(line);
  if (words.empty()) return fields;
  const size_t path = form.joins_path ? image_word(line, words) : 0;
  fields.push_back(text_between(line, words[0], words[path]));
  if (form.joins_label && path + 1 < words.size()) {
    fields.push_back(text_between(line, words[path + 1], words.back()));
  } else {
    for (size_t i = path + 1; i < words.size(); ++i) fields.push_back(text_between(line, words[i], words[i]));
  }
  return fields;
}

}  // namespace stoker::data
