// SPDX-License-Identifier: Apache-2.0
// The order in which the parts of an update are added: a binary tree that depends on their number alone, so that the
// bits of a sum do not depend on who computes which part. Part s is added to part s + h, where h is half of the parts,
// then a quarter of them, down to 1; where their number is no power of two, it counts as the next one, without the
// parts that there are not.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace stoker::engine {

/// The parts [0, count) in an order in which two that are added come one after the other: each with its partner, each
/// pair with its partner, and so on. As many as the next power of two; those from `count` on are not there.
inline std::vector<int64_t> tree_places(int64_t count) {
  std::vector<int64_t> places = {0};
  for (int64_t step = 1; step < count; step *= 2) {
    std::vector<int64_t> pairs;
    for (const int64_t place : places) {
      pairs.push_back(place);
      pairs.push_back(place + step);
    }
    places = std::move(pairs);
  }
  return places;
}

/// Adds parts that come in the order of tree_places(). Keeps as many open sums as the tree has levels.
template <typename Part>
class TreeSum {
 public:
  using Add = std::function<Part(Part, Part)>;  ///< must be commutative to the bit, as + of floats is

  TreeSum(int64_t count, Add add) : places_(tree_places(count)), count_(count), add_(std::move(add)) {}

  /// The next part.
  void add(Part part) {
    skip_absent();
    put(std::move(part));
  }
  /// Once all `count` parts are there.
  Part total() {
    skip_absent();
    return std::move(*open_.front());
  }

 private:
  void skip_absent() {
    while (next_ < places_.size() && places_[next_] >= count_) put(std::nullopt);
  }
  void put(std::optional<Part> part) {
    open_.push_back(std::move(part));
    ++next_;
    for (size_t number = next_; number % 2 == 0; number /= 2) {  // as a binary counter carries
      std::optional<Part> right = std::move(open_.back());
      open_.pop_back();
      std::optional<Part>& left = open_.back();
      if (left && right) {
        left = add_(std::move(*left), std::move(*right));
      } else if (right) {
        left = std::move(right);
      }
    }
  }

  const std::vector<int64_t> places_;
  const int64_t count_;
  const Add add_;
  size_t next_ = 0;
  std::vector<std::optional<Part>> open_;
};

}  // namespace stoker::engine
