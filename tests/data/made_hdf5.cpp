// SPDX-License-Identifier: Apache-2.0
#include "made_hdf5.h"

#include <hdf5.h>

#include <cstring>
#include <stdexcept>

namespace stoker::data {
namespace {

constexpr H5Z_filter_t kLzf = 32000;
size_t pass_through(unsigned, size_t, const unsigned*, size_t bytes, size_t*, void**) { return bytes; }

hid_t type_named(const std::string& name) {
  if (name == "uint8") return H5Tcopy(H5T_STD_U8LE);
  if (name == "int8") return H5Tcopy(H5T_STD_I8LE);
  if (name == "int16") return H5Tcopy(H5T_STD_I16LE);
  if (name == "int64") return H5Tcopy(H5T_STD_I64LE);
  if (name == "float32") return H5Tcopy(H5T_IEEE_F32LE);
  if (name == "float64") return H5Tcopy(H5T_IEEE_F64LE);
  if (name == "big-endian float32") return H5Tcopy(H5T_IEEE_F32BE);
  if (name == "string") {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, 1);
    return type;
  }
  if (name == "bool") {  // as h5py writes it
    const hid_t type = H5Tenum_create(H5T_STD_I8LE);
    const int8_t no = 0, yes = 1;
    H5Tenum_insert(type, "FALSE", &no);
    H5Tenum_insert(type, "TRUE", &yes);
    return type;
  }
  if (name != "float16") throw std::invalid_argument(name);
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 10, 5, 0, 10);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 15);
  return type;
}

std::vector<hsize_t> sizes_of(const std::vector<int64_t>& sides) { return {sides.begin(), sides.end()}; }

hid_t properties_of(const Hdf5Recipe& recipe) {
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  if (!recipe.chunk.empty()) {
    H5Pset_chunk(properties, static_cast<int>(recipe.chunk.size()), sizes_of(recipe.chunk).data());
  }
  if (recipe.shuffle) H5Pset_shuffle(properties);
  if (recipe.deflate) H5Pset_deflate(properties, 4);
  if (recipe.fletcher32) H5Pset_fletcher32(properties);
  if (recipe.lzf) {
    static const H5Z_class2_t lzf = {H5Z_CLASS_T_VERS, kLzf, 1, 1, "lzf", nullptr, nullptr, pass_through};
    H5Zregister(&lzf);
    H5Pset_filter(properties, kLzf, H5Z_FLAG_MANDATORY, 0, nullptr);
  }
  if (recipe.compact) H5Pset_layout(properties, H5D_COMPACT);
  if (!recipe.external_file.empty()) H5Pset_external(properties, recipe.external_file.c_str(), 0, H5F_UNLIMITED);
  return properties;
}

}  // namespace

MadeHdf5::MadeHdf5(const std::string& path, bool latest, uint64_t user_block) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
  if (latest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  H5Pset_userblock(creation, user_block);
  file_ = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
  H5Pclose(access);
  H5Pclose(creation);
  if (file_ < 0) throw std::runtime_error("cannot make " + path);
}

MadeHdf5::~MadeHdf5() { H5Fclose(file_); }

void MadeHdf5::add(const std::string& name, const std::string& type, const std::vector<int64_t>& dims,
                   const Bytes& numbers, const Hdf5Recipe& recipe) {
  const std::vector<hsize_t> any(dims.size(), H5S_UNLIMITED);  // the library cuts no chunk to what may grow
  const hid_t number = type_named(type), space = H5Screate_simple(static_cast<int>(dims.size()), sizes_of(dims).data(),
                                                                  recipe.may_grow ? any.data() : nullptr);
  const hid_t links = H5Pcreate(H5P_LINK_CREATE), properties = properties_of(recipe);
  H5Pset_create_intermediate_group(links, 1);
  const hid_t set = H5Dcreate2(file_, name.c_str(), number, space, links, properties, H5P_DEFAULT);
  if (set < 0) throw std::runtime_error("cannot make data set " + name);
  if (!recipe.leave_unwritten) {
    std::vector<hsize_t> part = sizes_of(dims), begin(dims.size(), 0);
    if (recipe.written >= 0) part[0] = static_cast<hsize_t>(recipe.written);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, begin.data(), nullptr, part.data(), nullptr);
    const hid_t memory = H5Screate_simple(static_cast<int>(dims.size()), part.data(), nullptr);
    H5Dwrite(set, number, memory, space, H5P_DEFAULT, numbers.data());
    H5Sclose(memory);
  }
  H5Dclose(set);
  H5Pclose(properties);
  H5Pclose(links);
  H5Sclose(space);
  H5Tclose(number);
}

void MadeHdf5::add_labels(const std::string& name, const std::vector<int64_t>& labels) {
  Bytes bytes(labels.size() * sizeof(int64_t));
  std::memcpy(bytes.data(), labels.data(), bytes.size());
  add(name, "int64", {static_cast<int64_t>(labels.size())}, bytes);
}

void MadeHdf5::add_virtual(const std::string& name, const std::string& source, const std::vector<int64_t>& dims) {
  const hid_t space = H5Screate_simple(static_cast<int>(dims.size()), sizes_of(dims).data(), nullptr);
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_virtual(properties, space, ".", source.c_str(), space);
  H5Dclose(H5Dcreate2(file_, name.c_str(), H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT));
  H5Pclose(properties);
  H5Sclose(space);
}

Bytes made_numbers(int64_t count, int bytes_each) {
  Bytes bytes(static_cast<size_t>(count * bytes_each));
  uint32_t state = 12345;
  for (size_t i = 0; i < bytes.size(); ++i) {
    state = state * 1664525 + 1013904223;
    bytes[i] = static_cast<uint8_t>(i % 3 == 0 ? state >> 24 : i / 64);  // of which deflate gets something
  }
  return bytes;
}

Bytes floats_of(const std::vector<float>& values) {
  Bytes bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

uint64_t object_header_of(const std::string& path, const std::string& name) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
              set = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
#if H5_VERSION_GE(1, 12, 0)
  H5O_info1_t info;
  H5Oget_info1(set, &info);
#else
  H5O_info_t info;
  H5Oget_info(set, &info);
#endif
  H5Dclose(set);
  H5Fclose(file);
  return info.addr;
}

}  // namespace stoker::data
