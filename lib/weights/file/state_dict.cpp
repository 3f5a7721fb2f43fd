// SPDX-License-Identifier: Apache-2.0
#include "weights/file/state_dict.h"

#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/format.h"

namespace stoker::weights {
namespace {

using core::format;

constexpr int kDeepest = 5;  // {"optimizer": {"state": {0: {"exp_avg": ...}}}}
constexpr size_t kMaxTensors = 100'000;

[[noreturn]] void fail_state(const std::string& what, const std::string& reason) {
  throw core::Error(core::ErrorKind::data, what + ": " + reason,
                    "in Python: torch.save(model.state_dict(), 'weights.pth'); where the file holds the whole model, "
                    "model = torch.load(path, weights_only=False) reads it there");
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
        opaque_.push_back({group, std::string(key.text), name_of(value)});
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

  const std::string& name_of(const PickleValue& opaque) const {
    return tree_.opaque_names.at(static_cast<size_t>(opaque.integer));
  }
  /// What is there in place of tensors.
  std::string opaque_text() const {
    constexpr size_t kNamed = 5;
    if (tree_.opaque_names.empty()) return "";
    return "; it names " + core::list_text(tree_.opaque_names, kNamed) +
           ", which is no part of a state dict, and nothing in a file is run";
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
