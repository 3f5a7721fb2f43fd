// SPDX-License-Identifier: Apache-2.0
#include "engine/saved/safetensors.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/system/file.h"
#include "core/text/json.h"
#include "engine/files/safetensors_header.h"

namespace stoker::engine {
namespace {

using core::Error;
using core::ErrorKind;

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 40;

struct TypeName {
  at::ScalarType type;
  const char* name;
};
constexpr TypeName kTypeNames[] = {
    {at::kDouble, "F64"}, {at::kFloat, "F32"}, {at::kHalf, "F16"}, {at::kBFloat16, "BF16"}, {at::kLong, "I64"},
    {at::kInt, "I32"},    {at::kShort, "I16"}, {at::kChar, "I8"},  {at::kByte, "U8"},       {at::kBool, "BOOL"}};

const char* safetensors_type(at::ScalarType type, const std::string& tensor) {
  for (const TypeName& entry : kTypeNames) {
    if (entry.type == type) return entry.name;
  }
  throw Error(ErrorKind::bug, "tensor " + tensor + " has a type that safetensors cannot hold");
}

at::ScalarType torch_type(const std::string& dtype) {
  for (const TypeName& entry : kTypeNames) {
    if (dtype == entry.name) return entry.type;
  }
  throw Error(ErrorKind::bug, "the dtype " + dtype + " has a size but no type");
}

/// The elements of a CPU tensor in row-major order, a block at a time: without a copy of all of it, and by the calling
/// thread alone.
template <typename Put>
void visit_row_major(const torch::Tensor& tensor, const Put& put) {
  const size_t element = tensor.element_size();
  const char* const data = static_cast<const char*>(tensor.data_ptr());
  if (tensor.is_contiguous() || tensor.numel() == 0) {
    put(data, static_cast<uint64_t>(tensor.numel()) * element);
    return;
  }
  constexpr size_t kBlock = 1 << 16;  // bytes
  std::vector<char> block(kBlock / element * element);
  size_t filled = 0;
  const int64_t dims = tensor.dim(), inner = tensor.size(dims - 1), step = tensor.stride(dims - 1);
  std::vector<int64_t> index(static_cast<size_t>(dims), 0);
  for (int64_t done = 0; done < tensor.numel(); done += inner) {
    int64_t offset = 0;
    for (int64_t dim = 0; dim + 1 < dims; ++dim) offset += index[static_cast<size_t>(dim)] * tensor.stride(dim);
    for (int64_t i = 0; i < inner; ++i) {
      std::memcpy(block.data() + filled, data + static_cast<size_t>(offset + i * step) * element, element);
      filled += element;
      if (filled < block.size()) continue;
      put(block.data(), filled);
      filled = 0;
    }
    for (int64_t dim = dims - 2; dim >= 0; --dim) {
      if (++index[static_cast<size_t>(dim)] < tensor.size(dim)) break;
      index[static_cast<size_t>(dim)] = 0;
    }
  }
  if (filled > 0) put(block.data(), filled);
}

}  // namespace

WrittenFile write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                              const std::map<std::string, std::string>& metadata, core::FileSystem& files) {
  std::string text = "{";
  const auto add_field = [&](const std::string& name, const core::Json& value) {
    text += (text.size() > 1 ? "," : "") + core::json_line(core::Json(name)) + ":" + core::json_line(value);
  };
  if (!metadata.empty()) add_field("__metadata__", metadata);
  uint64_t offset = 0;
  for (const NamedTensor& entry : tensors) {
    const uint64_t bytes = static_cast<uint64_t>(entry.tensor.numel()) * entry.tensor.element_size();
    add_field(entry.name, {{"dtype", safetensors_type(entry.tensor.scalar_type(), entry.name)},
                           {"shape", entry.tensor.sizes().vec()},
                           {"data_offsets", {offset, offset + bytes}}});
    offset += bytes;
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');  // data starts at a multiple of 8 bytes

  core::CheckedWriter writer(path, files);
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
    visit_row_major(entry.tensor.detach().to(torch::kCPU), put);
  }
  writer.finish();
  written.digest = hasher.hex();
  return written;
}

SafetensorsContent parse_safetensors(const std::string& bytes, const std::string& what) {
  SafetensorsHeader header = parse_safetensors_header(bytes, what);
  SafetensorsContent content;
  content.metadata = std::move(header.metadata);
  for (const TensorRecord& record : header.tensors) {
    torch::Tensor tensor = torch::empty(record.shape, torch_type(record.dtype));  // CPU
    if (record.end > record.begin) {
      std::memcpy(tensor.data_ptr(), bytes.data() + header.data_start + record.begin, record.end - record.begin);
    }
    content.tensors.push_back({record.name, tensor});
  }
  return content;
}

SafetensorsContent read_safetensors(const std::string& path) {
  return parse_safetensors(core::read_file(path, kMaxFileBytes), core::printable(path));
}

void replace_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  core::FileSystem& files = core::posix_file_system();
  core::remove_temporaries_of(path);  // of a process that was killed
  const std::string temporary = core::temporary_of(path);
  write_safetensors(temporary, tensors, metadata, files);
  if (const int error_number = files.rename(temporary, path); error_number != 0) {
    files.remove(temporary);
    throw core::errno_error(error_number, "replace", core::printable(path), core::ErrorKind::cannot_create);
  }
}

}  // namespace stoker::engine
