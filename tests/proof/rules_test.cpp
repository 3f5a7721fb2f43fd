// SPDX-License-Identifier: Apache-2.0
// Each operator with a rule: right results are called right, planted errors wrong.
#include "proof/rules/rules.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <ostream>

#include "proof/operation/capture.h"
#include "proof/operation/replay.h"

namespace stoker::proof {
namespace {

namespace F = torch::nn::functional;
using torch::Tensor;

struct Pass {
  const char* name;
  std::function<Tensor(const Tensor& x)> compute;  ///< function of x [n, 8, 12, 10]
};
void PrintTo(const Pass& pass, std::ostream* out) { *out << pass.name; }

Tensor weight(at::IntArrayRef sizes, const Tensor& like) {
  return torch::rand(sizes, like.options()).sub(0.5).requires_grad_();
}

const Pass kPasses[] = {
    {"Convolution",
     [](const Tensor& x) {
       return at::conv2d(x, weight({6, 8, 3, 3}, x), weight({6}, x), 2, 1);
     }},
    {"GroupedConvolution",
     [](const Tensor& x) {
       return at::conv2d(x, weight({8, 1, 5, 3}, x), {}, 1, {2, 1}, 1, /*groups=*/8);
     }},
    {"DilatedConvolution",
     [](const Tensor& x) {
       return at::conv2d(x, weight({4, 8, 3, 3}, x), {}, 1, 2, /*dilation=*/2);
     }},
    {"TransposedConvolution",
     [](const Tensor& x) {
       return at::conv_transpose2d(x.to(at::kFloat), weight({8, 3, 3, 3}, x).to(at::kFloat), {}, 2, 1, 1);
     }},
    {"Linear",
     [](const Tensor& x) {
       return at::linear(x.flatten(1), weight({7, 960}, x), weight({7}, x));
     }},
    {"BatchedProduct", [](const Tensor& x) { return at::matmul(x, x.transpose(2, 3)); }},
    {"BatchNorm",
     [](const Tensor& x) {
       const auto floats = x.options().dtype(at::kFloat);
       return at::batch_norm(x, weight({8}, torch::empty({0}, floats)), weight({8}, torch::empty({0}, floats)),
                             torch::zeros({8}, floats), torch::ones({8}, floats), true, 0.1, 1e-5, true);
     }},
    {"MaxPooling", [](const Tensor& x) { return at::max_pool2d(x, 3, 2, 1); }},
    {"AveragePooling", [](const Tensor& x) { return at::avg_pool2d(x, 2); }},
    {"GlobalAverage",
     [](const Tensor& x) {
       return at::adaptive_avg_pool2d(x, {1, 1});
     }},
    {"Gelu", [](const Tensor& x) { return at::gelu(x); }},
    {"Softmax", [](const Tensor& x) { return at::softmax(x, -1); }},
};

class RulesTest : public ::testing::TestWithParam<std::tuple<Pass, bool, bool>> {
 protected:
  std::vector<Operation> operations() const {
    const auto& [pass, is_reduced, is_last] = GetParam();
    const auto format = is_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    const Tensor x = torch::rand({3, 8, 12, 10}).sub(0.5).to(is_reduced ? at::kBFloat16 : at::kFloat);
    const Tensor input = x.contiguous(format).requires_grad_();
    const auto& compute = pass.compute;
    return captured(
        [&] {
          const Tensor y = compute(input);
          y.backward(torch::ones_like(y));
        },
        [](const Operation&) {});
  }
};

/// Whether LibTorch leaves this bfloat16 pass to its own loops, as on CPUs without AVX-512, which round sums to
/// bfloat16 and are called wrong, as they are.
bool has_rounded_sums(const std::string& pass) {
  const bool is_onednns = pass == "Linear" || pass.find("Convolution") != std::string::npos;
  return is_onednns && !(__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                         __builtin_cpu_supports("avx512dq"));
}

TEST_P(RulesTest, RightResultsAreCalledRight) {
  if (std::get<1>(GetParam()) && has_rounded_sums(std::get<0>(GetParam()).name)) GTEST_SKIP() << "no AVX-512";
  const auto operations = this->operations();
  EXPECT_GE(operations.size(), 1U);
  for (const Operation& operation : operations) {
    ReplaySettings settings;
    settings.seed = 7;
    settings.compares_all = true;
    const Finding finding = replayed(operation, settings);
    EXPECT_TRUE(finding.is_right) << key_of(operation) << ": " << finding.fault;
  }
}

/// Which results differ in the sample, after those in `planted` were changed.
bool is_found(const Operation& operation, const std::function<void(Tensor& result)>& plant) {
  const torch::NoGradGuard no_gradients;
  const Rule& rule = *rule_of(operation.name);
  auto arguments = with_noise(operation, 7);
  if (rule.prepare) rule.prepare(arguments);
  auto results = arguments;
  c10::Dispatcher::singleton()
      .findSchemaOrThrow(operation.name.c_str(), operation.overload.c_str())
      .callBoxed(&results);
  for (c10::IValue& result : results) {
    if (!result.isTensor() || !result.toTensor().defined() || !result.toTensor().is_floating_point()) continue;
    Tensor changed = result.toTensor().clone();
    plant(changed);
    result = changed;
  }
  Comparison comparison(7);
  rule.compare(arguments, results, comparison);
  return !comparison.is_right();
}

TEST_P(RulesTest, ASmallErrorInAQuarterOfTheElementsIsFound) {
  const auto& [pass, is_reduced, is_last] = GetParam();
  // Sums that LibTorch itself makes in bfloat16 have no digits left for this: see the rules.
  if (is_reduced && std::string(pass.name) == "GlobalAverage") GTEST_SKIP() << "LibTorch rounds its sums to bfloat16";
  const double error = is_reduced ? 0x1p-6 : 0x1p-10;
  for (const Operation& operation : operations()) {
    const bool found = is_found(operation, [&](Tensor& result) {
      const Tensor chosen = torch::rand(result.sizes()) < 0.25;
      result.mul_(1 + error * chosen.to(result.scalar_type()));
    });
    EXPECT_TRUE(found) << key_of(operation);
  }
}

TEST_P(RulesTest, OneChannelOfZerosIsFound) {
  for (const Operation& operation : operations()) {
    const bool found = is_found(operation, [&](Tensor& result) {
      if (result.dim() > 1) result.select(1, result.size(1) / 2).zero_();
    });
    EXPECT_TRUE(found) << key_of(operation);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, RulesTest,
                         ::testing::Combine(::testing::ValuesIn(kPasses), ::testing::Bool(), ::testing::Bool()),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) +
                                  (std::get<1>(test.param) ? "InBfloat16" : "InFloat32") +
                                  (std::get<2>(test.param) ? "ChannelsLast" : "");
                         });

}  // namespace
}  // namespace stoker::proof
