// SPDX-License-Identifier: Apache-2.0
// Our gradient of a convolution's weights against LibTorch's in double precision.
#include "model/layers/conv.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <cmath>

#include "core/error.h"
#include "kernels/conv_weight_gradient.h"
#include "kernels/cpu.h"
#include "model/model.h"
#include "tests/model/layers/channels_last.h"

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
  OneThread& operator=(OneThread&&) = delete;  // not copied, not moved

 private:
  const int threads_ = at::get_num_threads();
};

struct ConvPass {
  torch::Tensor y, x_gradient, weight_gradient;
};

/// Values are those that bfloat16 holds, whatever the type.
ConvPass run_conv(const ConvCase& c, at::ScalarType type, c10::MemoryFormat weight_format) {
  torch::manual_seed(5);
  const auto drawn = [&](at::IntArrayRef shape) {
    return channels_last(torch::randn(shape)).to(at::kBFloat16).to(type);
  };
  torch::nn::Conv2d conv(
      torch::nn::Conv2dOptions(c.in, c.out, c.kernel).stride(c.stride).padding(c.padding).bias(false));
  {
    const torch::NoGradGuard no_gradients;
    conv->weight.set_data(
        conv->weight.to(at::kBFloat16).to(type == at::kDouble ? type : at::kFloat).contiguous(weight_format));
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
  if (!kernels::has_conv_weight_gradient())
    GTEST_SKIP() << "needs kernels in the build, and a CPU with AVX512-BF16 and without AMX";
  const OneThread one_thread;
  const ConvPass exact = run_conv(GetParam(), at::kDouble, c10::MemoryFormat::Contiguous);
  for (const c10::MemoryFormat format : {c10::MemoryFormat::ChannelsLast, c10::MemoryFormat::Contiguous}) {
    const ConvPass ours = run_conv(GetParam(), at::kBFloat16, format);
    EXPECT_EQ(ours.y.scalar_type(), at::kBFloat16);
    EXPECT_LT(difference(ours.y, exact.y), 1.0 / 128);
    EXPECT_LT(difference(ours.x_gradient, exact.x_gradient), 1.0 / 128);
    EXPECT_EQ(ours.weight_gradient.scalar_type(), at::kFloat);
    EXPECT_LT(difference(ours.weight_gradient, exact.weight_gradient), 1e-5)
        << "LibTorch's would be rounded to bfloat16";
  }
}

// Odd numbers of images; images that fill several bands, bands of several images, the last of them not full; edges that
// only some places of the kernel see; strides that leave pixels out; out channels that need tiles of each width.
INSTANTIATE_TEST_SUITE_P(Shapes, ConvTest,
                         ::testing::Values(ConvCase{128, 64, 64, 7, 3, 1, 1}, ConvCase{5, 16, 112, 3, 3, 1, 1},
                                           ConvCase{1, 32, 16, 40, 3, 1, 1}, ConvCase{7, 48, 32, 14, 2, 2, 0},
                                           ConvCase{4, 16, 64, 15, 2, 2, 0}, ConvCase{3, 32, 48, 30, 3, 2, 1},
                                           ConvCase{2, 16, 16, 110, 1, 1, 0}, ConvCase{6, 16, 32, 4, 5, 1, 2},
                                           ConvCase{3, 16, 16, 1, 3, 1, 1}, ConvCase{45, 16, 16, 3, 3, 1, 1}));

TEST(ConvKernelsTest, GiveTheSameBitsOnAnyNumberOfThreads) {
  if (!kernels::has_conv_weight_gradient())
    GTEST_SKIP() << "needs kernels in the build, and a CPU with AVX512-BF16 and without AMX";
  const torch::Tensor x = channels_last(torch::randn({6, 80, 9, 9})).to(at::kBFloat16);
  const torch::Tensor dy = channels_last(torch::randn({6, 32, 9, 9})).to(at::kBFloat16);
  const auto gradient = [&](int threads) {
    const torch::Tensor to = torch::full({32, 80, 3, 3}, -1.F);
    at::set_num_threads(threads);
    kernels::conv_weight_gradient(
        {6, 80, 9, 9, 32, 9, 9, 3, 1, 1}, static_cast<const uint16_t*>(x.data_ptr()),
        static_cast<const uint16_t*>(dy.data_ptr()), {80 * 9, 9, 3, 1}, to.data_ptr<float>(),
        [](int64_t count, int64_t grain, const kernels::RangeWork& work) { at::parallel_for(0, count, grain, work); });
    return to;
  };
  const OneThread restores_threads;  // in the end
  const torch::Tensor one = gradient(1);
  EXPECT_TRUE(torch::equal(one, gradient(2)));
  EXPECT_TRUE(torch::equal(one, gradient(3)));
}

bool is_ours(const torch::Tensor& y) { return y.grad_fn()->name().find("Bfloat16Conv") != std::string::npos; }

/// Float weights and bfloat16 images are what autocast gives a convolution. Without autocast LibTorch refuses them, our
/// kernels do not: what throws here is LibTorch's.
bool is_refused(const torch::nn::Conv2dOptions& options, const torch::Tensor& x) {
  torch::nn::Conv2d conv(options);
  try {
    return !is_ours(convolve(conv, x));
  } catch (const c10::Error&) {
    return true;
  }
}

TEST(ConvFallbackTest, LibTorchDoesWhatTheKernelsDoNot) {
  using Options = torch::nn::Conv2dOptions;
  const torch::Tensor x = channels_last(torch::randn({2, 32, 8, 8})).to(at::kBFloat16);
  const Options plain = Options(32, 16, 3).bias(false);
  const OneThread one_thread;
  EXPECT_EQ(is_refused(plain, x), !kernels::has_conv_weight_gradient());
  EXPECT_TRUE(is_refused(plain, x.to(at::kFloat))) << "type";
  EXPECT_TRUE(is_refused(plain, x.contiguous())) << "layout";
  EXPECT_TRUE(is_refused(Options(32, 20, 3).bias(false), x)) << "channels";
  EXPECT_TRUE(is_refused(Options(32, 16, 3), x)) << "bias";
  EXPECT_TRUE(is_refused(Options(32, 16, {3, 1}).bias(false), x)) << "kernel";
  EXPECT_TRUE(is_refused(Options(plain).groups(2), x));
  EXPECT_TRUE(is_refused(Options(plain).dilation(2), x));
  EXPECT_TRUE(is_refused(Options(plain).padding({1, 0}), x));
  EXPECT_TRUE(is_refused(Options(plain).padding(torch::kSame), x));
  EXPECT_TRUE(is_refused(Options(plain).padding(1).padding_mode(torch::kReflect), x));
  const torch::NoGradGuard no_gradients;
  torch::nn::Conv2d conv(plain);
  EXPECT_THROW(convolve(conv, x), c10::Error) << "nothing to compute a gradient for";
}

TEST(ConvThreadsTest, LoopsOfOurFilesRunOnSeveralThreads) {
  const OneThread restores_threads;  // in the end
  at::set_num_threads(2);
  std::atomic<int> pieces{0};
  at::parallel_for(0, 2, /*grain_size=*/1, [&](int64_t, int64_t) { ++pieces; });
  EXPECT_EQ(pieces, 2) << "compiled without OpenMP, at::parallel_for is a plain loop";
}

TEST(ConvFallbackTest, ThreadsThatDoNotDivideTheChannelsTakeLibTorch) {
  if (!kernels::has_conv_weight_gradient())
    GTEST_SKIP() << "needs kernels in the build, and a CPU with AVX512-BF16 and without AMX";
  const torch::Tensor x = channels_last(torch::randn({2, 64, 8, 8})).to(at::kBFloat16);
  const OneThread restores_threads;  // in the end
  at::set_num_threads(4);
  EXPECT_FALSE(is_refused(torch::nn::Conv2dOptions(64, 16, 3).bias(false), x)) << "sixteen channels each";
  at::set_num_threads(3);
  EXPECT_TRUE(is_refused(torch::nn::Conv2dOptions(64, 16, 3).bias(false), x))
      << "one of three would have half of the work";
}

/// TensorFlow's padding of one axis, before and behind.
std::pair<int64_t, int64_t> same_padding(int64_t side, int64_t kernel, int64_t stride) {
  const int64_t all = std::max<int64_t>(0, ((side + stride - 1) / stride - 1) * stride + kernel - side);
  return {all / 2, all - all / 2};
}

TEST(SamePaddingTest, IsThatOfTensorFlow) {
  torch::manual_seed(3);
  for (const int64_t kernel : {1, 3, 5}) {
    for (const int64_t stride : {1, 2}) {
      for (const auto& [height, width] : {std::pair<int64_t, int64_t>{8, 6}, {9, 7}, {8, 7}, {7, 8}, {2, 1}}) {
        const auto layer = std::make_shared<ConvNormAct>(ConvShape{4, 4, kernel, stride, /*groups=*/2}, NormSettings{},
                                                         Activation::none);
        layer->eval();
        layer->use_same_padding();
        const torch::Tensor x = torch::randn({2, 4, height, width});
        const auto [top, bottom] = same_padding(height, kernel, stride);
        const auto [left, right] = same_padding(width, kernel, stride);
        const torch::Tensor wanted =
            torch::conv2d(torch::constant_pad_nd(x, {left, right, top, bottom}), layer->named_parameters()["0.weight"],
                          torch::Tensor(), at::IntArrayRef({stride, stride}), at::IntArrayRef({0, 0}),
                          at::IntArrayRef({1, 1}), 2) /
            std::sqrt(1 + 1e-5);
        EXPECT_TRUE(torch::allclose(layer->forward(x), wanted, 1e-5, 1e-6))
            << kernel << " " << stride << " " << height << "x" << width;
      }
    }
  }
}

TEST(SamePaddingTest, NetworksOfSuchLayersTakeItAndOthersRefuseIt) {
  ModelSpec spec;
  spec.num_classes = 2;
  spec.img_size = {64, 64};
  for (const char* const name : {"efficientnet_b0", "mobilenet_v3_small"}) {
    spec.name = name;
    torch::manual_seed(1);
    const auto plain = make_model(spec);
    spec.same_padding = true;
    torch::manual_seed(1);
    const auto same = make_model(spec);
    plain->eval(), same->eval();
    const torch::Tensor x = torch::randn({1, 3, 64, 64});
    EXPECT_FALSE(torch::equal(plain->features(x), same->features(x))) << name;
    spec.same_padding = false;
  }
  spec.name = "resnet18";
  spec.same_padding = true;
  EXPECT_THROW(make_model(spec), core::Error);
}

}  // namespace
}  // namespace stoker::model
