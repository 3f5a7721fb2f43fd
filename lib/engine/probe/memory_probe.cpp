// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/memory_probe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"
#include "core/time/clock.h"
#include "engine/device/device.h"
#include "engine/task/evaluate.h"

namespace stoker::engine {

namespace {

constexpr double kSameSlope = 0.1, kOfImages = 0.5;

struct Point {
  int64_t images = 0, bytes = 0;
};

double slope(const Point& a, const Point& b) {
  return static_cast<double>(b.bytes - a.bytes) / static_cast<double>(b.images - a.images);
}

bool is_settled(const std::vector<Point>& points) {
  if (points.size() < 3) return false;
  const Point& last = points.back();
  const double before = slope(points.end()[-3], points.end()[-2]), now = slope(points.end()[-2], last);
  const double of_images = now * static_cast<double>(last.images);
  return std::abs(now - before) <= kSameSlope * std::abs(now) &&
         of_images >= kOfImages * static_cast<double>(last.bytes);
}

}  // namespace

PeakLine peak_line(const std::function<int64_t(int64_t images)>& peak_of, int64_t first, int64_t most,
                   const std::function<bool(const std::exception&)>& is_too_much) {
  std::vector<Point> points;
  const auto try_number = [&](int64_t images) {
    peak_of(images);
    points.push_back({images, peak_of(images)});
  };
  try_number(first);
  for (int64_t images = 2 * first; images <= most && !is_settled(points); images *= 2) {
    try {
      try_number(images);
    } catch (const std::exception& error) {
      if (!is_too_much(error)) throw;
      break;
    }
  }
  if (points.size() == 1) {
    try_number(std::max<int64_t>(1, first / 2));
    std::swap(points[0], points[1]);
  }
  const Point &small = points.end()[-2], &large = points.back();
  return {{small.images, {small.bytes}}, {large.images, {large.bytes}}, is_settled(points)};
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kScoutSide = 128, kUsualSide = 192, kLargeSide = 256;  // pixels
constexpr int64_t kFewImages = 2, kMaxOnDevice = 256;
constexpr double kPatienceSeconds = 4;  // for all passes together, as far as it can be predicted

/// Earlier allocations are left out. On a device the peak alone is known: a trace of one block.
TracedWork traced(int64_t images, torch::Device device, const std::function<void()>& work) {
  core::throw_if_stopped();
  if (device.is_cpu()) return {images, trace_allocations(work)};
  forget_device_peak(device);
  const int64_t before = device_memory(device).allocated_bytes;
  work();
  synchronize(device);
  return {images, {std::max<int64_t>(0, device_memory(device).peak_allocated_bytes - before)}};
}

TracedWork traced_evaluation(model::ImageModel& model, const Task& task, torch::Device device,
                             const ProbeSettings& settings, int64_t images, int64_t side) {
  model.eval();
  data::Batch batch = noise_batch(settings, images, side, device);
  const auto crops = static_cast<size_t>(config::crops_of(settings.tta));
  if (crops > 1) batch.images = at::cat(std::vector<torch::Tensor>(crops, batch.images), /*dim=*/-2);
  return traced(images, device,
                [&] { task.predictions(infer(model, batch.images, settings.update.precision, settings.tta)); });
}

/// The bytes of one image of `side` pixels, its label and targets included.
int64_t bytes_of_input(const ProbeSettings& settings, int64_t side, torch::Device device) {
  const data::Batch batch = noise_batch(settings, 1, side, device);
  return static_cast<int64_t>(batch.images.nbytes() + batch.labels.nbytes() + batch.targets.nbytes());
}

/// Runs passes of one learner and takes their measure.
class Prober {
 public:
  Prober(Learner& learner, const Task& task, const ProbeSettings& settings)
      : learner_(learner), task_(task), settings_(settings), step_(settings.update, task, learner) {}

  TracedWork train(int64_t images, int64_t side) {
    learner_.model->train();
    const data::Batch batch = noise_batch(settings_, images, side, learner_.device);
    return traced(images, learner_.device, [&] {
      Mix mix;
      if (settings_.mixes) mix.lambda = 0.6;
      for (int i = 0; i < (settings_.accumulates ? 2 : 1); ++i) step_.accumulate(batch, images, mix);
      // Gradients are given back within the work, so that the next pass begins as this one did.
      learner_.optimizer->zero_grad();
    });
  }

  TracedWork evaluate(int64_t images, int64_t side) {
    return traced_evaluation(*learner_.model, task_, learner_.device, settings_, images, side);
  }

  bool is_on_device() const { return !learner_.device.is_cpu(); }
  torch::Device device() const { return learner_.device; }
  /// Whether the network that trains takes squares of `side` pixels.
  bool takes(int64_t side) {
    learner_.model->train();
    return takes_squares_of(*learner_.model, settings_, side, learner_.device);
  }

  int64_t input_bytes(int64_t side) const { return bytes_of_input(settings_, side, learner_.device); }

 private:
  Learner& learner_;
  const Task& task_;
  const ProbeSettings& settings_;
  UpdateStep step_;
};

/// Forward and backward, and forward alone, on two numbers of images of `side` pixels.
ActivationModel passes_on(Prober& prober, int64_t side, int64_t few, int64_t more) {
  ActivationModel model;
  model.probe_side = side;
  model.input_bytes = prober.input_bytes(side);
  model.train_small = prober.train(few, side);
  model.eval_small = prober.evaluate(few, side);
  model.train_large = prober.train(more, side);
  model.eval_large = prober.evaluate(more, side);
  return model;
}

using PeakOf = std::function<int64_t(int64_t images)>;

/// On a device the peak alone is known. It is tried on enough images that convolutions choose the algorithm that they
/// choose for a batch; on fewer where these do not fit, and never on more than `max_images`.
std::vector<PeakLine> lines_on_device(const std::vector<PeakOf>& peaks, int64_t side, torch::Device device,
                                      int64_t max_images) {
  const auto is_too_much = [&](const std::exception& error) {
    return is_out_of_memory(error, free_memory_share(device));
  };
  for (int64_t first = std::min<int64_t>(side < kUsualSide ? 16 : 8, max_images);; first = kFewImages) {
    try {
      std::vector<PeakLine> lines;
      for (const PeakOf& peak : peaks) lines.push_back(peak_line(peak, first, max_images, is_too_much));
      return lines;
    } catch (const std::exception& error) {
      if (first <= kFewImages || !is_too_much(error)) throw;
    }
    release_unused_memory(device);
  }
}

ActivationModel passes_on_device(Prober& prober, int64_t side) {
  const std::vector<PeakLine> lines =
      lines_on_device({[&](int64_t images) { return peak_bytes(prober.train(images, side).trace); },
                       [&](int64_t images) { return peak_bytes(prober.evaluate(images, side).trace); }},
                      side, prober.device(), kMaxOnDevice);
  ActivationModel model;
  model.probe_side = side;
  model.input_bytes = prober.input_bytes(side);
  model.train_small = lines[0].small;
  model.train_large = lines[0].large;
  model.eval_small = lines[1].small;
  model.eval_large = lines[1].large;
  return model;
}

/// Few enough to be quick, and enough that convolutions choose the algorithm that they choose for a batch: LibTorch
/// computes inputs of up to 20,480 numbers without oneDNN.
std::pair<int64_t, int64_t> images_to_try(int64_t side) {
  if (side < kScoutSide) return {4, 8};
  if (side < kUsualSide) return {3, 4};
  return {kFewImages, kFewImages + 1};
}

ActivationModel passes(Prober& prober, int64_t side) {
  if (prober.is_on_device()) return passes_on_device(prober, side);
  const auto [few, more] = images_to_try(side);
  return passes_on(prober, side, few, more);
}

bool is_large_square(const ProbeSettings& settings) { return is_square(settings) && side_of(settings) > kLargeSide; }

/// Large images may neither fit nor end: small ones show that beforehand. Nothing when they do both, or when the
/// network takes no other size than its own.
bool scout(Prober& prober, const ProbeSettings& settings, ActivationModel& scouted) {
  if (!is_large_square(settings) || !prober.takes(kScoutSide)) return false;
  const double side = static_cast<double>(side_of(settings)) / kScoutSide;
  prober.train(kFewImages, kScoutSide);  // what is done for the first time takes longer
  const Clock::time_point again = Clock::now();
  scouted = passes(prober, kScoutSide);
  scouted.area_factor = side * side;
  const double seconds = core::seconds_since(again) * side * side;
  const bool fits = settings.memory_bytes <= 0 || scouted.training_bytes(kFewImages) < settings.memory_bytes;
  return !fits || seconds > kPatienceSeconds;
}

/// An image of N times the area takes as much as N images.
int64_t by_area(const ActivationModel& model, int64_t images) {
  return std::llround(static_cast<double>(images) * model.area_factor);
}

}  // namespace

int64_t ActivationModel::training_bytes(int64_t images) const {
  const int64_t tried = by_area(*this, images);
  return extrapolated_peak(train_small, train_large, tried) + tried * input_bytes;
}

int64_t ActivationModel::evaluation_bytes(int64_t images) const {
  const int64_t tried = by_area(*this, images);
  return extrapolated_peak(eval_small, eval_large, tried) + tried * input_bytes;
}

int64_t ActivationModel::working_bytes(const BatchSizes& batches) const {
  const auto training = [this](int64_t images) { return TracedPass{train_small, train_large, by_area(*this, images)}; };
  const auto evaluation = [this](int64_t images) { return TracedPass{eval_small, eval_large, by_area(*this, images)}; };
  return arena_high_water_mark({training(batches.train), training(batches.last_train), evaluation(batches.val),
                                evaluation(batches.last_val), training(batches.train), evaluation(batches.val)});
}

ActivationModel probe_memory(Learner& learner, const Task& task, const ProbeSettings& settings) {
  const Clock::time_point begin = Clock::now();
  const ScopedSnapshot undisturbed(learner);
  const NoSearchScope no_search;
  Prober prober(learner, task, settings);
  try {
    ActivationModel model;
    if (!scout(prober, settings, model)) {
      model = passes(prober, side_of(settings));
    }
    release_unused_memory(learner.device);
    model.seconds = core::seconds_since(begin);
    return model;
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error, free_memory_share(learner.device))) throw;
  }
  throw core::Error(core::ErrorKind::out_of_memory,
                    core::format("the network and {} images of {} x {} pixels do not fit into the memory that is free",
                                 kFewImages, settings.input.end()[-1], settings.input.end()[-2]),
                    "choose a smaller --img-size or a smaller --model");
}

ActivationModel probe_evaluation_memory(model::ImageModel& model, const Task& task, torch::Device device,
                                        const ProbeSettings& settings, int64_t max_images) {
  const Clock::time_point begin = Clock::now();
  const NoSearchScope no_search;
  const auto tried_on = [&](int64_t side) {
    ActivationModel tried;
    tried.probe_side = side;
    tried.input_bytes = bytes_of_input(settings, side, device);
    const auto pass = [&](int64_t images) { return traced_evaluation(model, task, device, settings, images, side); };
    const auto at_most = [&](int64_t images) {
      return side < side_of(settings) ? images : std::min(images, max_images);
    };
    if (device.is_cpu()) {
      const auto [few, more] = images_to_try(side);
      const int64_t most = at_most(more);
      tried.eval_small = pass(std::clamp<int64_t>(most - 1, 1, few));
      tried.eval_large = pass(most);
    } else {
      const auto peak = [&](int64_t images) { return peak_bytes(pass(images).trace); };
      const PeakLine line = lines_on_device({peak}, side, device, at_most(kMaxOnDevice)).front();
      tried.eval_small = line.small;
      tried.eval_large = line.large;
    }
    const double sides = static_cast<double>(side_of(settings)) / static_cast<double>(side);
    tried.area_factor = sides * sides;
    return tried;
  };
  model.eval();
  const bool is_scouted = is_large_square(settings) && takes_squares_of(model, settings, kScoutSide, device);
  ActivationModel found = tried_on(is_scouted ? kScoutSide : side_of(settings));
  release_unused_memory(device);
  found.seconds = core::seconds_since(begin);
  return found;
}

int64_t gradient_bytes(const model::ImageModel& model) {
  int64_t bytes = 0;
  for (const torch::Tensor& parameter : model.parameters()) {
    if (parameter.requires_grad()) bytes += static_cast<int64_t>(parameter.nbytes());
  }
  return bytes;
}

int64_t state_bytes(const model::ImageModel& model) {
  int64_t bytes = 0;
  for (const model::NamedTensor& entry : model::state_of(model)) bytes += static_cast<int64_t>(entry.tensor.nbytes());
  return bytes;
}

}  // namespace stoker::engine
