// SPDX-License-Identifier: Apache-2.0
#include "train/observers/observing.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "config/table/parse_value.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "engine/device/device.h"
#include "engine/probe/compute_probe.h"
#include "engine/probe/launch_overhead.h"
#include "engine/probe/training_speed.h"
#include "train/setup/hooks.h"
#include "train/setup/plan_run.h"

namespace stoker::train {

RunObservers::RunObservers(const ObservedRun& run, const std::string& run_dir, observe::Console& console)
    : resources_(observe::ResourceSampler::Settings{engine::driver_names(run.device)}),
      diagnosing_({run.options, run.machine, run.data_facts, *run.datasets.train, run.task, run.device, run.compute,
                   run.bfloat16_speed, run.other_layout_speed},
                  resources_),
      run_files_(run_dir),
      worst_file_(run_dir, run.options, run.datasets.val),
      split_overlap_(run.datasets.train, run.datasets.val),
      progress_(console, &resources_) {
  if (run.options.run.profile.unit != config::Interval::Unit::never) {
    observers_.add(profile_.emplace(run_dir, run.options.run.profile));
    observers_.add(operators_.emplace(run_dir, run.options.run.profile, run.device, !run.records_graphs));
  }
  observers_.add(run_files_);
  if (run.options.run.tensorboard) observers_.add(tensorboard_.emplace(run_dir));
  observers_.add(worst_file_);
  observers_.add(progress_);
  observers_.add(split_overlap_);  // behind the line of the epoch
  hook_ = hook_observers(observers_);
}

engine::Observer& RunObservers::observer() {
  if (hook_) return *hook_;
  return observers_;
}

namespace {

constexpr double kUnmeasured = 60;  // seconds, for a save that nobody has seen
constexpr double kWrapUp = 5;       // to write the last files, and to end
constexpr const char* kVariable = "SLURM_JOB_END_TIME";

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

JobEnd::JobEnd(double end) : end_(end) { request_stop(); }

std::string JobEnd::text() const {
  return core::format("the job ends at {} ({}): the run saves and stops before",
                      core::utc_text(static_cast<int64_t>(end_)), kVariable);
}

double JobEnd::reserve(double left) const {
  const double wanted = slowest_save_ < 0 ? kUnmeasured : 2 * slowest_save_ + slowest_update_ + kWrapUp;
  return std::min(wanted, left / 2);
}

void JobEnd::request_stop() const {
  const double left = end_ - now(), kept = reserve(left);
  core::request_stop_in(left - kept);
  core::log_debug("the run stops {:.1f} s before the end of the job, in {:.1f} s", kept, left - kept);
}

void JobEnd::on_update(const engine::UpdateEvent&) {
  const auto at = std::chrono::steady_clock::now();
  if (last_update_.time_since_epoch().count() > 0) {
    slowest_update_ = std::max(slowest_update_, std::chrono::duration<double>(at - last_update_).count());
  }
  last_update_ = at;
}

void JobEnd::on_checkpoint(const engine::CheckpointEvent& event) {
  slowest_save_ = std::max(slowest_save_, event.seconds + event.stall_seconds);
  last_update_ = {};  // what came in between was no update
  request_stop();
}

std::unique_ptr<JobEnd> job_end_of_environment() {
  const char* const text = std::getenv(kVariable);
  int64_t end = 0;
  if (text == nullptr || !config::read_integer(text, 1, std::numeric_limits<int64_t>::max(), end).empty())
    return nullptr;
  if (static_cast<double>(end) > now()) return std::make_unique<JobEnd>(static_cast<double>(end));
  core::log_warning("{} is {}, which has passed: it is of another job, and not used", kVariable, core::utc_text(end));
  return nullptr;
}

SplitOverlapWarning::SplitOverlapWarning(std::shared_ptr<const data::Source> training,
                                         std::shared_ptr<const data::Source> validation)
    : training_(std::move(training)), validation_(std::move(validation)) {}

void SplitOverlapWarning::on_epoch(const engine::EpochEvent& event) {
  constexpr size_t kExamples = 3;
  const std::vector<engine::SharedSample>& shared = event.in_both_splits;
  if (shared.empty()) return;
  const char* const kind = data::holds_videos(*validation_) ? "videos" : "images";
  std::string examples;
  for (size_t i = 0; i < std::min(kExamples, shared.size()); ++i) {
    examples += core::format("{}{} = {}", i > 0 ? ", " : "", core::printable(validation_->name(shared[i].validation)),
                             core::printable(training_->name(shared[i].training)));
  }
  core::log_warning(
      "{} of the {} validation {} are training {}, too: {}{}; data leak: scores on these are inflated; "
      "train audit shows them all",
      core::count_text(static_cast<int64_t>(shared.size())), core::count_text(validation_->size()), kind, kind,
      examples, shared.size() > kExamples ? ", ..." : "");
}

namespace {

constexpr double kSpeedSeconds = 0.02, kLaunchSeconds = 0.02, kPassSeconds = 0.05;  // each probe
constexpr int64_t kLookedAt = 256;  // samples whose stored size is requested

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
  add(!o.rand_augment.empty() || o.policy != config::AugmentPolicy::none, "--auto-augment", "none");
  add(o.perspective > 0, "--perspective", "0");
  add(config::is_affine(o), "--affine", "0");
  add(o.rotation > 0, "--rotation", "0");
  add(o.rotate90 > 0, "--rotate90", "0");
  add(o.vflip > 0, "--vflip", "0");
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
  const auto seconds_of = [](const config::Interval& every) {
    return every.unit == config::Interval::Unit::seconds ? every.amount : 0.0;
  };
  facts.report_seconds = seconds_of(options.run.report_every);
  facts.save_seconds = seconds_of(options.run.save_every);
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

/// Where memory runs out (such as in a run that computes its batches in micro-batches), what it took is given back.
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
