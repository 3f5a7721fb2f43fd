// SPDX-License-Identifier: Apache-2.0
#include "weights/file/torch_files.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/format.h"
#include "data/archive/pickle_reader.h"
#include "data/archive/zip_directory.h"
#include "weights/file/opaque_tensors.h"

namespace stoker::weights {
namespace {

using data::read_pickle;
using data::read_stored;
using data::read_zip_directory;
using data::ZipMember;

using core::format;

constexpr uint64_t kMaxPickle = 32 << 20;             // bytes; that of a network with a thousand parameters has 150,000
constexpr uint64_t kMaxInflated = uint64_t{2} << 30;  // bytes of one storage; torch.save() itself deflates nothing
constexpr char kPickleName[] = "data.pkl";

class TorchZip {
 public:
  explicit TorchZip(std::shared_ptr<const data::ByteReader> file)
      : file_(std::move(file)), what_(core::printable(file_->name())), members_(read_zip_directory(*file_)) {}

  WeightFile open() {
    find_root();
    WeightFile weights;
    weights.format = "PyTorch zip archive";
    weights.files = {file_};
    const std::string pickle = content(*find(kPickleName));
    uint64_t consumed = 0;
    const PickleTree tree = read_pickle(pickle, what_, consumed);
    std::unordered_map<std::string, size_t> places;
    uint64_t inflated = 0;  // bytes of all deflated storages
    take_tensors(
        tree, what_,
        [&](std::string_view key, NumberType, uint64_t bytes) {
          const std::string name = "data/" + std::string(key);
          const ZipMember* member = find(name);
          if (member == nullptr) fail("its storage " + core::printable(name) + " is missing", kCopyAgain);
          if (member->bytes != bytes) {
            fail(format("its storage {} has {} bytes instead of {}", core::printable(name), member->bytes, bytes),
                 kCopyAgain);
          }
          if (member->deflated && bytes > kMaxInflated) {
            fail(format("its storage {} inflates to {} bytes, more than is read", core::printable(name), bytes),
                 "save the weights with torch.save(), which deflates nothing");
          }
          const auto [place, is_new] = places.emplace(name, weights.storages.size());
          inflated += is_new && member->deflated ? bytes : 0;
          if (inflated > 2 * kMaxInflated) {
            fail(format("its deflated storages have more than {} bytes together", 2 * kMaxInflated),
                 "save the weights with torch.save(), which deflates nothing");
          }
          if (is_new) weights.storages.push_back(storage(*member));
          return place->second;
        },
        weights);
    return weights;
  }

 private:
  static constexpr char kCopyAgain[] = "copy the file again";

  [[noreturn]] void fail(const std::string& reason, const std::string& hint) const {
    throw core::Error(core::ErrorKind::data, what_ + ": " + reason, hint);
  }

  /// The folder of the archive that everything is in.
  void find_root() {
    const std::string ending = std::string("/") + kPickleName;
    for (const ZipMember& member : members_) {
      const size_t slash = member.name.find('/');
      if (slash == std::string::npos || member.name.substr(slash) != ending) continue;
      if (!root_.empty()) fail("it holds several pickles", kCopyAgain);
      root_ = member.name.substr(0, slash + 1);
    }
    if (root_.empty()) {
      fail("this zip archive was not written by torch.save()", "give a state dict (.pth) or safetensors");
    }
    if (find("constants.pkl") != nullptr) {
      fail("this is a TorchScript program, which would run code when loaded; not read",
           "in Python: torch.save(torch.jit.load(path).state_dict(), 'weights.pth')");
    }
    const ZipMember* order = find("byteorder");
    if (order != nullptr && content(*order) != "little") {
      fail("its numbers are not little-endian", "save it on a machine of the usual byte order");
    }
  }

  const ZipMember* find(const std::string& name) const {
    const std::string full = root_ + name;
    const auto place =
        std::lower_bound(members_.begin(), members_.end(), full,
                         [](const ZipMember& member, const std::string& key) { return member.name < key; });
    return place != members_.end() && place->name == full ? &*place : nullptr;
  }

  static Storage storage(const ZipMember& member) {
    return {0, member.begin, member.stored_bytes, member.bytes, member.deflated, member.checksum};
  }

  std::string content(const ZipMember& member) const {
    if (member.bytes > kMaxPickle) {
      fail(format("its {} has {} bytes, more than a state dict needs", core::printable(member.name), member.bytes),
           "save the weights alone: torch.save(model.state_dict(), 'weights.pth')");
    }
    std::string bytes(member.bytes, '\0');
    read_stored(*file_, storage(member), core::printable(member.name), bytes.data());
    return bytes;
  }

  std::shared_ptr<const data::ByteReader> file_;
  std::string what_;
  std::vector<ZipMember> members_;
  std::string root_;
};

}  // namespace

bool is_torch_zip(const data::ByteReader& file) {
  char begin[4] = {};
  if (file.size() >= sizeof begin) file.read(0, begin, sizeof begin);
  return std::string_view(begin, sizeof begin) == "PK\3\4";
}

WeightFile open_torch_zip(std::shared_ptr<const data::ByteReader> file) { return TorchZip(std::move(file)).open(); }

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

namespace {

using core::format;

constexpr int kDeepest = 5;  // {"optimizer": {"state": {0: {"exp_avg": ...}}}}
constexpr size_t kMaxTensors = 100'000;

[[noreturn]] void fail_state(const std::string& what, const std::string& reason) {
  throw core::Error(
      core::ErrorKind::data, what + ": " + reason,
      "in Python, where the model was made: torch.save(model.state_dict(), 'weights.pth'); a file of a whole "
      "model holds code, which is run by whoever loads it");
}

/// Walks dictionaries in dictionaries, each once.
class Walk {
 public:
  Walk(const PickleTree& tree, const std::string& what, const FindStorage& find_storage)
      : tree_(tree), what_(what), find_storage_(find_storage) {}

  void fill(WeightFile& file) {
    if (tree_.at(tree_.root).kind != ValueKind::dictionary) {
      const bool is_tensor = tree_.at(tree_.root).kind == ValueKind::tensor;
      fail_state(what_,
                 (is_tensor ? "it holds one tensor, not a state dict" : "it holds no dictionary, so no state dict") +
                     opaque_text());
    }
    visit(tree_.root, "", 0);
    refuse_opaque_only();
    if (tensors_.empty()) fail_state(what_, "no tensor is in its dictionaries" + opaque_text());
    file.tensors = std::move(tensors_);
    file.opaque = std::move(opaque_);
    file.passed_over = tree_.opaque_names;
  }

 private:
  void visit(ValueIndex index, const std::string& group, int depth) {
    if (!seen_.insert(index).second) return;
    const std::vector<ValueIndex>& items = tree_.at(index).items;
    std::unordered_map<std::string, size_t> places;  // a later item of the same name takes the place of an earlier one
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      const PickleValue& key = tree_.at(items[i]);
      const PickleValue& value = tree_.at(items[i + 1]);
      const bool is_tensor = value.kind == ValueKind::tensor;
      if (value.kind == ValueKind::opaque && key.kind == ValueKind::text) {
        opaque_.push_back(opaque_entry(tree_, value, group, std::string(key.text)));
      }
      if (!is_tensor && value.kind != ValueKind::dictionary) continue;
      if (key.kind != ValueKind::text && key.kind != ValueKind::integer) continue;
      std::string name = key.kind == ValueKind::text ? std::string(key.text) : std::to_string(key.integer);
      if (is_tensor) {
        const auto [place, is_new] = places.emplace(name, tensors_.size());
        if (is_new && tensors_.size() >= kMaxTensors)
          fail_state(what_, format("it has more than {} tensors", kMaxTensors));
        if (is_new) tensors_.emplace_back();
        tensors_[place->second] = stored(std::move(name), group, value);
      } else if (depth < kDeepest) {
        visit(items[i + 1], group.empty() ? name : group + "." + name, depth + 1);
      }
    }
  }

  /// A state dict of tensors of a subclass, none of them plain. Beside more objects of other kinds they are not the
  /// weights.
  void refuse_opaque_only() const {
    std::vector<OpaqueEntry> tensors;
    for (const OpaqueEntry& entry : opaque_) {
      if (entry.is_tensor) tensors.push_back(entry);
    }
    if (!tensors_.empty() || tensors.empty() || 2 * tensors.size() <= opaque_.size()) return;
    throw core::Error(core::ErrorKind::data, what_ + ": " + opaque_reason(tensors), opaque_hint(tensors));
  }
  /// The values in place of tensors.
  std::string opaque_text() const {
    constexpr size_t kNamed = 5;
    if (tree_.opaque_names.empty()) return "";
    return "; it names " + core::list_text(tree_.opaque_names, kNamed) +
           ", which is not part of a state dict, and nothing in a file is executed";
  }

  StoredTensor stored(std::string name, const std::string& group, const PickleValue& value) {
    const PickledTensor& pickled = tree_.tensor(value);
    const PickleValue& storage = tree_.at(pickled.storage);
    StoredTensor tensor;
    tensor.group = group;
    tensor.name = std::move(name);
    tensor.type = storage.number_type;
    tensor.shape = pickled.shape;
    tensor.strides = pickled.strides;
    tensor.offset = static_cast<uint64_t>(pickled.offset);
    require_inside(tensor, static_cast<uint64_t>(storage.integer));
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(storage.integer), bytes_of(tensor.type), &bytes)) {
      fail_state(what_, shown(tensor) + " has a storage that is too large");
    }
    tensor.storage = find_storage_(storage.text, tensor.type, bytes);
    return tensor;
  }

  static std::string shown(const StoredTensor& tensor) { return "tensor " + core::printable(tensor.name); }

  /// The last number of a view must lie in the storage of `count` numbers, and a view must not repeat numbers so that
  /// it has more than the storage.
  void require_inside(const StoredTensor& tensor, uint64_t count) const {
    uint64_t volume = 1, nonzero = 1, last = tensor.offset;
    bool overflows = false;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      const auto side = static_cast<uint64_t>(tensor.shape[i]), stride = static_cast<uint64_t>(tensor.strides[i]);
      volume *= side;  // fits where that of the sides that are not 0 does
      overflows = overflows || (side != 0 && __builtin_mul_overflow(nonzero, side, &nonzero));
      uint64_t reach = 0;
      overflows = overflows || (side != 0 && __builtin_mul_overflow(side - 1, stride, &reach)) ||
                  __builtin_add_overflow(last, reach, &last);
    }
    if (overflows || nonzero > uint64_t(std::numeric_limits<int64_t>::max())) {
      fail_state(what_, shown(tensor) + " has a shape that is too large");
    }
    if (volume == 0) return;
    if (last >= count) {
      fail_state(what_, format("{} reaches to number {} of a storage of {}", shown(tensor), last, count));
    }
    if (volume > count) fail_state(what_, shown(tensor) + " repeats its storage");
  }

  const PickleTree& tree_;
  const std::string& what_;
  const FindStorage& find_storage_;
  std::unordered_set<ValueIndex> seen_;
  std::vector<StoredTensor> tensors_;
  std::vector<OpaqueEntry> opaque_;
};

}  // namespace

void take_tensors(const PickleTree& tree, const std::string& what, const FindStorage& find_storage, WeightFile& file) {
  Walk(tree, what, find_storage).fill(file);
}

}  // namespace stoker::weights
