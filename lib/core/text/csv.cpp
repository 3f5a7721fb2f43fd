// SPDX-License-Identifier: Apache-2.0
#include "core/text/csv.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

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

CsvReader::Descriptor::~Descriptor() { ::close(fd); }

CsvReader::CsvReader(const std::string& path, uint64_t max_row_bytes, char delimiter)
    : path_(path), max_row_bytes_(max_row_bytes), delimiter_(delimiter), file_(path), block_(1 << 16) {
  struct stat info {};
  if (::fstat(file_.fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    throw Error(ErrorKind::no_input, "cannot read " + printable(path) + ": it is not a regular file");
  }
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

bool CsvReader::next_row(std::vector<std::string>& fields) {
  do {  // over blank lines
    row_line_ = line_;
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
