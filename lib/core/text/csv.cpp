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
  if (peek() == 0xEF) {  // a UTF-8 byte order mark is EF BB BF
    take();
    if (take() != 0xBB || take() != 0xBF) fail("begins with half a byte order mark");
  }
  if (delimiter_ == 0) delimiter_ = delimiter_of_first_line();
}

/// Of what has been read of the first line, quotes left out.
char CsvReader::delimiter_of_first_line() {
  bool quoted = false, has_tab = false, has_semicolon = false;
  peek();
  for (size_t i = at_; i < filled_ && block_[i] != '\n'; ++i) {
    const char byte = block_[i];
    if (byte == '"') quoted = !quoted;
    if (quoted) continue;
    if (byte == ',') return ',';
    has_tab |= byte == '\t';
    has_semicolon |= byte == ';';
  }
  return has_tab ? '\t' : has_semicolon ? ';' : ',';
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
    if (peek() != '\n' && peek() != kEnd) fail("carriage return inside a row", "put the field in quotes");
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
  const int after = peek();
  if (after != delimiter_ && after != '\r' && after != '\n' && after != kEnd) fail("text after a closing quote");
}

void CsvReader::read_plain(std::string& field) {
  for (int byte = peek(); byte != delimiter_ && byte != '\r' && byte != '\n' && byte != kEnd; byte = peek()) {
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

}  // namespace stoker::core
