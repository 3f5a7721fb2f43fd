// SPDX-License-Identifier: Apache-2.0
#include "train/observers/diagnosing.h"

#include <algorithm>
#include <exception>

#include "engine/device/blas.h"
#include "engine/device/device.h"
#include "engine/device/out_of_memory.h"
#include "engine/probe/compute_probe.h"
#include "engine/probe/launch_overhead.h"
#include "engine/probe/training_speed.h"
#include "train/setup/hooks.h"
#include "train/setup/plan_run.h"

namespace stoker::train {
namespace {

constexpr double kSpeedSeconds = 0.02, kLaunchSeconds = 0.02, kPassSeconds = 0.05;  // each probe
constexpr int64_t kLookedAt = 256;  // samples whose stored size is asked for

double stored_bytes_of(const data::Source& source) {
  const int64_t count = std::min(kLookedAt, source.size());
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t bytes = data::stored_bytes(source, i * source.size() / count);
    if (bytes < 0) return 0;
    sum += static_cast<double>(bytes);
  }
  return count > 0 ? sum * static_cast<double>(source.size()) / static_cast<double>(count) : 0;
}

/// In use, the costliest first: by what each took on images of 224 x 224 pixels, see docs/reference/augmentation.md.
std::vector<observe::AugmentationInUse> augmentations_of(const config::ResolvedAugmentOptions& o) {
  std::vector<observe::AugmentationInUse> used;
  const auto add = [&](bool in_use, const char* flag, const char* off) {
    if (in_use) used.push_back({flag, off});
  };
  add(o.gaussian_blur > 0, "--gaussian-blur", "0");
  add(o.gaussian_noise > 0, "--gaussian-noise", "0");
  add(!o.color_jitter.empty(), "--color-jitter", "none");
  add(!o.rand_augment.empty() || o.trivial_augment, "--auto-augment", "none");
  add(o.rotation > 0, "--rotation", "0");
  add(o.rotate90 > 0, "--rotate90", "0");
  add(o.grayscale > 0, "--grayscale", "0");
  add(o.random_erasing > 0, "--random-erasing", "0");
  return used;
}

}  // namespace

observe::DiagnosisFacts known_facts(const config::ResolvedOptions& options, const core::MachineFacts& machine,
                                    const config::DataFacts& data_facts, const data::Source& train) {
  observe::DiagnosisFacts facts;
  facts.cpus = std::max(1, machine.cpus);
  facts.on_cpu = options.device.device == "cpu";
  facts.batch_size = options.loader.batch_size;
  facts.accumulation_steps = options.train.accumulation_steps;
  facts.replicas = options.train.replicas;
  facts.threads = options.device.threads;
  facts.prefetch_factor = options.loader.prefetch_factor;
  facts.pin_memory = options.loader.pin_memory || facts.on_cpu;
  facts.amp = options.precision.amp;
  facts.channels_last = options.precision.channels_last;
  facts.holds_pixels = options.loader.cache == config::CacheTier::ram;
  facts.holds_files = options.loader.cache == config::CacheTier::compressed;
  facts.augmentations = augmentations_of(options.augment);
  facts.images_per_epoch = train.size();
  facts.stored_bytes = stored_bytes_of(train);
  facts.pixel_bytes =
      static_cast<double>(train.size() * data_facts.median_height * data_facts.median_width * options.data.in_chans);
  hook_facts(options.loader, facts);
  return facts;
}

observe::DiagnosisFacts Diagnosing::facts_of_run(const Run& run) {
  observe::DiagnosisFacts facts = known_facts(run.options, run.machine, run.data_facts, run.train);
  facts.network_bfloat16_speed = run.bfloat16_speed;
  facts.other_layout_speed = run.other_layout_speed;
  facts.reference_blas = run.device.is_cpu() && engine::blas_facts().reference;
  facts.compute = run.compute;
  facts.native_bfloat16 = run.device.is_cpu()
                              ? run.machine.native_bfloat16
                              : run.machine.accelerators.at(static_cast<size_t>(run.device.index())).native_bfloat16;
  return facts;
}

Diagnosing::Diagnosing(const Run& run, observe::ResourceSampler& resources)
    : task_(run.task),
      settings_(probe_settings(run.options, run.train, run.device)),
      batch_size_(run.options.loader.batch_size),
      resources_(resources),
      diagnoser_(facts_of_run(run)) {
  const std::string device = run.options.device.device;
  // A device is not probed: it would be measured while it warms up, and in memory that the run may need.
  if (device != "cpu") return;
  if (run.machine.native_bfloat16)
    probes_.bfloat16_speed = [device] { return engine::bfloat16_speed(device, kSpeedSeconds); };
}

engine::Findings Diagnosing::run(engine::Learner& learner, const engine::Interlude& interlude) {
  const bool after_epoch = interlude.after == engine::Interlude::After::epoch;
  engine::Findings found;
  found.resources = after_epoch ? resources_.since_epoch() : resources_.since_report();
  observe::ThroughputProbes probes = probes_;
  probes.overhead_seconds = [this, &learner] { return overhead_seconds(learner); };
  if (learner.device.is_cpu()) {
    probes.pass_seconds = [this, &learner](int64_t threads, int64_t images) {
      return pass_seconds(learner, threads, images);
    };
  }
  found.diagnosis = diagnoser_.judge(interlude, *found.resources, probes);
  return found;
}

/// Where memory runs out (a run that computes its batches in micro-batches, say), what it took is given back.
double Diagnosing::measured(const torch::Device& device, const std::function<double()>& probe) {
  try {
    return probe();
  } catch (const std::exception& error) {
    if (!engine::is_out_of_memory(error)) throw;
  }
  engine::release_unused_memory(device);
  return 0;
}

double Diagnosing::overhead_seconds(engine::Learner& learner) const {
  return measured(learner.device,
                  [&] { return engine::overhead_seconds(learner, task_, settings_, batch_size_, kLaunchSeconds); });
}

double Diagnosing::pass_seconds(engine::Learner& learner, int64_t threads, int64_t images) const {
  return measured(learner.device, [&] {
    return engine::pass_seconds({&learner, settings_, threads}, task_, images, kPassSeconds);
  });
}

}  // namespace stoker::train
