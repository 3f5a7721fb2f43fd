// SPDX-License-Identifier: Apache-2.0
// Numbers, texts and tensors as bytes, for ranks of one run, which are the same program on the same kind of machine.
#pragma once

#include <ATen/Functions.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"

namespace stoker::engine {

class MessageWriter {
 public:
  void add(int64_t number) { add_plain(number); }
  void add(double number) { add_plain(number); }
  void add(bool is_so) { add(int64_t{is_so}); }
  void add(const std::string& text) {
    add(static_cast<int64_t>(text.size()));
    bytes_ += text;
  }
  void add(const char* text) = delete;  // would be taken for a bool
  /// A tensor of any device.
  void add(const at::Tensor& tensor) {
    const at::Tensor values = tensor.detach().to(at::kCPU).contiguous();
    add(static_cast<int64_t>(values.scalar_type()));
    add(values.dim());
    for (const int64_t size : values.sizes()) add(size);
    add(std::string(static_cast<const char*>(values.data_ptr()), values.nbytes()));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename Number>
  void add_plain(Number number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  std::string bytes_;
};

/// Reads what a writer has written, in its order. Throws core::Error{bug} for half a message.
class MessageReader {
 public:
  explicit MessageReader(const std::string& bytes) : bytes_(bytes) {}
  bool at_end() const { return at_ == bytes_.size(); }
  int64_t i64() { return plain<int64_t>(); }
  double f64() { return plain<double>(); }
  bool flag() { return i64() != 0; }
  std::string string() {
    const auto size = static_cast<size_t>(i64());
    return {take(size), size};
  }
  at::Tensor tensor() {  ///< on the CPU
    const auto type = static_cast<at::ScalarType>(i64());
    std::vector<int64_t> sizes(static_cast<size_t>(i64()));
    for (int64_t& size : sizes) size = i64();
    const at::Tensor values = at::empty(sizes, type);
    const auto bytes = static_cast<size_t>(i64());
    if (bytes != values.nbytes()) throw core::Error(core::ErrorKind::bug, "another rank sent a tensor of another size");
    std::memcpy(values.data_ptr(), take(bytes), bytes);
    return values;
  }

 private:
  template <typename Number>
  Number plain() {
    Number value = 0;
    std::memcpy(&value, take(sizeof(value)), sizeof(value));
    return value;
  }
  const char* take(size_t size) {
    if (size > bytes_.size() - at_) throw core::Error(core::ErrorKind::bug, "another rank sent half a message");
    at_ += size;
    return bytes_.data() + at_ - size;
  }
  const std::string& bytes_;
  size_t at_ = 0;
};

}  // namespace stoker::engine
