// SPDX-License-Identifier: Apache-2.0
// A run small enough to be trained in a test: a linear network on images of 4 x 4 pixels made on the spot.
#pragma once

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/system/stop_signal.h"
#include "data/source.h"
#include "engine/loop/trainer.h"
#include "model/buffers.h"
#include "tests/temporary_directory.h"

namespace stoker::engine::tiny_run {

inline constexpr int64_t kBadRow = 3;

/// Gray images of 4x4 noise with a bright row that marks the class.
class RowSource : public data::LeafSource {
 public:
  /// `left_out`: of a larger source, the image that this one lacks; -1: none.
  RowSource(int64_t count, bool one_is_bad, int64_t left_out = -1)
      : count_(count), left_out_(left_out), one_is_bad_(one_is_bad) {
    class_names_ = {"0", "1", "2", "3"};
    fingerprint_ = "rows";
    core::Rng rng(7, core::RngPurpose::init, 0, 0);
    pixels_.resize(static_cast<size_t>(count + 1) * 16);
    for (size_t i = 0; i < pixels_.size(); ++i) {
      const bool bright = static_cast<int64_t>(i % 16 / 4) == row_label(static_cast<int64_t>(i / 16));
      pixels_[i] = static_cast<uint8_t>(rng.below(100) + (bright ? 100 : 0));
    }
  }
  int64_t size() const override { return count_; }
  int64_t label(int64_t index) const override { return row_label(row_of(index)); }
  std::string name(int64_t index) const override { return "row#" + std::to_string(index); }
  std::string relative_name(int64_t index) const override { return name(index); }
  std::string read(int64_t index, std::vector<uint8_t>&, data::SampleContent& content) const override {
    if (one_is_bad_ && index == kBadRow) return "torn in two";
    content.bytes = pixels_.data() + row_of(index) * 16;
    content.size = 16;
    content.height = content.width = 4;
    content.channels = 1;
    return "";
  }

 private:
  static int64_t row_label(int64_t row) { return row * 7 % 4; }
  int64_t row_of(int64_t index) const { return left_out_ >= 0 && index >= left_out_ ? index + 1 : index; }

  int64_t count_, left_out_;
  bool one_is_bad_;
  std::vector<uint8_t> pixels_;
};

/// Memory that holds any number of images in the first passes forward, and only a few at once after them.
struct TightMemory {
  int64_t unlimited_passes = 0;
  int64_t images_at_once = std::numeric_limits<int64_t>::max();
};

/// A linear classifier: no batch norm, so micro-batches do not see each other. Counts the images that it was trained
/// on, as batch norm counts, before it finds that memory has run out.
class LinearModel : public model::ImageModel {
 public:
  LinearModel(const TightMemory& memory, bool has_batch_norm) : memory_(memory) {
    if (has_batch_norm) norm_ = register_module("norm", torch::nn::BatchNorm1d(16));
    fc_ = register_module("fc", torch::nn::Linear(16, 4));
    trained_on_ = register_buffer("trained_on", torch::zeros({}, at::kLong));
  }
  torch::Tensor forward(torch::Tensor images) override {
    if (is_training()) {
      trained_on_.add_(images.size(0));
      searches_[images.size(0)] = at::globalContext().benchmarkCuDNN();
      if (++passes_ > memory_.unlimited_passes && images.size(0) > memory_.images_at_once) throw std::bad_alloc();
    }
    const torch::Tensor rows = images.flatten(1);
    return fc_(norm_ ? norm_(rows) : rows);
  }
  std::string head_prefix() const override { return "fc."; }
  int64_t trained_on() const { return trained_on_.item<int64_t>(); }
  /// By number of images: whether cuDNN would have searched for algorithms.
  const std::map<int64_t, bool>& searches() const { return searches_; }

 private:
  torch::nn::BatchNorm1d norm_{nullptr};
  torch::nn::Linear fc_{nullptr};
  torch::Tensor trained_on_;  ///< int64 []
  TightMemory memory_;
  int64_t passes_ = 0;
  std::map<int64_t, bool> searches_;
};

struct TinyOptions {
  int64_t images = 103, batch_size = 8, accumulation = 1;
  double lr = 0.05;
  config::ResolvedScheduleOptions schedule;
  bool one_is_bad = false;
  int64_t left_out = -1;  ///< the row that the training source lacks
  bool has_batch_norm = false;
  RunLimits limits{/*epochs=*/3, 0, 0, 0};
  config::Interval save_every = config::Interval::epochs(1);
  config::Interval val_every = config::Interval::epochs(1);
  bool can_validate = true;
  Checkpoints::Kept kept;
  MixSettings mix;
  TightMemory memory;
  bool auto_micro_batch = false;
  int64_t digest_every = 0;
  optim::GradScalerSettings scaling;
  SkipLimits skips;
  config::Interval report_every = config::Interval::updates(1);
  torch::Device device = torch::kCPU;
  std::vector<double> mean = {0.3}, std = {0.2};
  std::function<std::shared_ptr<model::ImageModel>()> make_model = {};  ///< empty: LinearModel
  config::ResolvedOptimOptions optim;
  double clip_grad = 0;
  core::FileSystem* file_system = nullptr;  ///< that checkpoints are written to; null: the machine's
  double ema_decay = 0;                     ///< 0: no average
  GraphRunner* graphs = nullptr;            ///< required, where there is one
};

/// Remembers events and can request a stop after an update.
class Recorder : public Observer {
 public:
  int64_t stop_after_update = -1;
  int64_t stop_in_validation = -1;  ///< after the first batch of the validation of this number, from 1 on
  std::vector<EpochEvent> epochs;
  std::vector<ReportEvent> reports;
  std::vector<DigestEvent> digests;
  std::vector<int64_t> saved_at;  ///< updates of each checkpoint
  void on_update(const UpdateEvent& event) override {
    if (event.updates == stop_after_update) core::request_stop(SIGTERM);
  }
  void on_evaluation(int64_t images_done, int64_t) override {
    if (images_done <= last_done_ || validations_ == 0) ++validations_;
    if (images_done < 10 && validations_ == stop_in_validation) core::request_stop(SIGTERM);
    last_done_ = images_done;
  }
  void on_checkpoint(const CheckpointEvent& event) override { saved_at.push_back(event.updates); }
  void on_digest(const DigestEvent& event) override { digests.push_back(event); }
  void on_report(const ReportEvent& event) override { reports.push_back(event); }
  void on_epoch(const EpochEvent& event) override { epochs.push_back(event); }

 private:
  int64_t validations_ = 0, last_done_ = 0;
};

/// Counts how often it may use the learner, and can be ended by a stop request.
class Slot : public BetweenUpdates {
 public:
  int64_t stop_at_call = -1;
  bool stops_after_epochs = false;  ///< else after reports
  std::chrono::milliseconds takes{0};
  std::vector<Interlude> calls;
  Findings run(Learner&, const Interlude& interlude) override {
    calls.push_back(interlude);
    std::this_thread::sleep_for(takes);
    const bool after_epoch = interlude.after == Interlude::After::epoch;
    seen_ += after_epoch == stops_after_epochs ? 1 : 0;
    if (after_epoch == stops_after_epochs && seen_ == stop_at_call) {
      core::request_stop(SIGTERM);
      throw core::StopRequested{};
    }
    Findings found;
    found.diagnosis.emplace().advice = "call " + std::to_string(calls.size());
    return found;
  }

 private:
  int64_t seen_ = 0;
};

/// All parts of a tiny run in one folder; a second one on the same folder is a second process.
class TinyRun {
 public:
  TinyRun(const std::string& folder, const TinyOptions& options)
      : options_(options), checkpoints_(settings_of(folder, options), RunIdentity{}) {
    checkpoints_.files().prepare();
    observers_.add(recorder_);
    torch::manual_seed(1);
    learner_.device = options.device;
    learner_.model = options.make_model ? options.make_model()
                                        : std::make_shared<LinearModel>(options.memory, options.has_batch_norm);
    model::join_buffers(*learner_.model);
    std::vector<optim::NamedParameter> parameters;
    for (const auto& item : learner_.model->named_parameters()) parameters.push_back({item.key(), item.value()});
    learner_.optimizer = std::make_unique<optim::Optimizer>(parameters, options.optim);
    learner_.scaler = std::make_unique<optim::GradScaler>(options.scaling, options.device);
    if (options.ema_decay > 0) {
      learner_.ema = std::make_unique<optim::Ema>(*learner_.model, options.ema_decay, /*warmup=*/true);
    }
    train_feed_ = feed(options.images, options.one_is_bad, /*training=*/true);
    val_feed_ = feed(40, false, /*training=*/false);
  }

  FinishEvent go() {
    RunProgress at;
    const std::string newest = checkpoints_.files().newest_verified();
    std::vector<data::BadSample> bad;
    if (!newest.empty()) at = checkpoints_.load(newest, learner_, bad);
    if (!newest.empty() && !limit_reached(options_.limits, at)) checkpoints_.continue_from(at);
    TaskSpec spec;
    spec.num_classes = 4;
    const std::unique_ptr<Task> task = make_task(spec, options_.device);
    TrainerSettings settings;
    settings.eval_metric = config::EvalMetric::top1;
    settings.plan = {train_feed_->loader().images_per_epoch(), options_.batch_size,
                     train_feed_->loader().batches_per_epoch(), options_.accumulation};
    settings.limits = options_.limits;
    settings.telemetry.digest_every = options_.digest_every;
    settings.val_every = options_.val_every;
    settings.can_validate = options_.can_validate;
    if (options_.kept.every > 0)
      settings.keep_every = config::Interval::updates(static_cast<double>(options_.kept.every));
    settings.averages = options_.kept.average_last > 0;
    checkpoints_.keep(options_.kept);
    settings.save_every = options_.save_every;
    settings.updater.mix = options_.mix;
    settings.updater.step.precision.device = options_.device;
    settings.updater.step.clip_grad = options_.clip_grad;
    settings.updater.auto_micro_batch = options_.auto_micro_batch;
    settings.report_every = options_.report_every;
    settings.skips = options_.skips;
    settings.updater.requires_graphs = options_.graphs != nullptr;
    const optim::Schedule schedule(options_.schedule, options_.lr, 3 * settings.plan.updates(),
                                   settings.plan.updates());
    StepTimer timer(options_.device, train_feed_->loader());
    Updater updater(settings.updater, *task, learner_, &timer, alone(), options_.graphs);
    OperatorRecorder no_profile(options_.device, /*may_use_events=*/false);
    SplitOverlap no_overlap;
    RunTelemetry telemetry(settings.telemetry,
                           {updater, timer, train_feed_->loader(), alone(), observers_, slot_, no_profile, no_overlap});
    Trainer trainer(settings, {updater, *train_feed_, *val_feed_, schedule, checkpoints_, alone(), telemetry});
    return trainer.run(at);
  }

  /// The first update, each of its batches mixed as `mixes` has it.
  void update_by_hand(const std::vector<Mix>& mixes) {
    TaskSpec spec;
    spec.num_classes = 4;
    const std::unique_ptr<Task> task = make_task(spec, torch::kCPU);
    learner_.model->train();
    UpdateStep step({}, *task, learner_);
    train_feed_->begin_epoch(0);
    for (const Mix& mix : mixes) {
      data::Batch batch;
      train_feed_->next(batch);
      step.accumulate(batch, options_.batch_size * options_.accumulation, mix);
    }
    step.apply(optim::Schedule(config::ResolvedScheduleOptions{}, options_.lr, 3, 1).at(0));
  }

  /// The first `updates` gradients overflow, as float16 ones do.
  void spoil_gradients(int64_t updates) {
    learner_.model->named_parameters()["fc.weight"].register_hook(
        [left = std::make_shared<int64_t>(updates)](const torch::Tensor& gradient) {
          return (*left)-- > 0 ? gradient * std::numeric_limits<float>::infinity() : gradient;
        });
  }
  torch::Tensor weight() { return learner_.model->named_parameters()["fc.weight"].detach().clone(); }
  int64_t trained_on() const { return static_cast<const LinearModel&>(*learner_.model).trained_on(); }
  const std::map<int64_t, bool>& searches() const {
    return static_cast<const LinearModel&>(*learner_.model).searches();
  }
  Checkpoints& checkpoints() { return checkpoints_; }
  Learner& learner() { return learner_; }
  Recorder recorder_;
  Observers observers_;
  Slot slot_;

 private:
  static Checkpoints::Settings settings_of(const std::string& folder, const TinyOptions& options) {
    Checkpoints::Settings settings{folder, 2, true, true};
    if (options.file_system) settings.file_system = options.file_system;
    return settings;
  }
  std::unique_ptr<data::DeviceFeed> feed(int64_t images, bool one_is_bad, bool training) {
    data::TransformPlan plan;
    plan.training = training;
    plan.shape = data::square_shape(4, 1);
    data::LoaderSettings settings;
    settings.batch_size = options_.batch_size;
    settings.shuffle = training;
    settings.seed = 5;
    if (one_is_bad) {
      settings.on_bad_image = config::OnBadImage::skip;
      settings.max_bad = 1;
    }
    auto loader = std::make_shared<data::Loader>(
        std::make_shared<RowSource>(images, one_is_bad, training ? options_.left_out : -1), plan, settings);
    data::FeedSettings feed_settings;
    feed_settings.device = options_.device;
    feed_settings.mean = options_.mean;
    feed_settings.std = options_.std;
    return std::make_unique<data::DeviceFeed>(loader, feed_settings);
  }

  TinyOptions options_;
  Learner learner_;
  Checkpoints checkpoints_;
  std::unique_ptr<data::DeviceFeed> train_feed_, val_feed_;
};

class TrainerTest : public ::testing::Test {
 protected:
  void SetUp() override { core::request_stop(0); }
  void TearDown() override { core::request_stop(0); }

  torch::Tensor unbroken_weight(const TinyOptions& options) {
    TinyRun run(folder_ / "unbroken", options);
    run.go();
    return run.weight();
  }
  const stoker::fixtures::TemporaryDirectory folder_;
};

}  // namespace stoker::engine::tiny_run
