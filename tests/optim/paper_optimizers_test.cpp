// SPDX-License-Identifier: Apache-2.0
// Optimizers that LibTorch lacks, against plain arithmetic in double precision, written from their papers.
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <map>

#include "optim/optimizer.h"
#include "optim/torch_kernels.h"

namespace stoker::optim {
namespace {

using config::OptimizerKind;
using Numbers = std::vector<double>;

constexpr int64_t kUpdates = 20;
constexpr double kLr = 0.01, kDecay = 0.05;

/// One parameter and its state.
struct Plain {
  int64_t rows = 1, columns = 1;  ///< as a matrix; rows 1: a norm or bias
  bool decays = true, is_classifier = false;
  Numbers weight, first, second;
  double product = 1;  ///< product of NAdam's momenta
};

struct Rates {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, momentum = 0.9;
};

double norm_of(const Numbers& numbers) {
  double sum = 0;
  for (const double x : numbers) sum += x * x;
  return std::sqrt(sum);
}

/// Kingma & Ba 2015 with decoupled decay (Loshchilov & Hutter 2019).
void plain_adamw(Plain& p, const Numbers& g, int64_t t, const Rates& r) {
  for (size_t i = 0; i < g.size(); ++i) {
    p.weight[i] *= 1 - (p.decays ? kLr * kDecay : 0);
    p.first[i] = r.beta1 * p.first[i] + (1 - r.beta1) * g[i];
    p.second[i] = r.beta2 * p.second[i] + (1 - r.beta2) * g[i] * g[i];
    const double m = p.first[i] / (1 - std::pow(r.beta1, t)), v = p.second[i] / (1 - std::pow(r.beta2, t));
    p.weight[i] -= kLr * m / (std::sqrt(v) + r.eps);
  }
}

/// Dozat 2016, with the schedule of the momentum that Keras and PyTorch have.
void plain_nadam(Plain& p, const Numbers& g, int64_t t, const Rates& r) {
  const auto mu = [&](double at) { return r.beta1 * (1 - 0.5 * std::pow(0.96, 0.004 * at)); };
  const double now = mu(static_cast<double>(t)), next = mu(static_cast<double>(t + 1));
  p.product *= now;
  for (size_t i = 0; i < g.size(); ++i) {
    const double gradient = g[i] + (p.decays ? kDecay * p.weight[i] : 0);
    p.first[i] = r.beta1 * p.first[i] + (1 - r.beta1) * gradient;
    p.second[i] = r.beta2 * p.second[i] + (1 - r.beta2) * gradient * gradient;
    const double m = next * p.first[i] / (1 - p.product * next) + (1 - now) * gradient / (1 - p.product);
    p.weight[i] -= kLr * m / (std::sqrt(p.second[i] / (1 - std::pow(r.beta2, t))) + r.eps);
  }
}

/// Chen et al. 2023, algorithm 2.
void plain_lion(Plain& p, const Numbers& g, int64_t, const Rates& r) {
  for (size_t i = 0; i < g.size(); ++i) {
    const double c = r.beta1 * p.first[i] + (1 - r.beta1) * g[i];
    const double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
    p.weight[i] -= kLr * (sign + (p.decays ? kDecay * p.weight[i] : 0));
    p.first[i] = r.beta2 * p.first[i] + (1 - r.beta2) * g[i];
  }
}

/// You et al. 2020, algorithm 2.
void plain_lamb(Plain& p, const Numbers& g, int64_t t, const Rates& r) {
  Numbers step(g.size());
  for (size_t i = 0; i < g.size(); ++i) {
    p.first[i] = r.beta1 * p.first[i] + (1 - r.beta1) * g[i];
    p.second[i] = r.beta2 * p.second[i] + (1 - r.beta2) * g[i] * g[i];
    const double m = p.first[i] / (1 - std::pow(r.beta1, t)), v = p.second[i] / (1 - std::pow(r.beta2, t));
    step[i] = m / (std::sqrt(v) + r.eps) + (p.decays ? kDecay * p.weight[i] : 0);
  }
  const double weight = norm_of(p.weight), length = norm_of(step);
  const double ratio = p.decays && weight > 0 && length > 0 ? weight / length : 1;
  for (size_t i = 0; i < g.size(); ++i) p.weight[i] -= kLr * ratio * step[i];
}

/// rows x inner times inner x columns
Numbers product_of(const Numbers& a, const Numbers& b, int64_t rows, int64_t inner, int64_t columns) {
  Numbers c(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < inner; ++k) {
      for (int64_t j = 0; j < columns; ++j) {
        c[static_cast<size_t>(i * columns + j)] +=
            a[static_cast<size_t>(i * inner + k)] * b[static_cast<size_t>(k * columns + j)];
      }
    }
  }
  return c;
}

Numbers turned(const Numbers& a, int64_t rows, int64_t columns) {
  Numbers b(a.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      b[static_cast<size_t>(j * rows + i)] = a[static_cast<size_t>(i * columns + j)];
    }
  }
  return b;
}

/// Jordan et al. 2024 with Nesterov's momentum; steps as large as AdamW's (Liu et al. 2025).
void plain_muon(Plain& p, const Numbers& g, int64_t t, const Rates& r) {
  if (p.rows == 1 || p.is_classifier) return plain_adamw(p, g, t, r);
  Numbers x(g.size());
  for (size_t i = 0; i < g.size(); ++i) {
    p.first[i] = r.momentum * p.first[i] + (1 - r.momentum) * g[i];
    x[i] = (1 - r.momentum) * g[i] + r.momentum * p.first[i];
  }
  const double length = norm_of(x);
  for (double& value : x) value /= length;
  for (int k = 0; k < 5; ++k) {
    const Numbers a = product_of(x, turned(x, p.rows, p.columns), p.rows, p.columns, p.rows);
    Numbers b = product_of(a, a, p.rows, p.rows, p.rows);
    for (size_t i = 0; i < b.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * b[i];
    const Numbers bx = product_of(b, x, p.rows, p.rows, p.columns);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + bx[i];
  }
  const double size = 0.2 * std::sqrt(static_cast<double>(std::max(p.rows, p.columns)));
  for (size_t i = 0; i < x.size(); ++i) p.weight[i] -= kLr * (kDecay * p.weight[i] + size * x[i]);
}

using PlainStep = std::function<void(Plain&, const Numbers&, int64_t, const Rates&)>;

struct Case {
  OptimizerKind kind;
  PlainStep step;
  Rates rates;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{OptimizerKind::nadam, plain_nadam, {}},
                                        {OptimizerKind::lion, plain_lion, {0.9, 0.99, 1e-8, 0.9}},
                                        {OptimizerKind::lamb, plain_lamb, {0.9, 0.999, 1e-6, 0.9}},
                                        {OptimizerKind::muon, plain_muon, {0.9, 0.999, 1e-8, 0.95}}};
  return all;
}

config::ResolvedOptimOptions options_of(const Case& one) {
  config::ResolvedOptimOptions options;
  options.opt = one.kind;
  options.weight_decay = kDecay;
  options.beta1 = one.rates.beta1;
  options.beta2 = one.rates.beta2;
  options.eps = one.rates.eps;
  options.momentum = one.rates.momentum;
  return options;
}

/// A wide and a tall matrix, a convolution, a bias, a classifier.
std::vector<NamedParameter> parameters() {
  torch::manual_seed(3);
  std::vector<NamedParameter> all;
  const auto add = [&](const char* name, at::IntArrayRef sizes) {
    all.push_back({name, torch::randn(sizes).requires_grad_()});
  };
  add("wide", {4, 9});
  add("tall", {8, 3});
  add("conv", {6, 2, 3, 3});
  add("bias", {7});
  add("classifier", {3, 5});
  all.back().is_classifier = true;
  return all;
}

Numbers numbers_of(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.detach().to(torch::kFloat64).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

torch::Tensor gradient_of(const torch::Tensor& like, int64_t update, size_t index) {
  torch::manual_seed(static_cast<uint64_t>(100 * update) + index);
  return torch::randn(like.sizes());
}

TEST(PaperOptimizersTest, TwentyUpdatesAreThoseOfThePaper) {
  for (const Case& one : cases()) {
    const std::vector<NamedParameter> ours = parameters();
    std::vector<Plain> theirs;
    for (const NamedParameter& parameter : ours) {
      const torch::Tensor& of = parameter.tensor;
      const bool is_matrix = of.dim() > 1;
      const Numbers weight = numbers_of(of), zeros(weight.size());
      theirs.push_back({is_matrix ? of.size(0) : 1, is_matrix ? of.numel() / of.size(0) : of.numel(), is_matrix,
                        parameter.is_classifier, weight, zeros, zeros});
    }
    Optimizer optimizer(ours, options_of(one));
    for (int64_t update = 0; update < kUpdates; ++update) {
      for (size_t i = 0; i < ours.size(); ++i) {
        const torch::Tensor gradient = gradient_of(ours[i].tensor, update, i);
        one.step(theirs[i], numbers_of(gradient), update + 1, one.rates);
        ours[i].tensor.mutable_grad() = gradient;
      }
      optimizer.step(kLr);
    }
    for (size_t i = 0; i < ours.size(); ++i) {
      const Numbers weight = numbers_of(ours[i].tensor);
      for (size_t k = 0; k < weight.size(); ++k) {
        const double wanted = theirs[i].weight[k];
        ASSERT_NEAR(weight[k], wanted, 1e-6 * (1 + std::abs(wanted))) << static_cast<int>(one.kind) << ours[i].name;
      }
    }
  }
}

TEST(PaperOptimizersTest, ListsOfDevicesMoveAsOneParameterAfterAnother) {
  for (const Case& one : cases()) {
    const std::vector<NamedParameter> single = parameters(), listed = parameters();
    Optimizer of_single(single, options_of(one)), of_listed(listed, options_of(one));
    for (int64_t update = 0; update < 3; ++update) {
      for (size_t i = 0; i < single.size(); ++i) {
        single[i].tensor.mutable_grad() = gradient_of(single[i].tensor, update, i);
        listed[i].tensor.mutable_grad() = gradient_of(single[i].tensor, update, i);
      }
      of_single.step(kLr);
      const DeviceKernelsScope as_on_devices;
      of_listed.step(kLr);
    }
    for (size_t i = 0; i < single.size(); ++i) {
      EXPECT_TRUE(torch::allclose(single[i].tensor, listed[i].tensor, 1e-6, 1e-6)) << single[i].name;
    }
  }
}

TEST(PaperOptimizersTest, MuonsStepsAreOrthogonalAndLeaveTheClassifierToAdam) {
  const Case& muon = cases().back();
  config::ResolvedOptimOptions options = options_of(muon);
  options.weight_decay = 0;
  const std::vector<NamedParameter> ours = parameters();
  std::vector<torch::Tensor> before;
  for (size_t i = 0; i < ours.size(); ++i) {
    before.push_back(ours[i].tensor.detach().clone());
    ours[i].tensor.mutable_grad() = gradient_of(ours[i].tensor, 0, i);
  }
  Optimizer(ours, options).step(1.0);
  const torch::Tensor step = (before[0] - ours[0].tensor.detach()) / (0.2 * 3);
  const torch::Tensor square = step.mm(step.t());
  EXPECT_LT((square - torch::eye(4)).abs().max().item<double>(), 0.6) << "singular values between 0.7 and 1.2";
  const torch::Tensor of_classifier = (before[4] - ours[4].tensor.detach()).abs();
  EXPECT_TRUE(torch::allclose(of_classifier, torch::ones({3, 5}), 1e-3, 1e-3)) << "Adam's first step is the rate";
}

}  // namespace
}  // namespace stoker::optim
