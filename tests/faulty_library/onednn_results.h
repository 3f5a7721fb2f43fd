// SPDX-License-Identifier: Apache-2.0
// The memory that a primitive of oneDNN 2 or 3 writes to, by the functions of the library that is loaded: its headers
// are not needed, and each of the two describes memory in its own way.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace stoker::faulty {

enum class Type { float32, bfloat16, other };

/// Where each element of a result lies, in the order of its dimensions, whatever the layout in memory is.
struct Result {
  Type type = Type::other;
  unsigned char* bytes = nullptr;
  int64_t elements_in_memory = 0;  ///< with padding
  int64_t run = 0, pitch = 0;  ///< elements that lie side by side, and the distance of the next ones; 0: all of them
  std::vector<int64_t> sizes, strides;   ///< empty: a layout of the library's own
  std::vector<int64_t> blocks, blocked;  ///< inner blocks, outermost first, and their dimensions

  int64_t offset(std::vector<int64_t> index) const {
    int64_t offset = 0, inner = 1;
    for (size_t b = blocks.size(); b-- > 0;) {
      int64_t& position = index[static_cast<size_t>(blocked[b])];
      offset += position % blocks[b] * inner;
      position /= blocks[b];
      inner *= blocks[b];
    }
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
    return offset;
  }
  /// The index of the `i`th element in memory.
  int64_t place(int64_t i) const { return run == 0 ? i : i / run * pitch + i % run; }
  float get(int64_t at) const {
    uint32_t bits = 0;
    if (type == Type::float32) {
      std::memcpy(&bits, bytes + 4 * at, 4);
    } else {
      uint16_t upper = 0;
      std::memcpy(&upper, bytes + 2 * at, 2);
      bits = static_cast<uint32_t>(upper) << 16;
    }
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  void set(int64_t at, float value) const {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    if (type == Type::float32) {
      std::memcpy(bytes + 4 * at, &bits, 4);
      return;
    }
    if (value == value) bits += 0x7FFF + (bits >> 16 & 1);  // to the nearest; ties to even
    const auto upper = static_cast<uint16_t>(bits >> 16);
    std::memcpy(bytes + 2 * at, &upper, 2);
  }
};

// As oneDNN declares them.
struct Argument {
  int arg;
  void* memory;
};
constexpr int kSource = 1, kOutput = 17, kInputGradient = 129, kOutputGradient = 145, kWeightGradient = 161;

template <typename Function>
Function function_of(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

/// The beginning of dnnl_memory_desc_t of oneDNN 2; that of 3 is requested by dnnl_memory_desc_query().
struct Description2 {
  int ndims;
  int64_t dims[12];
  int data_type;
  int64_t padded_dims[12], padded_offsets[12], offset0;
  int format_kind;
  int64_t strides[12];
  int inner_nblks;
  int64_t inner_blks[12], inner_idxs[12];
};
using Query3 = int (*)(const void*, int, void*);
inline Query3 query3() {
  static const auto query = function_of<Query3>("dnnl_memory_desc_query");
  return query;
}

/// `memory`: a dnnl_memory_t.
inline Result result_in(void* memory) {
  static const auto describe = function_of<int (*)(const void*, const void**)>("dnnl_memory_get_memory_desc");
  static const auto handle = function_of<int (*)(const void*, void**)>("dnnl_memory_get_data_handle");
  static const auto size = function_of<size_t (*)(const void*)>("dnnl_memory_desc_get_size");
  const void* description = nullptr;
  void* bytes = nullptr;
  Result result;
  if (describe(memory, &description) != 0 || handle(memory, &bytes) != 0) return result;
  Description2 read{};
  if (query3() == nullptr) {
    std::memcpy(&read, description, sizeof read);
  } else {
    constexpr int kStrides = 14, kDimensions = 256, kDims = 257, kDataType = 258, kFormat = 262, kBlocks = 263;
    const auto list = [&](int what, int64_t* to, int count) {
      const int64_t* from = nullptr;
      if (query3()(description, what, &from) == 0 && from != nullptr)
        std::memcpy(to, from, sizeof(int64_t) * static_cast<size_t>(count));
    };
    query3()(description, kDimensions, &read.ndims);
    query3()(description, kDataType, &read.data_type);
    query3()(description, kFormat, &read.format_kind);
    list(kDims, read.dims, read.ndims);
    if (query3()(description, kBlocks, &read.inner_nblks) != 0) read.inner_nblks = 0;
    list(kStrides, read.strides, read.ndims);
    list(kBlocks + 1, read.inner_blks, read.inner_nblks);
    list(kBlocks + 2, read.inner_idxs, read.inner_nblks);
  }
  constexpr int kBFloat16 = 2, kFloat32 = 3, kBlocked = 2;
  result.type = read.data_type == kFloat32 ? Type::float32 : read.data_type == kBFloat16 ? Type::bfloat16 : Type::other;
  result.bytes = static_cast<unsigned char*>(bytes);
  result.elements_in_memory = static_cast<int64_t>(size(description)) / (result.type == Type::float32 ? 4 : 2);
  if (read.format_kind != kBlocked || read.offset0 != 0) return result;
  result.sizes.assign(read.dims, read.dims + read.ndims);
  result.strides.assign(read.strides, read.strides + read.ndims);
  result.blocks.assign(read.inner_blks, read.inner_blks + read.inner_nblks);
  result.blocked.assign(read.inner_idxs, read.inner_idxs + read.inner_nblks);
  return result;
}

enum class Kind { convolution, product, other };

inline Kind kind_of(const void* primitive) {
  static const auto described = function_of<int (*)(const void*, const void**)>("dnnl_primitive_get_primitive_desc");
  static const auto query = function_of<int (*)(const void*, int, int, void*)>("dnnl_primitive_desc_query");
  constexpr int kPrimitiveKind = 2;  // what to ask for
  const void* description = nullptr;
  int kind = 0;
  if (described(primitive, &description) != 0 || query(description, kPrimitiveKind, 0, &kind) != 0) return Kind::other;
  constexpr int kConvolution = 5, kTransposed = 6;
  const int inner_product = query3() == nullptr ? 13 : 10, matmul = query3() == nullptr ? 18 : 14;
  if (kind == kConvolution || kind == kTransposed) return Kind::convolution;
  return kind == inner_product || kind == matmul ? Kind::product : Kind::other;
}

}  // namespace stoker::faulty
