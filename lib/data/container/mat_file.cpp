// SPDX-License-Identifier: Apache-2.0
// MAT-files through matio, which trusts more than we do: it takes gigabytes when a file claims them, continues
// after damage and checks no checksum. So a look at the lengths in front of each array comes before matio
// gets to see it, and what it reports as read is checked to have been written.
#include "data/container/mat_file.h"

#include <matio.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string_view>

#include "core/system/file.h"

namespace stoker::data {
namespace {

constexpr uint64_t kMaxMatBytes = 16 << 20;
constexpr size_t kMaxMatNumbers = 1 << 23;
constexpr uint64_t kMaxInflatedBytes = 64 << 20;
constexpr size_t kMatHeaderBytes = 128, kMatTagBytes = 8;
constexpr size_t kMaxMatDimensions = 32, kMaxMatNameBytes = 255;

/// Set by what matio reports: it continues after damage that it only logs.
thread_local bool mat_complained = false;

/// Older releases of matio hand the text over as char*, newer ones as const char*.
template <typename Text>
void note_complaint(int level, Text) {
  if ((level & (MATIO_LOG_LEVEL_ERROR | (MATIO_LOG_LEVEL_CRITICAL) | (MATIO_LOG_LEVEL_WARNING))) != 0) {
    mat_complained = true;
  }
}

/// Held while matio works: it does not promise that threads may read different files at once. The first to
/// hold it takes matio's messages away from stderr.
std::unique_lock<std::mutex> hold_matio() {
  static std::mutex mutex;
  static bool is_quiet = false;
  std::unique_lock<std::mutex> lock(mutex);
  if (!is_quiet) Mat_LogInitFunc("stoker", note_complaint);
  is_quiet = true;
  mat_complained = false;
  return lock;
}

uint32_t mat_word(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

/// Finds the elements of a file's bytes, each with its tag. Returns "" or what is wrong.
std::string find_elements(std::string_view bytes, std::vector<std::string_view>& elements) {
  if (bytes.size() < kMatHeaderBytes || bytes.compare(126, 2, "IM") != 0 || (bytes[125] != 1 && bytes[125] != 2)) {
    return "not a MAT-file of level 5 in little-endian order";
  }
  if (bytes[125] == 2) return "a MAT-file of level 7.3: save it with -v7, which gives level 5";
  elements.clear();
  bytes.remove_prefix(kMatHeaderBytes);
  while (!bytes.empty()) {
    if (bytes.size() < kMatTagBytes) return "cut short";
    const size_t size = mat_word(bytes, 4);  // of what follows the tag
    if (bytes.size() - kMatTagBytes < size) return "cut short";
    elements.push_back(bytes.substr(0, kMatTagBytes + size));
    bytes.remove_prefix(kMatTagBytes + size);
  }
  return "";
}

/// The first bytes of what `deflated` holds, at most as many as `front` has. Empty when it is damaged
/// anywhere, ends before its checksum or holds more than 64 MiB.
std::string_view inflated_front(std::string_view deflated, std::array<char, 512>& front) {
  z_stream stream{};
  if (::inflateInit(&stream) != Z_OK) return {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(deflated.data()));  // zlib only reads it
  stream.avail_in = static_cast<uInt>(deflated.size());
  std::array<char, 1 << 14> rest;
  int result = Z_OK;
  size_t size = 0;
  while (result == Z_OK && stream.total_out <= kMaxInflatedBytes) {
    const bool is_first = stream.total_out == 0;
    stream.next_out = reinterpret_cast<Bytef*>(is_first ? front.data() : rest.data());
    stream.avail_out = static_cast<uInt>(is_first ? front.size() : rest.size());
    result = ::inflate(&stream, Z_NO_FLUSH);
    if (is_first) size = stream.total_out;
  }
  ::inflateEnd(&stream);
  return result == Z_STREAM_END ? std::string_view(front.data(), size) : std::string_view();
}

/// Whether matio may look at an element: "" or what is wrong. An array begins with tags of four parts: the
/// whole, its flags, its dimensions and its name, whose lengths matio believes. It also walks through cells
/// and structures.
std::string problem_with(std::string_view element) {
  constexpr uint32_t kInt8 = 1, kInt32 = 5, kUint32 = 6, kMatrix = 14, kCompressed = 15;
  constexpr size_t kFlags = 8, kDimensions = 24, kPartsAfter = kDimensions + kMatTagBytes;
  std::array<char, 512> front;
  if (mat_word(element, 0) == kCompressed) element = inflated_front(element.substr(kMatTagBytes), front);
  if (element.size() < kPartsAfter || mat_word(element, 0) != kMatrix) return "damaged";
  const size_t dimension_bytes = mat_word(element, kDimensions + 4);
  if (mat_word(element, kFlags) != kUint32 || mat_word(element, kFlags + 4) != 8 ||
      mat_word(element, kDimensions) != kInt32 || dimension_bytes > 4 * kMaxMatDimensions) {
    return "damaged";
  }
  const size_t name = kPartsAfter + (dimension_bytes + 7) / 8 * 8;
  if (element.size() < name + kMatTagBytes) return "damaged";
  const uint32_t name_type = mat_word(element, name);  // a short name has its length in the upper half
  const bool is_short = name_type >> 16 != 0;
  if ((name_type & 0xFFFF) != kInt8 || (!is_short && mat_word(element, name + 4) > kMaxMatNameBytes)) return "damaged";
  const uint32_t kind = mat_word(element, kFlags + 8) & 0xFF;
  return kind >= MAT_C_CHAR && kind <= MAT_C_UINT64 ? "" : "holds cells or structures, which are not read,";
}

/// False when matio complains, or leaves a number as it was: then it has read less than it was requested.
template <typename T>
bool read_numbers_as(mat_t* file, matvar_t* variable, size_t count, std::vector<double>& values) {
  std::vector<T> numbers[2];
  for (const int fill : {0, 1}) {
    numbers[fill].resize(count);
    std::memset(numbers[fill].data(), fill, count * sizeof(T));
    const int result = Mat_VarReadDataLinear(file, variable, numbers[fill].data(), 0, 1, static_cast<int>(count));
    if (result != 0 || mat_complained) return false;
  }
  if (std::memcmp(numbers[0].data(), numbers[1].data(), count * sizeof(T)) != 0) return false;
  values.assign(numbers[0].begin(), numbers[0].end());
  return true;
}

bool read_numbers(mat_t* file, matvar_t* variable, size_t count, std::vector<double>& values) {
  values.clear();
  if (count == 0) return true;
  switch (variable->class_type) {
    case MAT_C_DOUBLE: return read_numbers_as<double>(file, variable, count, values);
    case MAT_C_SINGLE: return read_numbers_as<float>(file, variable, count, values);
    case MAT_C_INT8: return read_numbers_as<int8_t>(file, variable, count, values);
    case MAT_C_UINT8: return read_numbers_as<uint8_t>(file, variable, count, values);
    case MAT_C_INT16: return read_numbers_as<int16_t>(file, variable, count, values);
    case MAT_C_UINT16: return read_numbers_as<uint16_t>(file, variable, count, values);
    case MAT_C_INT32: return read_numbers_as<int32_t>(file, variable, count, values);
    case MAT_C_UINT32: return read_numbers_as<uint32_t>(file, variable, count, values);
    case MAT_C_INT64: return read_numbers_as<int64_t>(file, variable, count, values);
    default: return read_numbers_as<uint64_t>(file, variable, count, values);
  }
}

}  // namespace

struct MatFile::Impl {
  std::unique_ptr<mat_t, int (*)(mat_t*)> file{nullptr, Mat_Close};
  std::string bytes;
  std::vector<std::string_view> elements;  ///< elements of the file, inside bytes
};

MatFile::MatFile() : impl_(std::make_unique<Impl>()) {}

MatFile::~MatFile() {
  const auto lock = hold_matio();
  impl_->file.reset();
}

std::string MatFile::open(const std::string& path) {
  impl_->bytes = core::read_file(path, kMaxMatBytes);
  std::string problem = find_elements(impl_->bytes, impl_->elements);
  if (!problem.empty()) return problem;
  const auto lock = hold_matio();
  impl_->file.reset(Mat_Open(path.c_str(), MAT_ACC_RDONLY));
  if (!impl_->file || Mat_GetVersion(impl_->file.get()) != MAT_FT_MAT5) return "matio cannot open it";
  return "";
}

std::string MatFile::read_array(const std::string& name, MatArray& array) {
  const auto lock = hold_matio();
  mat_t* const file = impl_->file.get();
  if (file == nullptr || Mat_Rewind(file) != 0) return "matio cannot read it";
  for (const std::string_view element : impl_->elements) {
    if (const std::string problem = problem_with(element); !problem.empty()) {
      return problem + " before an array " + name + " is found";
    }
    mat_complained = false;
    const std::unique_ptr<matvar_t, void (*)(matvar_t*)> variable(Mat_VarReadNextInfo(file), Mat_VarFree);
    if (!variable) return "damaged before an array " + name + " is found";
    if (variable->name == nullptr || variable->name != name) continue;
    if (mat_complained) return "damaged array";
    if (variable->class_type < MAT_C_DOUBLE || variable->class_type > MAT_C_UINT64 || variable->isComplex != 0) {
      return name + " is not an array of real numbers";
    }
    if (variable->rank != 2 || variable->dims == nullptr) return name + " has not two dimensions";
    const size_t rows = variable->dims[0], columns = variable->dims[1];
    if (rows > kMaxMatNumbers || columns > kMaxMatNumbers || rows * columns > kMaxMatNumbers) {
      return name + " has more than 8388608 numbers";
    }
    array.rows = static_cast<int64_t>(rows);
    array.columns = static_cast<int64_t>(columns);
    return read_numbers(file, variable.get(), rows * columns, array.values) ? "" : "damaged array";
  }
  return "holds no array " + name;
}

std::string MatFile::read_records(const std::string& name, const std::string& number, const std::string& text,
                                  std::vector<double>& numbers, std::vector<std::string>& texts) {
  constexpr size_t kMaxRecords = 1 << 20;
  const auto lock = hold_matio();
  mat_t* const file = impl_->file.get();
  if (file == nullptr || Mat_Rewind(file) != 0) return "matio cannot read it";
  const std::unique_ptr<matvar_t, void (*)(matvar_t*)> variable(Mat_VarRead(file, name.c_str()), Mat_VarFree);
  if (!variable || variable->class_type != MAT_C_STRUCT || variable->dims == nullptr) return "holds no records " + name;
  size_t count = 1;
  for (int i = 0; i < variable->rank; ++i) {
    if (variable->dims[i] > kMaxRecords) return "holds too many records " + name;
    count = std::min(kMaxRecords + 1, count * variable->dims[i]);
  }
  if (count > kMaxRecords) return "holds too many records " + name;
  for (size_t i = 0; i < count; ++i) {
    matvar_t* const value = Mat_VarGetStructFieldByName(variable.get(), number.c_str(), i);
    matvar_t* const word = Mat_VarGetStructFieldByName(variable.get(), text.c_str(), i);
    if (value == nullptr || word == nullptr || value->data == nullptr || word->data == nullptr || value->nbytes == 0 ||
        word->class_type != MAT_C_CHAR || word->data_size < 1 || word->data_size > 2) {
      return name + " has other fields than " + number + " and " + text;
    }
    switch (value->class_type) {
      case MAT_C_DOUBLE: numbers.push_back(*static_cast<const double*>(value->data)); break;
      case MAT_C_UINT8: numbers.push_back(*static_cast<const uint8_t*>(value->data)); break;
      case MAT_C_UINT16: numbers.push_back(*static_cast<const uint16_t*>(value->data)); break;
      case MAT_C_INT16: numbers.push_back(*static_cast<const int16_t*>(value->data)); break;
      case MAT_C_INT32: numbers.push_back(*static_cast<const int32_t*>(value->data)); break;
      default: return number + " is not a number";
    }
    std::string letters;
    const auto step = static_cast<size_t>(word->data_size);
    for (size_t at = 0; at + step <= word->nbytes; at += step) letters += static_cast<const char*>(word->data)[at];
    texts.push_back(letters);
  }
  return mat_complained ? "damaged records" : "";
}

}  // namespace stoker::data
