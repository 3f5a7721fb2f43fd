// SPDX-License-Identifier: Apache-2.0
// Strict reading of comma-separated text, row by row, in bounded memory (RFC 4180: quotes may hold commas,
// doubled quotes and line ends).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::core {

class CsvReader {
 public:
  static constexpr uint64_t kUsualRowBytes = 64 << 10;

  /// Opens a regular file without blocking; skips a UTF-8 byte order mark. Rows of more than `max_row_bytes` are
  /// refused. `delimiter` stands between fields; 0: what the first line has, tabs, semicolons or bars where it lacks
  /// commas. Throws Error{no_input, permission, io, data}.
  explicit CsvReader(const std::string& path, uint64_t max_row_bytes = kUsualRowBytes, char delimiter = ',');
  /// Text that was read already; `path` is for messages.
  CsvReader(const std::string& text, const std::string& path, uint64_t max_row_bytes, char delimiter);
  CsvReader& operator=(CsvReader&&) = delete;  // not copied, not moved

  /// The next row that is not blank; false at the end. Lines may end in LF or CRLF.
  /// Throws Error{data} with file:line for stray or open quotes, NUL bytes, and rows that are too long.
  bool next_row(std::vector<std::string>& fields);
  /// After next_row() threw Error{data}: continues to the line after the one where it stopped.
  void skip_line();
  /// Likewise, of a text: continues to the line after the one where that row began, which an open quote leaves behind.
  void skip_row();
  /// Where the last row began, counted from 1.
  int64_t line() const { return row_line_; }
  char delimiter() const { return delimiter_; }
  /// Throws Error{data}: "file:line: cause".
  [[noreturn]] void fail(const std::string& cause, const std::string& hint = "") const;

 private:
  void begin();
  char delimiter_of_first_line();
  void refuse_other_files();
  int peek();
  int take();
  void read_quoted(std::string& field);
  void read_plain(std::string& field);
  void append(std::string& field, int byte);
  bool take_line_end();

  /// Closes on every way out, out of a constructor that throws too.
  struct Descriptor {
    explicit Descriptor(const std::string& path);
    Descriptor() : fd(-1) {}
    ~Descriptor();
    Descriptor& operator=(Descriptor&&) = delete;  // not copied, not moved
    const int fd;
  };

  std::string path_;
  const uint64_t max_row_bytes_;
  char delimiter_;
  Descriptor file_;
  std::vector<char> block_;
  size_t at_ = 0, filled_ = 0, row_at_ = 0;
  uint64_t row_bytes_ = 0;
  int64_t line_ = 1, row_line_ = 1;
};

/// A table that a program appends to, read back by the names of its columns: rows may stand under different headers.
struct CsvTable {
  struct Row {
    int64_t line = 0;                ///< where it begins, counted from 1
    std::vector<std::string> cells;  ///< as many as columns, empty where its header lacks one
  };
  std::vector<std::string> columns;   ///< columns of all headers, in the order in which they came
  std::vector<Row> rows;              ///< without headers
  std::vector<std::string> left_out;  ///< "path:line: cause" for each row that cannot be read

  std::string left_out_text() const;  ///< as one line; empty: every row was read
};
/// Reads what other programs may have written again: other separators, quotes, a comma behind each row. A row with the
/// cell `key`, in small letters or capitals, is a header, in capitals all its names are read as small letters; an
/// empty key: the first row is. `columns`: come first, and are the header of rows that stand under none. `path` is for
/// messages.
CsvTable read_csv_table(const std::string& text, const std::string& path, const std::string& key,
                        std::vector<std::string> columns = {}, uint64_t max_row_bytes = CsvReader::kUsualRowBytes);

// Writing of comma-separated text (RFC 4180).

/// In quotes where it needs them: where it holds a comma, a quote or a line end.
std::string csv_field(const std::string& text);
/// The fields with commas between them, each as csv_field() has it; no line end.
std::string csv_row(const std::vector<std::string>& fields);

}  // namespace stoker::core
