// SPDX-License-Identifier: Apache-2.0
#include "engine/files/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/text/json.h"

namespace stoker::engine {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

constexpr size_t kMaxRank = 64;

constexpr std::pair<std::string_view, uint64_t> kElementBytes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2},
                                                                   {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1},
                                                                   {"U8", 1},  {"BOOL", 1}};

[[noreturn]] void malformed(const std::string& what, const std::string& cause) {
  throw Error(ErrorKind::data, what + ": not a valid safetensors file: " + cause,
              "copy the file again, or use another checkpoint");
}

uint64_t unsigned_number(const core::Json& value, const std::string& what, const std::string& name) {
  if (!value.is_number_unsigned())
    malformed(what, "tensor " + core::printable(name) + " has a number that is not a count");
  return value.get<uint64_t>();
}

/// Appends one side to a shape; `volume` is the product of the sides that are not 0, which must fit too: strides
/// are made of it.
void append_side(TensorRecord& record, uint64_t side, uint64_t& volume, const std::string& what) {
  const bool overflows = side != 0 && __builtin_mul_overflow(volume, side, &volume);
  if (overflows || volume > uint64_t(std::numeric_limits<int64_t>::max()) || record.shape.size() == kMaxRank) {
    malformed(what, "tensor " + core::printable(record.name) + " has a shape that is too large");
  }
  record.shape.push_back(static_cast<int64_t>(side));
}

TensorRecord parse_record(const std::string& name, const core::Json& value, uint64_t data_bytes,
                          const std::string& what) {
  const std::string shown = core::printable(name);
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets")) {
    malformed(what, "tensor " + shown + " needs exactly dtype, shape and data_offsets");
  }
  if (!value["dtype"].is_string() || !value["shape"].is_array() || !value["data_offsets"].is_array() ||
      value["data_offsets"].size() != 2) {
    malformed(what, "tensor " + shown + " has fields of the wrong type");
  }
  TensorRecord record;
  record.name = name;
  record.dtype = value["dtype"].get<std::string>();
  uint64_t volume = safetensors_element_bytes(record.dtype);
  if (volume == 0) {
    throw Error(ErrorKind::data, format("{}: tensor {}: unknown dtype {}", what, shown, core::printable(record.dtype)));
  }
  for (const core::Json& side : value["shape"]) append_side(record, unsigned_number(side, what, name), volume, what);
  const bool empty = std::find(record.shape.begin(), record.shape.end(), 0) != record.shape.end();
  record.begin = unsigned_number(value["data_offsets"][0], what, name);
  record.end = unsigned_number(value["data_offsets"][1], what, name);
  if (record.begin > record.end || record.end > data_bytes)
    malformed(what, "tensor " + shown + " lies outside the file");
  if (record.end - record.begin != (empty ? 0 : volume))
    malformed(what, "tensor " + shown + " has a size unlike its shape");
  return record;
}

std::map<std::string, std::string> parse_metadata(const core::Json& value, const std::string& what) {
  std::map<std::string, std::string> metadata;
  if (!value.is_object()) malformed(what, "__metadata__ is not an object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) malformed(what, "__metadata__ holds a value that is not text");
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

/// For bytes that do not begin with a plausible header length: the error names a zip archive or a pickle.
void refuse_other_formats(std::string_view bytes, const std::string& what) {
  const bool zip = bytes.substr(0, 4) == "PK\x03\x04";
  const bool pickle = bytes.size() > 1 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
  if (!zip && !pickle) return;
  throw Error(ErrorKind::data, what + ": this is a zip archive or a pickle, not safetensors",
              "train import FILE -o weights.safetensors converts the state dicts that torch.save() writes");
}

/// Sorts by place, and demands that each tensor begins where the one before it ends.
void require_coverage(std::vector<TensorRecord>& tensors, uint64_t data_bytes, const std::string& what) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorRecord& a, const TensorRecord& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t expected = 0;
  for (const TensorRecord& record : tensors) {
    if (record.begin != expected) malformed(what, "tensors overlap or leave gaps at " + core::printable(record.name));
    expected = record.end;
  }
  if (expected != data_bytes) malformed(what, format("{} bytes follow the last tensor", data_bytes - expected));
}

}  // namespace

uint64_t safetensors_element_bytes(std::string_view dtype) {
  for (const auto& [name, bytes] : kElementBytes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

SafetensorsHeader parse_safetensors_header(std::string_view bytes, const std::string& what) {
  return parse_safetensors_header(bytes, bytes.size(), what);
}

SafetensorsHeader parse_safetensors_header(std::string_view front, uint64_t file_bytes, const std::string& what) {
  if (front.size() < 8) malformed(what, format("{} bytes is too short", file_bytes));
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, front.data(), sizeof header_bytes);
  if (header_bytes > kMaxSafetensorsHeader - 8 || header_bytes > front.size() - 8) {
    refuse_other_formats(front, what);
    malformed(what, format("its header should have {} bytes, the file has {}", header_bytes, file_bytes));
  }
  const core::Json json = core::parse_json(front.substr(8, header_bytes), what, /*max_depth=*/4);
  if (!json.is_object()) malformed(what, "the header is not an object");
  SafetensorsHeader header;
  header.data_start = 8 + header_bytes;
  const uint64_t data_bytes = file_bytes - header.data_start;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      header.metadata = parse_metadata(value, what);
    } else {
      header.tensors.push_back(parse_record(name, value, data_bytes, what));
    }
  }
  require_coverage(header.tensors, data_bytes, what);
  return header;
}

}  // namespace stoker::engine
