// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/error.h"
#include "core/format.h"
#include "data/archive/pickle_reader.h"
#include "weights/file/state_dict.h"
#include "weights/file/torch_files.h"

namespace stoker::weights {
namespace {

using data::read_pickle;

using core::format;

constexpr uint64_t kMaxPickles = 32 << 20;  // bytes
// The first pickle: an integer of ten bytes, 0x1950a86a20f9469cfc6c.
constexpr std::string_view kMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
constexpr int64_t kProtocol = 1001;

/// Five pickles (a magic number, a version, the machine, the object, the keys of storages in order), then of each
/// storage the count of its numbers in 8 bytes and the numbers.
class TorchLegacy {
 public:
  explicit TorchLegacy(std::shared_ptr<const data::ByteReader> file)
      : file_(std::move(file)), what_(core::printable(file_->name())) {
    front_.resize(std::min(file_->size(), kMaxPickles));
    file_->read(0, front_.data(), front_.size());
  }

  WeightFile open() {
    at_ = kMagic.size();
    const PickleTree version = next_pickle();
    if (version.at(version.root).kind != ValueKind::integer || version.at(version.root).integer != kProtocol) {
      fail("its version is not 1001");
    }
    require_little_endian(next_pickle());
    const PickleTree object = next_pickle();
    WeightFile weights;
    if (object.at(object.root).kind != ValueKind::dictionary) {  // nothing to look for storages of: it is named
      take_tensors(
          object, what_, [](std::string_view, NumberType, uint64_t) { return size_t{0}; }, weights);
    }
    const PickleTree keys = next_pickle();
    weights.format = "PyTorch file of before 1.6";
    weights.files = {file_};
    // Sizes of storages follow from their types, which the object gives.
    std::unordered_map<std::string_view, NumberType> types;
    for (const PickleValue& value : object.values) {
      if (value.kind != ValueKind::storage) continue;
      const auto [place, is_new] = types.emplace(value.text, value.number_type);
      if (!is_new && place->second != value.number_type) fail("one of its storages has two types");
    }
    const std::unordered_map<std::string_view, size_t> places = find_storages(keys, types, weights);
    take_tensors(
        object, what_,
        [&](std::string_view key, NumberType, uint64_t bytes) {
          const auto place = places.find(key);
          if (place == places.end()) fail("its storage " + core::printable(key) + " is missing");
          const Storage& storage = weights.storages[place->second];
          if (storage.bytes != bytes) {
            fail(format("its storage {} has {} bytes instead of {}", core::printable(key), storage.bytes, bytes));
          }
          return place->second;
        },
        weights);
    return weights;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw core::Error(core::ErrorKind::data, what_ + ": " + reason, "copy the file again");
  }

  PickleTree next_pickle() {
    uint64_t consumed = 0;
    PickleTree tree = read_pickle(std::string_view(front_).substr(at_), what_, consumed);
    at_ += consumed;
    return tree;
  }

  void require_little_endian(const PickleTree& machine) const {
    const PickleValue& facts = machine.at(machine.root);
    if (!machine.opaque_names.empty()) {
      fail("it names " + machine.opaque_names.front() + " where its machine should be described; nothing is run");
    }
    if (facts.kind != ValueKind::dictionary) fail("its description of the machine is damaged");
    for (size_t i = 0; i + 1 < facts.items.size(); i += 2) {
      const PickleValue& value = machine.at(facts.items[i + 1]);
      if (machine.at(facts.items[i]).text != "little_endian") continue;
      if (value.kind == ValueKind::boolean && value.integer == 1) return;
    }
    fail("its numbers are not little-endian");
  }

  std::unordered_map<std::string_view, size_t> find_storages(
      const PickleTree& keys, const std::unordered_map<std::string_view, NumberType>& types,
      WeightFile& weights) const {
    const PickleValue& list = keys.at(keys.root);
    if (list.kind != ValueKind::list) fail("its list of storages is damaged");
    std::unordered_map<std::string_view, size_t> places;
    uint64_t at = at_;
    for (const ValueIndex index : list.items) {
      const auto type = types.find(keys.at(index).text);
      if (keys.at(index).kind != ValueKind::text || type == types.end()) fail("it lists a storage that no tensor has");
      uint64_t count = 0, bytes = 0;
      if (file_->size() - at < sizeof count) fail("it was cut short");
      file_->read(at, &count, sizeof count);
      at += sizeof count;
      if (__builtin_mul_overflow(count, bytes_of(type->second), &bytes) || bytes > file_->size() - at) {
        fail(format("it was cut short: its storage {} should have {} numbers", core::printable(type->first), count));
      }
      if (!places.emplace(type->first, weights.storages.size()).second) fail("it lists a storage twice");
      weights.storages.push_back({0, at, bytes, bytes, false, 0});
      at += bytes;
    }
    return places;
  }

  std::shared_ptr<const data::ByteReader> file_;
  std::string what_;
  std::string front_;  // of the file
  uint64_t at_ = 0;
};

}  // namespace

bool is_torch_legacy(const data::ByteReader& file) {
  char begin[kMagic.size()] = {};
  if (file.size() >= sizeof begin) file.read(0, begin, sizeof begin);
  return std::string_view(begin, sizeof begin) == kMagic;
}

WeightFile open_torch_legacy(std::shared_ptr<const data::ByteReader> file) {
  return TorchLegacy(std::move(file)).open();
}

}  // namespace stoker::weights
