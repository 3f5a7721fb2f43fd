// SPDX-License-Identifier: Apache-2.0
// The library's handles and types in our terms. Included by hdf5_file.cpp and hdf5_chunks.cpp alone.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/sample_shape.h"

namespace stoker::data {

/// Owns what the library has opened. A negative id is not open.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() {
    if (is_open()) close_(id_);
  }

  bool is_open() const { return id_ >= 0; }
  hid_t id() const { return id_; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// False for a type that samples cannot have: anything but uint8, IEEE half and single precision,
/// little-endian.
bool hdf5_element(hid_t type, Element& element);
/// "float16", "big-endian int32", "string": for messages.
std::string hdf5_type_text(hid_t type);
/// More dimensions than this are not read.
inline constexpr int kMaxRank = 8;
/// Sides of an open data set; empty for a single value.
std::vector<int64_t> hdf5_dims(hid_t data_set);
/// "[200000, 64, 64]"
std::string sides_text(const std::vector<int64_t>& sides);
/// Where the library got stuck, in its own words.
std::string hdf5_library_words();
/// Where the object header of an open data set lies in the file.
bool hdf5_object_address(hid_t data_set, uint64_t& address);

}  // namespace stoker::data
