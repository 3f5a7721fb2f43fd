// SPDX-License-Identifier: Apache-2.0
#include "data/container/hdf5_type.h"

#include <algorithm>
#include <limits>

#include "core/format.h"

namespace stoker::data {
namespace {

/// IEEE 754 binary16: 1 sign bit, 5 of exponent with bias 15, 10 of mantissa.
bool is_half(hid_t type) {
  const Hdf5Handle half(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  H5Tset_fields(half.id(), 15, 10, 5, 0, 10);
  H5Tset_size(half.id(), 2);
  H5Tset_ebias(half.id(), 15);
  return H5Tequal(type, half.id()) > 0;
}

}  // namespace

bool hdf5_element(hid_t type, Element& element) {
  if (H5Tequal(type, H5T_STD_U8LE) > 0 || H5Tequal(type, H5T_STD_U8BE) > 0) {
    element = Element::uint8;
  } else if (H5Tequal(type, H5T_IEEE_F32LE) > 0) {
    element = Element::float32;
  } else if (is_half(type)) {
    element = Element::float16;
  } else {
    return false;
  }
  return true;
}

std::string hdf5_type_text(hid_t type) {
  const size_t bits = 8 * H5Tget_size(type);
  const char* const order = bits > 8 && H5Tget_order(type) == H5T_ORDER_BE ? "big-endian " : "";
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: return core::format("{}{}int{}", order, H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
    case H5T_FLOAT:
      return core::format("{}{}{}", order,
                          bits != 16 || is_half(type) || *order != 0 ? "float" : "another kind of float", bits);
    case H5T_ENUM: return "enum (bool)";
    case H5T_STRING: return "string";
    case H5T_COMPOUND: return "compound";
    case H5T_VLEN: return "variable-length";
    case H5T_ARRAY: return "array";
    default: return "another type";
  }
}

std::vector<int64_t> hdf5_dims(hid_t data_set) {
  const Hdf5Handle space(H5Dget_space(data_set), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (rank < 1 || rank > kMaxRank || H5Sget_simple_extent_type(space.id()) != H5S_SIMPLE) return {};
  hsize_t sides[kMaxRank] = {};
  H5Sget_simple_extent_dims(space.id(), sides, nullptr);
  std::vector<int64_t> dims;
  for (int i = 0; i < rank; ++i) {
    dims.push_back(static_cast<int64_t>(std::min<hsize_t>(sides[i], std::numeric_limits<int64_t>::max())));
  }
  return dims;
}

std::string sides_text(const std::vector<int64_t>& sides) {
  std::string text = "[";
  for (size_t i = 0; i < sides.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(sides[i]);
  return text + "]";
}

std::string hdf5_library_words() {
  std::string words;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned depth, const H5E_error2_t* error, void* out) -> herr_t {
        if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &words);
  return core::printable(words);
}

bool hdf5_object_address(hid_t data_set, uint64_t& address) {
#if H5_VERSION_GE(1, 12, 0)
  H5O_info1_t info;
  const herr_t result = H5Oget_info1(data_set, &info);
#else
  H5O_info_t info;
  const herr_t result = H5Oget_info(data_set, &info);
#endif
  if (result < 0 || info.addr == HADDR_UNDEF) return false;
  address = info.addr;
  return true;
}

}  // namespace stoker::data
