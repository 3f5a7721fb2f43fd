// SPDX-License-Identifier: Apache-2.0
// The order in which the parts of an update are added: a binary tree that depends on their number alone, so that the
// bits of a sum do not depend on who computes which part. Part s is added to part s + h, where h is half of the parts,
// then a quarter of them, down to 1; where their number is no power of two, it counts as the next one, without the
// parts that there are not.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
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

/// Parts on their way to one sum. They may come in any order and from any thread.
template <typename Part>
class TreeSum {
 public:
  using Add = std::function<Part(Part, Part)>;  ///< must be commutative to the bit, as + of floats is

  explicit TreeSum(int64_t count) : count_(count) {
    while (width_ < count) width_ *= 2;
    for (int64_t width = width_; width > 0; width /= 2) slots_.emplace_back(static_cast<size_t>(width));
  }

  /// Part number `place`. With `add`, what can be added now is: that keeps few parts where they come in the order of
  /// tree_places(). Without, it is kept for fold().
  void put(int64_t place, std::optional<Part> part, const Add& add = {}) {
    for (size_t level = 0;; ++level) {
      const int64_t half = (width_ >> level) / 2, partner = place ^ half;
      if (half == 0 || !add || partner < count_) {
        std::optional<Part> other;
        {
          const std::lock_guard<std::mutex> lock(mutex_);
          std::optional<Part>* const found = half == 0 || !add ? nullptr : &slots_[level][static_cast<size_t>(partner)];
          if (!found || !*found) {
            slots_[level][static_cast<size_t>(place)] = std::move(part);
            return;
          }
          other = std::exchange(*found, std::nullopt);
        }
        part = partner < place ? add(std::move(*other), std::move(*part)) : add(std::move(*part), std::move(*other));
      }
      place &= half - 1;
    }
  }

  /// The sum of what `get(part)` gives of each part that is there, once all are; adds no part. May be called for
  /// different things at the same time.
  template <typename Get, typename AddValues>
  auto fold(const Get& get, const AddValues& add) const {
    return fold_from(slots_.size() - 1, 0, get, add);
  }

 private:
  /// Of the parts that are congruent to `place` modulo the width of this level.
  template <typename Get, typename AddValues>
  auto fold_from(size_t level, int64_t place, const Get& get, const AddValues& add) const
      -> decltype(get(std::declval<const Part&>())) {
    if (const std::optional<Part>& part = slots_[level][static_cast<size_t>(place)]) return get(*part);
    const int64_t partner = place + (width_ >> level);
    auto left = fold_from(level - 1, place, get, add);
    return partner < count_ ? add(std::move(left), fold_from(level - 1, partner, get, add)) : left;
  }

  const int64_t count_;
  int64_t width_ = 1;  ///< the next power of two
  std::mutex mutex_;
  std::vector<std::vector<std::optional<Part>>> slots_;  ///< by level, half as many on each as on the one before
};

}  // namespace stoker::engine
