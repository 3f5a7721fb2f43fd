// SPDX-License-Identifier: Apache-2.0
// Files of weights in memory, and why one is refused.
#pragma once

#include <memory>
#include <string>

#include "core/error.h"
#include "tests/weights/made_pickle.h"
#include "tests/weights/made_zip.h"
#include "weights/file/weight_file.h"

namespace stoker::fixtures {

/// Owns what it reads.
class OwnedBytes : public data::ByteReader {
 public:
  explicit OwnedBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  void read(uint64_t at, void* bytes, uint64_t count) const override {
    bytes_.copy(static_cast<char*>(bytes), count, at);
  }

 private:
  std::string bytes_, name_ = "w.pth";
};

inline weights::WeightFile opened(const std::string& bytes) {
  return weights::open_weight_file(std::make_shared<OwnedBytes>(bytes));
}

/// The bytes of every storage; throws where one is damaged.
inline std::string all_storages(const weights::WeightFile& file) {
  std::string all;
  for (size_t i = 0; i < file.storages.size(); ++i) {
    std::string bytes(file.storages[i].bytes, '\0');
    file.read_storage(i, bytes.data());
    all += bytes;
  }
  return all;
}

/// The message of the error that ends the reading of a file and all its storages; "accepted" when there is none.
inline std::string refusal(const std::string& bytes) {
  try {
    all_storages(opened(bytes));
  } catch (const core::Error& error) {
    return error.kind() == core::ErrorKind::data ? error.what()
                                                 : "an error of another kind: " + std::string(error.what());
  }
  return "accepted";
}

/// An archive of torch.save() around a pickle, with one storage "0" of 8 bytes.
inline std::string zip_around(const std::string& pickle) {
  return made_zip({{"w/data.pkl", pickle}, {"w/data/0", "abcdefgh"}});
}

/// Two numbers in storage "0".
inline MadeTensor two_numbers() { return {"a", weights::NumberType::f32, {2}, {}, "abcdefgh", "0"}; }

/// A state dict of one tensor.
inline std::string zip_of(const MadeTensor& tensor) { return zip_around(state_dict_pickle({tensor})); }

}  // namespace stoker::fixtures
