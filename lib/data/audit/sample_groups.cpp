// SPDX-License-Identifier: Apache-2.0
#include "data/audit/sample_groups.h"

#include <algorithm>
#include <numeric>

namespace stoker::data {

SampleGroups::SampleGroups(int64_t samples) : parent_(static_cast<size_t>(samples)) {
  std::iota(parent_.begin(), parent_.end(), int64_t{0});
}

int64_t SampleGroups::root_of(int64_t sample) {
  while (parent_[static_cast<size_t>(sample)] != sample) {
    int64_t& above = parent_[static_cast<size_t>(sample)];
    above = parent_[static_cast<size_t>(above)];
    sample = above;
  }
  return sample;
}

void SampleGroups::join(int64_t a, int64_t b) {
  const int64_t first = root_of(a), second = root_of(b);
  parent_[static_cast<size_t>(std::max(first, second))] = std::min(first, second);
}

std::vector<std::vector<int64_t>> SampleGroups::of_several() {
  std::vector<std::vector<int64_t>> groups;
  std::vector<int64_t> group_of(parent_.size(), -1);  // of a root
  for (int64_t i = 0; i < static_cast<int64_t>(parent_.size()); ++i) {
    const int64_t root = root_of(i);
    if (root == i) continue;
    int64_t& group = group_of[static_cast<size_t>(root)];
    if (group < 0) {
      group = static_cast<int64_t>(groups.size());
      groups.push_back({root});
    }
    groups[static_cast<size_t>(group)].push_back(i);
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

}  // namespace stoker::data
