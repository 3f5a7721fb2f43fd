// SPDX-License-Identifier: Apache-2.0
// Groups of samples that grow together pair by pair (union-find).
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::data {

class SampleGroups {
 public:
  /// Every sample is alone.
  explicit SampleGroups(int64_t samples);

  void join(int64_t a, int64_t b);
  bool are_joined(int64_t a, int64_t b) { return root_of(a) == root_of(b); }
  /// Groups of two or more, each ascending, in the order of their first members.
  std::vector<std::vector<int64_t>> of_several();

 private:
  int64_t root_of(int64_t sample);

  std::vector<int64_t> parent_;  ///< a root is its own; always the smallest member
};

}  // namespace stoker::data
