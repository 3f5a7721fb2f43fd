// SPDX-License-Identifier: Apache-2.0
// Elements of a result against what plain loops in double precision give, within the rounding of the type.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace stoker::proof {

/// A sum as plain loops give it. For a sum of products of rounded numbers, `squares` is the sum of the squares of its
/// terms: the rounding errors of any order of adding are about sqrt(terms * squares) times the unit of float32, see
/// Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapter 2.8 and 4.2.
struct Expected {
  double value = 0;
  double squares = 0;
  double terms = 1;
  double intermediate = 0;  ///< magnitude of what may be rounded to the type of the result on the way
  double allowed = 0;       ///< error beyond that of rounding

  void add(double term) {
    value += term;
    squares += term * term;
  }
};

/// Largest relative error of rounding to `type`, and a quarter more; of float32 four times as much: some kernels round
/// on the way.
double rounding(at::ScalarType type);

/// The comparison of one result of an operation ("output", "gradient of the weight"), and the worst of it.
struct Compared {
  std::string what;
  int64_t elements = 0, wrong = 0;
  double worst_ratio = 0;  ///< largest ratio of the error to what rounding may do; above 1: wrong
  double largest_error = 0, largest_expected = 0;
  std::string worst_at;  ///< index of the worst element: "3, 17, 0, 0"

  bool is_right() const { return wrong == 0; }
  /// "output: 12 of 512 elements wrong, off by 37% of the largest value, at (3, 17, 0, 0)"
  std::string text() const;
};

/// Indices of a tensor of `sizes` so that along each dimension each index occurs at least `repeats` times, and the
/// first and the last one of each dimension from `first_spatial` on, the borders of images, several times more.
std::vector<std::vector<int64_t>> sampled_indices(at::IntArrayRef sizes, int64_t repeats, int64_t first_spatial,
                                                  std::mt19937_64& random);

class Numbers;

class Comparison {
 public:
  /// `compares_all`: every element instead of a sample.
  explicit Comparison(uint64_t seed, bool compares_all = false) : random_(seed), compares_all_(compares_all) {}

  /// Compares elements of `result`, a tensor in memory of the host or a device, with what `expect` gives for each of
  /// sampled_indices(), and for those that are NaN: the more the cheaper, `terms` being what one of them sums up.
  /// `result` may be undefined: nothing is compared. Calls `expect` on several threads.
  void compare(const std::string& what, const at::Tensor& result, int64_t terms,
               const std::function<Expected(const int64_t* index)>& expect, int64_t first_spatial = 2);

  const std::vector<Compared>& results() const { return results_; }
  bool is_right() const;

 private:
  void compare_some(const Numbers& numbers, at::ScalarType type, const std::vector<std::vector<int64_t>>& indices,
                    const std::function<Expected(const int64_t* index)>& expect, Compared& compared);

  std::mt19937_64 random_;
  const bool compares_all_;
  std::vector<Compared> results_;
};

/// The numbers of a tensor in memory of the host as float32, with the strides that it has.
class Numbers {
 public:
  explicit Numbers(const at::Tensor& tensor);
  const float* data() const { return data_; }
  int64_t size(int64_t dim) const { return tensor_.size(dim); }
  int64_t stride(int64_t dim) const { return tensor_.stride(dim); }
  int64_t dim() const { return tensor_.dim(); }
  double at(const int64_t* index) const {
    int64_t offset = 0;
    for (int64_t i = 0; i < tensor_.dim(); ++i) offset += index[i] * tensor_.stride(i);
    return data_[offset];
  }

 private:
  at::Tensor tensor_;
  const float* data_ = nullptr;
};

}  // namespace stoker::proof
