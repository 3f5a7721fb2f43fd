// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "core/format.h"
#include "data/archive/inflate.h"
#include "data/archive/pickle_reader.h"
#include "data/archive/zip_directory.h"
#include "weights/file/state_dict.h"
#include "weights/file/torch_files.h"

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

}  // namespace stoker::weights
