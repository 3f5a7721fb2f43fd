// SPDX-License-Identifier: Apache-2.0
// Our gradient of a convolution's weights against LibTorch's in double precision.
#include "model/conv.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "model/conv_kernels.h"
#include "tests/model/channels_last.h"

namespace stoker::model {
namespace {

struct ConvCase {
  int64_t images, in, out, side, kernel, stride, padding;
};

/// For the time that it lives: so that any number of channels goes through the kernels.
class OneThread {
 public:
  OneThread() { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(threads_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int threads_ = at::get_num_threads();
};

struct ConvPass {
  torch::Tensor y, x_gradient, weight_gradient;
};

/// Values are those that bfloat16 holds, whatever the type.
ConvPass run_conv(const ConvCase& c, at::ScalarType type, c10::MemoryFormat weight_format) {
  torch::manual_seed(5);
  const auto drawn = [&](at::IntArrayRef shape) { return channels_last(torch::randn(shape)).to(at::kBFloat16).to(type); };
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(c.in, c.out, c.kernel).stride(c.stride).padding(c.padding).bias(false));
  {
    const torch::NoGradGuard no_gradients;
    conv->weight.set_data(conv->weight.to(at::kBFloat16).to(type == at::kDouble ? type : at::kFloat).contiguous(weight_format));
  }
  const torch::Tensor x = drawn({c.images, c.in, c.side, c.side}).requires_grad_();
  const torch::Tensor y = convolve(conv, x);
  y.backward(drawn(y.sizes()));
  return {y.detach(), x.grad(), conv->weight.grad()};
}

double difference(const torch::Tensor& ours, const torch::Tensor& exact) {
  return ((ours.to(at::kDouble) - exact).abs().max() / exact.abs().max()).item<double>();
}

class ConvTest : public ::testing::TestWithParam<ConvCase> {};

TEST_P(ConvTest, AgreesWithLibTorchInDoublePrecision) {
  if (!has_conv_kernels()) GTEST_SKIP() << "needs a CPU with AVX512-BF16 and without AMX";
  const OneThread one_thread;
  const ConvPass exact = run_conv(GetParam(), at::kDouble, c10::MemoryFormat::Contiguous);
  for (const c10::MemoryFormat format : {c10::MemoryFormat::ChannelsLast, c10::MemoryFormat::Contiguous}) {
    const ConvPass ours = run_conv(GetParam(), at::kBFloat16, format);
    EXPECT_EQ(ours.y.scalar_type(), at::kBFloat16);
    EXPECT_LT(difference(ours.y, exact.y), 1.0 / 128);
    EXPECT_LT(difference(ours.x_gradient, exact.x_gradient), 1.0 / 128);
    EXPECT_EQ(ours.weight_gradient.scalar_type(), at::kFloat);
    EXPECT_LT(difference(ours.weight_gradient, exact.weight_gradient), 1e-5) << "LibTorch's would be rounded to bfloat16";
  }
}

// Odd numbers of images; images that fill several bands, and bands of several images; edges that only some places of the
// kernel see; strides that leave pixels out; out channels that need tiles of each width.
INSTANTIATE_TEST_SUITE_P(Shapes, ConvTest,
                         ::testing::Values(ConvCase{128, 64, 64, 7, 3, 1, 1}, ConvCase{5, 16, 112, 3, 3, 1, 1},
                                           ConvCase{1, 32, 16, 40, 3, 1, 1}, ConvCase{7, 48, 32, 14, 2, 2, 0},
                                           ConvCase{4, 16, 64, 15, 2, 2, 0}, ConvCase{3, 32, 48, 30, 3, 2, 1},
                                           ConvCase{2, 16, 16, 110, 1, 1, 0}, ConvCase{6, 16, 32, 4, 5, 1, 2},
                                           ConvCase{3, 16, 16, 1, 3, 1, 1}));

TEST(ConvKernelsTest, GiveTheSameBitsOnAnyNumberOfThreads) {
  if (!has_conv_kernels()) GTEST_SKIP() << "needs a CPU with AVX512-BF16 and without AMX";
  const torch::Tensor x = channels_last(torch::randn({6, 64, 9, 9})).to(at::kBFloat16);
  const torch::Tensor dy = channels_last(torch::randn({6, 32, 9, 9})).to(at::kBFloat16);
  const auto gradient = [&](int threads) {
    const torch::Tensor to = torch::full({32, 64, 3, 3}, -1.F);
    at::set_num_threads(threads);
    conv_weight_gradient({6, 64, 9, 9, 32, 9, 9, 3, 1, 1}, static_cast<const uint16_t*>(x.data_ptr()),
                         static_cast<const uint16_t*>(dy.data_ptr()), {64 * 9, 9, 3, 1}, to.data_ptr<float>());
    return to;
  };
  const int threads = at::get_num_threads();
  const torch::Tensor one = gradient(1);
  EXPECT_TRUE(torch::equal(one, gradient(2)));
  EXPECT_TRUE(torch::equal(one, gradient(3)));
  at::set_num_threads(threads);
}

bool is_ours(const torch::Tensor& y) { return y.grad_fn()->name().find("Bfloat16Conv") != std::string::npos; }

TEST(ConvFallbackTest, LibTorchDoesWhatTheKernelsDoNot) {
  using Options = torch::nn::Conv2dOptions;
  const torch::Tensor x = channels_last(torch::randn({2, 32, 8, 8})).to(at::kBFloat16);
  const auto takes_ours = [](const Options& options, const torch::Tensor& input, at::ScalarType weights) {
    torch::nn::Conv2d conv(options);
    conv->to(weights);
    return is_ours(convolve(conv, input));
  };
  const auto is_refused = [&](const Options& options) { return !takes_ours(options, x, at::kBFloat16); };
  const Options plain = Options(32, 16, 3).bias(false);
  EXPECT_EQ(takes_ours(plain, x, at::kFloat), has_conv_kernels());
  EXPECT_FALSE(takes_ours(plain, x.to(at::kFloat), at::kFloat)) << "type";
  EXPECT_TRUE(is_refused(plain)) << "type of the weights";
  EXPECT_TRUE(is_refused(Options(32, 16, 3))) << "bias";
  EXPECT_TRUE(is_refused(Options(plain).groups(2)));
  EXPECT_TRUE(is_refused(Options(plain).dilation(2)));
  EXPECT_TRUE(is_refused(Options(plain).padding({1, 0})));
  EXPECT_TRUE(is_refused(Options(plain).padding(torch::kSame)));
}

TEST(ConvFallbackTest, TooManyThreadsForTheChannelsTakeLibTorch) {
  if (!has_conv_kernels()) GTEST_SKIP() << "needs a CPU with AVX512-BF16 and without AMX";
  const torch::Tensor x = channels_last(torch::randn({2, 64, 8, 8})).to(at::kBFloat16);
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(64, 16, 3).bias(false));
  const int threads = at::get_num_threads();
  at::set_num_threads(4);
  EXPECT_TRUE(is_ours(convolve(conv, x))) << "sixteen channels each";
  at::set_num_threads(3);
  // One of three would have half of the work. LibTorch multiplies both types in autocast only, which is off here.
  EXPECT_THROW(convolve(conv, x), c10::Error);
  at::set_num_threads(threads);
}

TEST(ConvGradientTest, ImagesThatNeedNoGradientGetNone) {
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(32, 16, 3).bias(false));
  if (!has_conv_kernels()) conv->to(at::kBFloat16);
  const OneThread one_thread;
  const torch::Tensor x = channels_last(torch::randn({2, 32, 8, 8})).to(at::kBFloat16);
  convolve(conv, x).sum().backward();
  EXPECT_TRUE(conv->weight.grad().defined());
  EXPECT_FALSE(x.grad().defined());
}

}  // namespace
}  // namespace stoker::model
