// SPDX-License-Identifier: Apache-2.0
#include "proof/remedy/own_batch_norm.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/native_batch_norm_cpu_dispatch.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace stoker::proof {
namespace {

constexpr int64_t kRowsOfFloatSum = 64;  // rounded to float32 as often, then to double
constexpr int64_t kRowsOfPart = 4096;    // that one thread adds up: not fewer with more threads, for the same bits

/// For each channel the sum of value(x, channel) over all rows; `rows` is [pixels, channels], contiguous.
template <typename T, typename Value>
std::vector<double> channel_sums(const at::Tensor& rows, const Value& value) {
  const int64_t count = rows.size(0), channels = rows.size(1), parts = (count + kRowsOfPart - 1) / kRowsOfPart;
  std::vector<double> sums(static_cast<size_t>(parts * channels), 0);
  const T* const data = rows.data_ptr<T>();
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> block(static_cast<size_t>(channels));
    for (int64_t part = begin; part < end; ++part) {
      double* const of_part = sums.data() + part * channels;
      const int64_t last = std::min(count, (part + 1) * kRowsOfPart);
      for (int64_t first = part * kRowsOfPart; first < last; first += kRowsOfFloatSum) {
        std::fill(block.begin(), block.end(), 0.F);
        float* const of_block = block.data();
        for (int64_t row = first; row < std::min(last, first + kRowsOfFloatSum); ++row) {
          const T* const x = data + row * channels;
          for (int64_t c = 0; c < channels; ++c) of_block[c] += value(static_cast<float>(x[c]), c);
        }
        for (int64_t c = 0; c < channels; ++c) of_part[c] += of_block[c];
      }
    }
  });
  for (int64_t part = 1; part < parts; ++part) {
    for (int64_t c = 0; c < channels; ++c) {
      sums[static_cast<size_t>(c)] += sums[static_cast<size_t>(part * channels + c)];
    }
  }
  sums.resize(static_cast<size_t>(channels));
  return sums;
}

/// Mean and biased variance of each channel, in double precision.
struct ChannelStatistics {
  at::Tensor mean, variance;
};

ChannelStatistics statistics_of(const at::Tensor& input) {
  const at::Tensor rows = input.detach().movedim(1, -1).reshape({-1, input.size(1)}).contiguous();
  const auto count = static_cast<double>(rows.size(0));
  const auto as_tensor = [](const std::vector<double>& values) { return torch::tensor(values, torch::kDouble); };
  ChannelStatistics result;
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, rows.scalar_type(), "own_batch_norm", [&] {
    result.mean = as_tensor(channel_sums<scalar_t>(rows, [](float x, int64_t) { return x; })) / count;
    const at::Tensor rounded = result.mean.to(at::kFloat);
    const float* const mean = rounded.data_ptr<float>();
    const auto squares = [&](float x, int64_t c) { return (x - mean[c]) * (x - mean[c]); };
    result.variance = as_tensor(channel_sums<scalar_t>(rows, squares)) / count;
    result.variance -= (result.mean - rounded).square();  // about the mean itself
  });
  return result;
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> own_batch_norm(const at::Tensor& input,
                                                              const c10::optional<at::Tensor>& weight,
                                                              const c10::optional<at::Tensor>& bias,
                                                              const c10::optional<at::Tensor>& running_mean,
                                                              const c10::optional<at::Tensor>& running_var,
                                                              double momentum, double eps) {
  const auto [mean, variance] = statistics_of(input);
  const auto type = weight && weight->defined() ? weight->scalar_type() : input.scalar_type();
  const at::Tensor rounded_mean = mean.to(type), rounded_variance = variance.to(type);
  const auto count = static_cast<double>(input.numel() / input.size(1));
  const auto move = [momentum](const c10::optional<at::Tensor>& running, const at::Tensor& now) {
    if (running && running->defined()) running->mul_(1 - momentum).add_(now.to(running->scalar_type()), momentum);
  };
  move(running_mean, mean);
  move(running_var, variance * (count / (count - 1)));
  const at::Tensor output = std::get<0>(at::cpu::native_batch_norm(input, weight, bias, rounded_mean, rounded_variance,
                                                                   /*training=*/false, momentum, eps));
  return {output, rounded_mean, (variance + eps).rsqrt().to(type)};
}

}  // namespace stoker::proof
