// SPDX-License-Identifier: Apache-2.0
// oneDNN has layouts of its own for these convolutions: operands are brought into them in the workspace, and results
// back. What a primitive needs for itself lies in the workspace, too, so that all memory is the caller's.
#include <omp.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/cpu.h"
#include "kernels/winograd.h"

namespace stoker::kernels {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr int64_t kAlignment = 64;  // bytes
constexpr int64_t kTile = 4;        // pixels of an output tile, along each axis
constexpr int64_t kFewestChannels = 32;
constexpr double kMaxPadding = 1.5;  // pixels of all tiles by those of the image
constexpr size_t kMaxKept = 256;     // shapes

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// A tensor as the caller has it and as the primitive wants it.
struct Operand {
  Operand(int argument_of, const memory::desc& callers, const memory::desc& primitives, bool is_result)
      : argument(argument_of),
        outside(callers),
        inside(primitives),
        turn(is_result ? dnnl::reorder(dnnl::reorder::primitive_desc(cpu(), primitives, cpu(), callers))
                       : dnnl::reorder(dnnl::reorder::primitive_desc(cpu(), callers, cpu(), primitives))) {}
  int64_t bytes() const { return aligned(static_cast<int64_t>(inside.get_size())); }

  int argument;
  memory::desc outside, inside;
  dnnl::reorder turn;
};

/// Two operands and a result.
struct Pass {
  dnnl::primitive primitive;
  memory::desc scratchpad;
  Operand first, second, result;

  int64_t bytes() const {
    return first.bytes() + second.bytes() + result.bytes() + aligned(static_cast<int64_t>(scratchpad.get_size())) +
           kAlignment;
  }

  void run(const float* first_values, const float* second_values, float* result_values, void* workspace) const {
    dnnl::stream stream(cpu());
    char* free = reinterpret_cast<char*>(aligned(reinterpret_cast<int64_t>(workspace)));
    const auto take = [&free](const memory::desc& layout) {
      const memory taken(layout, cpu(), free);
      free += aligned(static_cast<int64_t>(layout.get_size()));
      return taken;
    };
    const auto given = [&](const Operand& operand, const float* values) {
      memory inside = take(operand.inside);
      memory outside(operand.outside, cpu(), const_cast<float*>(values));  // only read
      operand.turn.execute(stream, outside, inside);
      return inside;
    };
    const memory one = given(first, first_values), other = given(second, second_values);
    memory inside = take(result.inside);
    primitive.execute(stream, {{first.argument, one},
                               {second.argument, other},
                               {result.argument, inside},
                               {DNNL_ARG_SCRATCHPAD, take(scratchpad)}});
    memory outside(result.outside, cpu(), result_values);
    result.turn.execute(stream, inside, outside);
    stream.wait();
  }
};

struct Layouts {
  explicit Layouts(const WinogradShape& s)
      : of_x({s.images, s.in_channels, s.height, s.width}),
        of_weights({s.out_channels, s.in_channels, 3, 3}),
        of_y({s.images, s.out_channels, s.height, s.width}),
        x(of_x, memory::data_type::f32, s.channels_last ? Tag::nhwc : Tag::nchw),
        weights(of_weights, memory::data_type::f32, s.weights_channels_last ? Tag::ohwi : Tag::oihw),
        y(of_y, memory::data_type::f32, s.channels_last ? Tag::nhwc : Tag::nchw),
        any_x(of_x, memory::data_type::f32, Tag::any),
        any_weights(of_weights, memory::data_type::f32, Tag::any),
        any_y(of_y, memory::data_type::f32, Tag::any) {}

  memory::dims of_x, of_weights, of_y;
  memory::desc x, weights, y;
  memory::desc any_x, any_weights, any_y;
};

class OneDnnWinograd final : public WinogradConv {
 public:
  /// Throws dnnl::error where oneDNN cannot.
  explicit OneDnnWinograd(const WinogradShape& shape) : OneDnnWinograd(Layouts(shape), own_workspace()) {}

  int64_t workspace_bytes() const override {
    return std::max({forward_.bytes(), input_gradient_.bytes(), weight_gradient_.bytes()});
  }
  void forward(const float* x, const float* weights, float* y, void* workspace) const override {
    forward_.run(x, weights, y, workspace);
  }
  void input_gradient(const float* dy, const float* weights, float* dx, void* workspace) const override {
    input_gradient_.run(dy, weights, dx, workspace);
  }
  void weight_gradient(const float* x, const float* dy, float* gradient, void* workspace) const override {
    weight_gradient_.run(x, dy, gradient, workspace);
  }

 private:
  static constexpr auto kWay = dnnl::algorithm::convolution_winograd;
  using Forward = dnnl::convolution_forward;
  using Data = dnnl::convolution_backward_data;
  using Weights = dnnl::convolution_backward_weights;

  static dnnl::primitive_attr own_workspace() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  }

  OneDnnWinograd(const Layouts& l, const dnnl::primitive_attr& attributes)
      : OneDnnWinograd(l, attributes,
                       Forward::primitive_desc({dnnl::prop_kind::forward_training, kWay, l.any_x, l.any_weights,
                                                l.any_y, kOnes, kOnes, kOnes},
                                               attributes, cpu())) {}
  OneDnnWinograd(const Layouts& l, const dnnl::primitive_attr& attributes, const Forward::primitive_desc& forward)
      : OneDnnWinograd(l, forward,
                       Data::primitive_desc({kWay, l.any_x, l.any_weights, l.any_y, kOnes, kOnes, kOnes}, attributes,
                                            cpu(), forward),
                       Weights::primitive_desc({kWay, l.any_x, l.any_weights, l.any_y, kOnes, kOnes, kOnes}, attributes,
                                               cpu(), forward)) {}
  OneDnnWinograd(const Layouts& l, const Forward::primitive_desc& forward, const Data::primitive_desc& data,
                 const Weights::primitive_desc& weights)
      : forward_{Forward(forward),
                 forward.scratchpad_desc(),
                 {DNNL_ARG_SRC, l.x, forward.src_desc(), false},
                 {DNNL_ARG_WEIGHTS, l.weights, forward.weights_desc(), false},
                 {DNNL_ARG_DST, l.y, forward.dst_desc(), true}},
        input_gradient_{Data(data),
                        data.scratchpad_desc(),
                        {DNNL_ARG_DIFF_DST, l.y, data.diff_dst_desc(), false},
                        {DNNL_ARG_WEIGHTS, l.weights, data.weights_desc(), false},
                        {DNNL_ARG_DIFF_SRC, l.x, data.diff_src_desc(), true}},
        weight_gradient_{Weights(weights),
                         weights.scratchpad_desc(),
                         {DNNL_ARG_SRC, l.x, weights.src_desc(), false},
                         {DNNL_ARG_DIFF_DST, l.y, weights.diff_dst_desc(), false},
                         {DNNL_ARG_DIFF_WEIGHTS, l.weights, weights.diff_weights_desc(), true}} {}

  static const memory::dims kOnes;  ///< stride, and padding on each side

  Pass forward_, input_gradient_, weight_gradient_;
};

const memory::dims OneDnnWinograd::kOnes = {1, 1};

bool is_worth_it(const WinogradShape& shape) {
  const auto covered = [](int64_t pixels) { return (pixels + kTile - 1) / kTile * kTile; };
  return shape.in_channels >= kFewestChannels && shape.out_channels >= kFewestChannels &&
         static_cast<double>(covered(shape.height) * covered(shape.width)) <=
             kMaxPadding * static_cast<double>(shape.height * shape.width);
}

std::shared_ptr<const WinogradConv> made(const WinogradShape& shape) {
  try {
    return std::make_shared<const OneDnnWinograd>(shape);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments) return nullptr;
    // Not a matter of this CPU or these channels: the direct way would have other bits from here on.
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw;
  }
}

}  // namespace

bool has_winograd() {
  static const bool has = [] {
    try {
      return made({1, kFewestChannels, kFewestChannels, kTile, kTile}) != nullptr;
    } catch (const dnnl::error&) {  // such as a system that lets no program make code
      return false;
    }
  }();
  return has;
}

std::shared_ptr<const WinogradConv> WinogradConv::of(const WinogradShape& shape) {
  if (!is_worth_it(shape) || !has_winograd()) return nullptr;
  static std::mutex mutex;
  static std::map<std::array<int64_t, 8>, std::shared_ptr<const WinogradConv>> kept;
  const std::array<int64_t, 8> key = {shape.images,
                                      shape.in_channels,
                                      shape.out_channels,
                                      shape.height,
                                      shape.width,
                                      shape.channels_last ? 1 : 0,
                                      shape.weights_channels_last ? 1 : 0,
                                      omp_get_max_threads()};
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  if (kept.size() >= kMaxKept) kept.clear();
  return kept[key] = made(shape);
}

}  // namespace stoker::kernels
