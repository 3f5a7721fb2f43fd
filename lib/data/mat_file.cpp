// SPDX-License-Identifier: Apache-2.0
#include "data/mat_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace stoker::data {
namespace {

constexpr uint64_t kMatHeaderBytes = 128;
constexpr uint64_t kMaxInflatedBytes = 64 << 20;

// Types of data elements, and classes of arrays; the numbers are the format's.
enum ElementType : uint32_t {
  kInt8 = 1,
  kUint8 = 2,
  kInt16 = 3,
  kUint16 = 4,
  kInt32 = 5,
  kUint32 = 6,
  kSingle = 7,
  kDouble = 9,
  kInt64 = 12,
  kUint64 = 13,
  kMatrix = 14,
  kCompressed = 15
};
constexpr uint32_t kFirstNumericClass = 6, kLastNumericClass = 15;  // double to uint64
constexpr uint32_t kComplexFlag = 0x0800;

template <typename T>
T value_at(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// One data element: a tag and the bytes that it announces.
struct MatElement {
  uint32_t type = 0;
  const uint8_t* bytes = nullptr;
  uint64_t size = 0;
};

/// Takes elements off the front of some bytes.
class ElementReader {
 public:
  ElementReader(const uint8_t* bytes, uint64_t size) : at_(bytes), left_(size) {}

  bool is_done() const { return left_ < 8; }

  /// False when the element reaches over the end.
  bool next(MatElement& element) {
    if (left_ < 8) return false;
    const auto first = value_at<uint32_t>(at_);
    if (first >> 16 != 0) {  // small: size and type share a word, the data stands in the other
      element = {first & 0xFFFF, at_ + 4, first >> 16};
      if (element.size > 4) return false;
      skip(8);
      return true;
    }
    element = {first, at_ + 8, value_at<uint32_t>(at_ + 4)};
    skip(8);
    if (element.size > left_) return false;
    const uint64_t padding = element.type == kCompressed ? 0 : (8 - element.size % 8) % 8;
    skip(std::min(left_, element.size + padding));
    return true;
  }

 private:
  void skip(uint64_t count) {
    at_ += count;
    left_ -= count;
  }

  const uint8_t* at_;
  uint64_t left_;
};

std::string inflated(const MatElement& element, std::vector<uint8_t>& out) {
  z_stream stream{};
  if (::inflateInit(&stream) != Z_OK) return "cannot be decompressed";
  stream.next_in = const_cast<Bytef*>(element.bytes);  // zlib only reads it
  stream.avail_in = static_cast<uInt>(element.size);
  int result = Z_OK;
  out.clear();
  while (result == Z_OK && out.size() < kMaxInflatedBytes) {
    const size_t before = out.size();
    out.resize(before + (1 << 16));
    stream.next_out = out.data() + before;
    stream.avail_out = 1 << 16;
    result = ::inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  return result == Z_STREAM_END ? "" : "damaged compressed data";
}

uint64_t bytes_per_value(uint32_t type) {
  switch (type) {
    case kInt8:
    case kUint8:
      return 1;
    case kInt16:
    case kUint16:
      return 2;
    case kInt32:
    case kUint32:
    case kSingle:
      return 4;
    case kDouble:
    case kInt64:
    case kUint64:
      return 8;
    default:
      return 0;
  }
}

double number_at(const uint8_t* bytes, uint32_t type) {
  switch (type) {
    case kInt8:
      return value_at<int8_t>(bytes);
    case kUint8:
      return *bytes;
    case kInt16:
      return value_at<int16_t>(bytes);
    case kUint16:
      return value_at<uint16_t>(bytes);
    case kInt32:
      return value_at<int32_t>(bytes);
    case kUint32:
      return value_at<uint32_t>(bytes);
    case kSingle:
      return value_at<float>(bytes);
    case kInt64:
      return static_cast<double>(value_at<int64_t>(bytes));
    case kUint64:
      return static_cast<double>(value_at<uint64_t>(bytes));
    default:
      return value_at<double>(bytes);
  }
}

/// A matrix element: flags, dimensions, name, numbers. `found` tells whether it has the name.
std::string read_matrix(const MatElement& matrix, const std::string& name, MatArray& array, bool& found) {
  ElementReader parts(matrix.bytes, matrix.size);
  MatElement flags, dimensions, title, numbers;
  if (!parts.next(flags) || flags.size < 8 || !parts.next(dimensions) || !parts.next(title))
    return "damaged array";
  found = title.size == name.size() && std::memcmp(title.bytes, name.data(), name.size()) == 0;
  if (!found) return "";
  const auto word = value_at<uint32_t>(flags.bytes);
  const uint32_t kind = word & 0xFF;
  if (kind < kFirstNumericClass || kind > kLastNumericClass || (word & kComplexFlag) != 0) {
    return name + " is not an array of real numbers";
  }
  if (dimensions.type != kInt32 || dimensions.size != 8) return name + " has not two dimensions";
  const int64_t rows = value_at<int32_t>(dimensions.bytes), columns = value_at<int32_t>(dimensions.bytes + 4);
  if (rows < 0 || columns < 0 || !parts.next(numbers)) return "damaged array";
  if (static_cast<uint64_t>(rows) > numbers.size || static_cast<uint64_t>(columns) > numbers.size)
    return "damaged array";
  const uint64_t step = bytes_per_value(numbers.type);
  if (step == 0 || static_cast<uint64_t>(rows) * static_cast<uint64_t>(columns) * step != numbers.size) {
    return "damaged array";
  }
  array.rows = rows;
  array.columns = columns;
  array.values.clear();
  for (uint64_t at = 0; at < numbers.size; at += step) {
    array.values.push_back(number_at(numbers.bytes + at, numbers.type));
  }
  return "";
}

}  // namespace

std::string read_mat_array(const uint8_t* bytes, uint64_t size, const std::string& name, MatArray& array) {
  if (size < kMatHeaderBytes || bytes[126] != 'I' || bytes[127] != 'M' || bytes[125] != 1) {
    return "not a MAT-file of level 5 in little-endian order";
  }
  ElementReader file(bytes + kMatHeaderBytes, size - kMatHeaderBytes);
  std::vector<uint8_t> content;
  while (!file.is_done()) {
    MatElement element;
    if (!file.next(element)) return "cut short";
    if (element.type == kCompressed) {
      if (std::string trouble = inflated(element, content); !trouble.empty()) return trouble;
      if (!ElementReader(content.data(), content.size()).next(element)) return "damaged compressed data";
    }
    if (element.type != kMatrix) continue;
    bool found = false;
    if (std::string trouble = read_matrix(element, name, array, found); !trouble.empty() || found)
      return trouble;
  }
  return "holds no array " + name;
}

}  // namespace stoker::data
