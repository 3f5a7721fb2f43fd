// SPDX-License-Identifier: Apache-2.0
#include "core/text/csv.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include "core/error.h"
#include "core/format.h"
#include "core/open_retrying.h"

namespace stoker::core {
namespace {

constexpr int kEnd = -1;

}  // namespace

CsvReader::Descriptor::Descriptor(const std::string& path) : fd(open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK)) {
  if (fd < 0) throw errno_error(errno, "read", printable(path), ErrorKind::no_input);
}

CsvReader::Descriptor::~Descriptor() {
  if (fd >= 0) ::close(fd);
}

CsvReader::CsvReader(const std::string& path, uint64_t max_row_bytes, char delimiter)
    : path_(path), max_row_bytes_(max_row_bytes), delimiter_(delimiter), file_(path), block_(1 << 16) {
  struct stat info {};
  if (::fstat(file_.fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    throw Error(ErrorKind::no_input, "cannot read " + printable(path) + ": it is not a regular file");
  }
  begin();
}

CsvReader::CsvReader(const std::string& text, const std::string& path, uint64_t max_row_bytes, char delimiter)
    : path_(path),
      max_row_bytes_(max_row_bytes),
      delimiter_(delimiter),
      block_(text.begin(), text.end()),
      filled_(text.size()) {
  begin();
}

void CsvReader::begin() {
  refuse_other_files();
  if (peek() == 0xEF) {  // a UTF-8 byte order mark is EF BB BF
    take();
    if (take() != 0xBB || take() != 0xBF) fail("begins with half a byte order mark");
  }
  if (delimiter_ == 0) delimiter_ = delimiter_of_first_line();
}

/// Files that have the name of a list and are none, by their first bytes.
void CsvReader::refuse_other_files() {
  peek();
  const std::string_view front(block_.data(), filled_);
  const auto begins = [&](std::string_view bytes) { return front.substr(0, bytes.size()) == bytes; };
  const std::string file = shell_word(path_);
  if (begins("\xFF\xFE") || begins("\xFE\xFF")) {
    fail("it is UTF-16, not UTF-8", format("convert it: iconv -f utf-16 -t utf-8 {} > NEWFILE", file));
  }
  if (begins("\x1F\x8B")) fail("it is compressed by gzip", format("unpack it: gzip -dc {} > NEWFILE", file));
  if (begins("PK\3\4")) fail("it is a zip archive or a table of Excel", "unpack it, or save the table as CSV");
}

/// The separator in the part of the first line that was read, quotes left out. Excel may name it in a line of its own,
/// which is consumed.
char CsvReader::delimiter_of_first_line() {
  bool quoted = false, has_tab = false, has_semicolon = false, has_bar = false;
  peek();
  constexpr std::string_view kNamed = "sep=";
  if (std::string_view(block_.data(), filled_).substr(at_, kNamed.size()) == kNamed && at_ + 5 < filled_ &&
      (block_[at_ + 5] == '\r' || block_[at_ + 5] == '\n')) {
    const char named = block_[at_ + 4];
    skip_line();
    return named;
  }
  for (size_t i = at_; i < filled_ && block_[i] != '\n'; ++i) {
    const char byte = block_[i];
    if (byte == '"') quoted = !quoted;
    if (quoted) continue;
    if (byte == ',') return ',';
    has_tab |= byte == '\t';
    has_semicolon |= byte == ';';
    has_bar |= byte == '|';
  }
  return has_tab ? '\t' : has_semicolon ? ';' : has_bar ? '|' : ',';
}

void CsvReader::fail(const std::string& cause, const std::string& hint) const {
  throw Error(ErrorKind::data, format("{}:{}: {}", printable(path_), row_line_, cause), hint);
}

int CsvReader::peek() {
  while (at_ == filled_) {
    if (file_.fd < 0) return kEnd;
    const ssize_t got = ::read(file_.fd, block_.data(), block_.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw errno_error(errno, "read", printable(path_), ErrorKind::io);
    if (got == 0) return kEnd;
    at_ = 0;
    filled_ = static_cast<size_t>(got);
  }
  return static_cast<unsigned char>(block_[at_]);
}

int CsvReader::take() {
  const int byte = peek();
  if (byte == kEnd) return kEnd;
  ++at_;
  if (byte == '\n') ++line_;
  if (++row_bytes_ > max_row_bytes_) fail(format("row longer than {} bytes", max_row_bytes_), "is this a CSV file?");
  return byte;
}

void CsvReader::append(std::string& field, int byte) {
  if (byte == 0) fail("NUL byte", "is this a CSV file in UTF-8?");
  field += static_cast<char>(byte);
}

/// True at the end of a row, which is then consumed.
bool CsvReader::take_line_end() {
  if (peek() == '\r') {
    take();
    if (peek() != '\n' && peek() != kEnd) {
      fail("carriage return inside a row",
           format("put the field in quotes; where lines end so, as on old Macs: tr '\\r' '\\n' < {} > NEWFILE",
                  shell_word(path_)));
    }
  }
  if (peek() == kEnd) return true;
  if (peek() != '\n') return false;
  take();
  return true;
}

void CsvReader::read_quoted(std::string& field) {
  take();  // the opening quote
  for (;;) {
    const int byte = take();
    if (byte == kEnd) fail("the quote that opens here is never closed");
    if (byte != '"') {
      append(field, byte);
    } else if (peek() == '"') {
      append(field, take());
    } else {
      break;
    }
  }
  while (peek() == ' ' && delimiter_ != ' ') take();
  const int after = peek();
  if (after != delimiter_ && after != '\r' && after != '\n' && after != kEnd) fail("text after a closing quote");
}

void CsvReader::read_plain(std::string& field) {
  for (int byte = peek(); byte != delimiter_ && byte != '\r' && byte != '\n' && byte != kEnd; byte = peek()) {
    if (byte == '"' && field.find_first_not_of(' ') == std::string::npos) {  // blanks before a quoted field
      field.clear();
      return read_quoted(field);
    }
    if (byte == '"') fail("quote inside an unquoted field", "put the whole field in quotes and double the quote");
    append(field, take());
  }
}

void CsvReader::skip_line() {
  for (int byte = peek(); byte != kEnd; byte = peek()) {
    row_bytes_ = 0;
    if (take() == '\n') return;
  }
}

void CsvReader::skip_row() {
  if (file_.fd >= 0) throw std::logic_error("only a text can be read again");
  at_ = row_at_;
  line_ = row_line_;
  skip_line();
}

bool CsvReader::next_row(std::vector<std::string>& fields) {
  do {  // over blank lines
    row_line_ = line_;
    row_at_ = at_;
    row_bytes_ = 0;
    if (peek() == kEnd) return false;
  } while (take_line_end());
  fields.clear();
  for (;;) {
    fields.emplace_back();
    if (peek() == '"') {
      read_quoted(fields.back());
    } else {
      read_plain(fields.back());
    }
    if (take_line_end()) return true;
    take();  // the delimiter
  }
}

namespace {

using Cells = std::vector<std::string>;

void trim_cells(Cells& cells) {
  for (std::string& cell : cells) {
    cell.erase(cell.find_last_not_of(" \t") + 1);
    cell.erase(0, std::min(cell.find_first_not_of(" \t"), cell.size()));
  }
}

/// Drops empty cells at the end, as far as there are more than `count`: a comma stands behind the last one.
void drop_trailing(Cells& cells, size_t count) {
  while (cells.size() > count && cells.back().empty()) cells.pop_back();
}

/// Where a comma does not separate fields, it may be the point of a number.
void read_decimal_comma(std::string& cell) {
  const size_t comma = cell.find(',');
  if (comma == std::string::npos || cell.find_first_not_of("+-0123456789,eE") != std::string::npos) return;
  if (cell.find(',', comma + 1) == std::string::npos) cell[comma] = '.';
}

class TableReader {
 public:
  TableReader(const std::string& key, Cells columns) : key_(key) {
    table_.columns = std::move(columns);
    for (size_t k = 0; k < table_.columns.size(); ++k) places_.push_back(k);
  }

  void read(CsvReader& reader) {
    for (Cells cells; next(reader, cells);) {
      trim_cells(cells);
      if (is_header(cells)) {
        begin_header(cells);
      } else {
        add(reader, cells);
      }
    }
    for (CsvTable::Row& row : table_.rows) row.cells.resize(table_.columns.size());
  }

  CsvTable& table() { return table_; }

 private:
  bool next(CsvReader& reader, Cells& cells) {
    while (true) {
      try {
        return reader.next_row(cells);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::data) throw;
        table_.left_out.emplace_back(error.what());
        reader.skip_row();
      }
    }
  }

  bool is_header(const Cells& cells) const {
    if (places_.empty()) return true;
    return !key_.empty() &&
           std::any_of(cells.begin(), cells.end(), [&](const std::string& cell) { return lower_case(cell) == key_; });
  }

  void begin_header(Cells names) {
    drop_trailing(names, 1);
    const bool is_ours = key_.empty() || std::find(names.begin(), names.end(), key_) != names.end();
    places_.clear();
    for (std::string& name : names) {
      if (!is_ours) name = lower_case(name);
      const auto found = std::find(table_.columns.begin(), table_.columns.end(), name);
      places_.push_back(static_cast<size_t>(found - table_.columns.begin()));
      if (found == table_.columns.end()) table_.columns.push_back(name);
    }
  }

  void add(const CsvReader& reader, Cells& cells) {
    if (std::all_of(cells.begin(), cells.end(), [](const std::string& cell) { return cell.empty(); })) return;
    drop_trailing(cells, places_.size());
    if (cells.size() != places_.size()) {
      try {
        reader.fail(format("{} fields instead of {}", cells.size(), places_.size()));
      } catch (const Error& error) {
        table_.left_out.emplace_back(error.what());
      }
      return;
    }
    CsvTable::Row row = {reader.line(), Cells(table_.columns.size())};
    for (size_t k = 0; k < cells.size(); ++k) {
      if (reader.delimiter() != ',') read_decimal_comma(cells[k]);
      row.cells[places_[k]] = cells[k];
    }
    table_.rows.push_back(std::move(row));
  }

  const std::string key_;
  CsvTable table_;
  std::vector<size_t> places_;  ///< table columns of the cells under the header that stands above them
};

}  // namespace

std::string CsvTable::left_out_text() const {
  if (left_out.empty()) return "";
  const std::string more = left_out.size() > 1 ? format(", and {} more", left_out.size() - 1) : "";
  return format("{}{}: left out", left_out.front(), more);
}

CsvTable read_csv_table(const std::string& text, const std::string& path, const std::string& key,
                        std::vector<std::string> columns, uint64_t max_row_bytes) {
  TableReader reader(key, std::move(columns));
  try {
    CsvReader rows(text, path, max_row_bytes, /*delimiter=*/0);
    reader.read(rows);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    reader.table().left_out.emplace_back(error.what());
  }
  return std::move(reader.table());
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_row(const std::vector<std::string>& fields) {
  std::string row;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) row += ',';
    row += csv_field(fields[i]);
  }
  return row;
}

}  // namespace stoker::core
