// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/subset_source.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/hash.h"
#include "data/forwarding_source.h"

namespace stoker::data {
namespace {

/// Samples of another source, at rising indices.
class SubsetSource : public ForwardingSource {
 public:
  SubsetSource(std::shared_ptr<const Source> whole, std::vector<uint32_t> indices)
      : ForwardingSource(std::move(whole)), indices_(std::move(indices)) {
    core::Hasher hasher;
    hasher.add("subset of " + behind().fingerprint());
    hasher.add(indices_.data(), indices_.size() * sizeof(uint32_t));
    fingerprint_ = hasher.hex();
  }

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  /// The list of the whole is held only once, by both parts of a split: each has its share. A cache serves both.
  SourceMemory memory() const override {
    SourceMemory memory = behind().memory();
    memory.list_bytes = static_cast<int64_t>(indices_.size() * sizeof(uint32_t)) +
                        (size() == 0 ? 0 : memory.list_bytes * size() / behind().size());
    return memory;
  }

 private:
  int64_t index_behind(int64_t index) const override { return indices_[static_cast<size_t>(index)]; }
  std::vector<int64_t> run_ends() const override {
    std::vector<int64_t> ends = ForwardingSource::run_ends();
    for (int64_t& end : ends) end = std::lower_bound(indices_.begin(), indices_.end(), end) - indices_.begin();
    return ends;
  }

  std::vector<uint32_t> indices_;
};

}  // namespace

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out(
    const std::shared_ptr<const Source>& whole, double fraction) {
  std::vector<uint32_t> kept, held;
  for (int64_t i = 0; i < whole->size(); ++i) {
    const double position = static_cast<double>(core::hash64(whole->relative_name(i)) >> 11) * 0x1.0p-53;
    (position < fraction ? held : kept).push_back(static_cast<uint32_t>(i));
  }
  return {std::make_shared<SubsetSource>(whole, std::move(kept)),
          std::make_shared<SubsetSource>(whole, std::move(held))};
}

std::pair<std::shared_ptr<const Source>, std::shared_ptr<const Source>> hold_out_of_each_class(
    const std::shared_ptr<const Source>& whole, double fraction) {
  std::map<int64_t, std::vector<std::pair<uint64_t, uint32_t>>> classes;  // hash and index
  for (int64_t i = 0; i < whole->size(); ++i) {
    classes[whole->label(i)].emplace_back(core::hash64(whole->relative_name(i)), static_cast<uint32_t>(i));
  }
  if (classes.size() < 2) return hold_out(whole, fraction);
  std::vector<uint32_t> kept, held;
  for (auto& entry : classes) {
    auto& samples = entry.second;
    std::sort(samples.begin(), samples.end());
    const auto count = static_cast<int64_t>(samples.size());
    const int64_t wanted = std::llround(fraction * static_cast<double>(count));
    const int64_t taken = count < 2 ? 0 : std::clamp<int64_t>(wanted, 1, count - 1);
    for (int64_t i = 0; i < count; ++i) (i < taken ? held : kept).push_back(samples[static_cast<size_t>(i)].second);
  }
  std::sort(kept.begin(), kept.end());
  std::sort(held.begin(), held.end());
  return {std::make_shared<SubsetSource>(whole, std::move(kept)),
          std::make_shared<SubsetSource>(whole, std::move(held))};
}

std::shared_ptr<const Source> evenly_spaced(const std::shared_ptr<const Source>& whole, int64_t most) {
  if (whole->size() <= most) return whole;
  std::vector<uint32_t> kept;
  for (int64_t i = 0; i < most; ++i) kept.push_back(static_cast<uint32_t>(i * whole->size() / most));
  return std::make_shared<SubsetSource>(whole, std::move(kept));
}

}  // namespace stoker::data
