// SPDX-License-Identifier: Apache-2.0
// Bytes as a CSV manifest: rows or an error with its line, never more than the limit in memory; and rows
// written out again by the rules read back as the same rows.
#include <string>
#include <vector>

#include "core/error.h"
#include "core/text/csv.h"
#include "fuzz_target.h"

namespace {

using Rows = std::vector<std::vector<std::string>>;

/// False when the reader refuses the text.
bool read_rows(const std::string& path, Rows& rows) {
  try {
    stoker::core::CsvReader reader(path);
    std::vector<std::string> fields;
    int64_t last_line = 0;
    while (reader.next_row(fields)) {
      FUZZ_CHECK(!fields.empty());
      FUZZ_CHECK(reader.line() > last_line);
      last_line = reader.line();
      size_t bytes = 0;
      for (const std::string& field : fields) bytes += field.size();
      FUZZ_CHECK(bytes <= 64 << 10);
      rows.push_back(fields);
    }
    return true;
  } catch (const stoker::core::Error& error) {
    FUZZ_CHECK(error.kind() == stoker::core::ErrorKind::data);
    return false;
  }
}

std::string text_of(const Rows& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ',';
      text += '"';
      for (const char c : row[i]) text += c == '"' ? std::string("\"\"") : std::string(1, c);
      text += '"';
    }
    text += '\n';
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static stoker::fuzz::MemoryFile file;
  file.fill(bytes, size);
  Rows rows, again;
  if (!read_rows(file.path(), rows)) return 0;
  const std::string text = text_of(rows);
  file.fill(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  if (read_rows(file.path(), again)) FUZZ_CHECK(again == rows);  // quoting may pass the limit of a row
  return 0;
}
