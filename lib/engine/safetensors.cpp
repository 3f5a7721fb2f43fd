// SPDX-License-Identifier: Apache-2.0
#include "engine/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/file.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/json.h"

namespace stoker::engine {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

constexpr uint64_t kMaxHeaderBytes = 16 << 20;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 40;

struct TypeName {
  at::ScalarType type;
  const char* name;
};
constexpr TypeName kTypeNames[] = {{at::kDouble, "F64"}, {at::kFloat, "F32"},  {at::kHalf, "F16"},
                                   {at::kBFloat16, "BF16"}, {at::kLong, "I64"}, {at::kInt, "I32"},
                                   {at::kShort, "I16"},  {at::kChar, "I8"},   {at::kByte, "U8"},
                                   {at::kBool, "BOOL"}};

const char* safetensors_type(at::ScalarType type, const std::string& tensor) {
  for (const TypeName& entry : kTypeNames) {
    if (entry.type == type) return entry.name;
  }
  throw Error(ErrorKind::bug, "tensor " + tensor + " has a type that safetensors cannot hold");
}

at::ScalarType torch_type(const std::string& name, const std::string& where) {
  for (const TypeName& entry : kTypeNames) {
    if (name == entry.name) return entry.type;
  }
  throw Error(ErrorKind::data, format("{}: unknown dtype {}", where, core::printable(name)));
}

[[noreturn]] void malformed(const std::string& what, const std::string& cause) {
  throw Error(ErrorKind::data, what + ": not a valid safetensors file: " + cause,
              "copy the file again, or use another checkpoint");
}

uint64_t unsigned_number(const core::Json& value, const std::string& what, const std::string& name) {
  if (!value.is_number_unsigned()) malformed(what, "tensor " + core::printable(name) + " has a number that is not a count");
  return value.get<uint64_t>();
}

/// One entry of the header, checked against the size of the data section.
struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<int64_t> shape;
  uint64_t begin, end;  // bytes within the data section
};

Entry parse_entry(const std::string& name, const core::Json& value, uint64_t data_bytes, const std::string& what) {
  const std::string shown = core::printable(name);
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets")) {
    malformed(what, "tensor " + shown + " needs exactly dtype, shape and data_offsets");
  }
  if (!value["dtype"].is_string() || !value["shape"].is_array() || !value["data_offsets"].is_array() ||
      value["data_offsets"].size() != 2) {
    malformed(what, "tensor " + shown + " has fields of the wrong type");
  }
  Entry entry{name, torch_type(value["dtype"].get<std::string>(), what + ": tensor " + shown), {}, 0, 0};
  uint64_t bytes = c10::elementSize(entry.type);
  for (const core::Json& side : value["shape"]) {
    const uint64_t length = unsigned_number(side, what, name);
    if (length > uint64_t(std::numeric_limits<int64_t>::max()) || __builtin_mul_overflow(bytes, length, &bytes)) {
      malformed(what, "tensor " + shown + " has a shape that is too large");
    }
    entry.shape.push_back(static_cast<int64_t>(length));
  }
  entry.begin = unsigned_number(value["data_offsets"][0], what, name);
  entry.end = unsigned_number(value["data_offsets"][1], what, name);
  if (entry.begin > entry.end || entry.end > data_bytes) malformed(what, "tensor " + shown + " lies outside the file");
  if (entry.end - entry.begin != bytes) malformed(what, "tensor " + shown + " has a size unlike its shape");
  return entry;
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

/// For bytes that do not begin with a plausible header length: says so when they are what Python's torch.save
/// writes.
void refuse_other_formats(const std::string& bytes, const std::string& what) {
  const bool zip = bytes.compare(0, 4, "PK\x03\x04") == 0;
  const bool pickle = !bytes.empty() && bytes[0] == '\x80' && bytes.size() > 1 && (bytes[1] >= 2 && bytes[1] <= 5);
  if (!zip && !pickle) return;
  throw Error(ErrorKind::data, what + ": this is a zip or pickle checkpoint, which can run code when loaded; not read",
              "convert it in Python: safetensors.torch.save_file(torch.load(path)['state_dict'], 'out.safetensors')");
}

}  // namespace

WrittenFile write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  core::Json header = core::Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const NamedTensor& entry : tensors) {
    const uint64_t bytes = static_cast<uint64_t>(entry.tensor.numel()) * entry.tensor.element_size();
    header[entry.name] = {{"dtype", safetensors_type(entry.tensor.scalar_type(), entry.name)},
                          {"shape", entry.tensor.sizes().vec()},
                          {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // data starts at a multiple of 8 bytes

  core::CheckedWriter writer(path);
  core::Hasher hasher;
  WrittenFile written;
  const auto put = [&](const void* bytes, uint64_t count) {
    writer.write(bytes, count);
    hasher.add(bytes, count);
    written.bytes += static_cast<int64_t>(count);
  };
  const uint64_t length = text.size();
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors is little-endian");
  put(&length, sizeof length);
  put(text.data(), text.size());
  for (const NamedTensor& entry : tensors) {
    const torch::Tensor plain = entry.tensor.detach().to(torch::kCPU).contiguous();
    put(plain.data_ptr(), static_cast<uint64_t>(plain.numel()) * plain.element_size());
  }
  writer.finish();
  written.digest = hasher.hex();
  return written;
}

SafetensorsContent parse_safetensors(const std::string& bytes, const std::string& what) {
  if (bytes.size() < 8) malformed(what, format("{} bytes is too short", bytes.size()));
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - 8) {
    refuse_other_formats(bytes, what);
    malformed(what, format("its header should have {} bytes, the file has {}", header_bytes, bytes.size()));
  }
  const core::Json header = core::parse_json({bytes.data() + 8, header_bytes}, what, /*max_depth=*/4);
  if (!header.is_object()) malformed(what, "the header is not an object");

  const uint64_t data_bytes = bytes.size() - 8 - header_bytes;
  SafetensorsContent content;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      content.metadata = parse_metadata(value, what);
    } else {
      entries.push_back(parse_entry(name, value, data_bytes, what));
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t expected = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != expected) malformed(what, "tensors overlap or leave gaps at " + core::printable(entry.name));
    expected = entry.end;
    torch::Tensor tensor = torch::empty(entry.shape, entry.type);
    if (entry.end > entry.begin) {
      std::memcpy(tensor.data_ptr(), bytes.data() + 8 + header_bytes + entry.begin, entry.end - entry.begin);
    }
    content.tensors.push_back({entry.name, tensor});
  }
  if (expected != data_bytes) malformed(what, format("{} bytes follow the last tensor", data_bytes - expected));
  return content;
}

SafetensorsContent read_safetensors(const std::string& path) {
  return parse_safetensors(core::read_file(path, kMaxFileBytes), core::printable(path));
}

}  // namespace stoker::engine
