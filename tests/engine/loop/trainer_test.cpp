// SPDX-License-Identifier: Apache-2.0
#include "engine/loop/trainer.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <new>

#include "core/error.h"
#include "core/system/stop_signal.h"
#include "data/leaf_source.h"
#include "tests/temporary_directory.h"

namespace stoker::engine {
namespace {

constexpr int64_t kBadRow = 3;

/// Gray images of 4x4 noise with a bright row that tells the class.
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

/// Memory that holds any number of images in the first passes forward, and only so many at once after them.
struct TightMemory {
  int64_t roomy_passes = 0;
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
      if (++passes_ > memory_.roomy_passes && images.size(0) > memory_.images_at_once) throw std::bad_alloc();
    }
    const torch::Tensor rows = images.flatten(1);
    return fc_(norm_ ? norm_(rows) : rows);
  }
  std::string head_prefix() const override { return "fc."; }
  int64_t trained_on() const { return trained_on_.item<int64_t>(); }

 private:
  torch::nn::BatchNorm1d norm_{nullptr};
  torch::nn::Linear fc_{nullptr};
  torch::Tensor trained_on_;  ///< int64 []
  TightMemory memory_;
  int64_t passes_ = 0;
};

struct TinyOptions {
  int64_t images = 103, batch_size = 8, accumulation = 1;
  double lr = 0.05;
  config::ScheduleOptions schedule;
  bool one_is_bad = false;
  int64_t left_out = -1;  ///< the row that the training source lacks
  bool has_batch_norm = false;
  RunLimits limits{/*epochs=*/3, 0, 0, 0};
  config::Interval save_every = config::Interval::epochs(1);
  MixSettings mix;
  TightMemory memory;
  bool auto_micro_batch = false;
};

/// Remembers events and can ask for a stop after an update.
class Recorder : public Observer {
 public:
  int64_t stop_after_update = -1;
  std::vector<EpochEvent> epochs;
  std::vector<int64_t> saved_at;  ///< updates of each checkpoint
  void on_update(const UpdateEvent& event) override {
    if (event.updates == stop_after_update) core::request_stop(SIGTERM);
  }
  void on_checkpoint(const CheckpointEvent& event) override { saved_at.push_back(event.updates); }
  void on_epoch(const EpochEvent& event) override { epochs.push_back(event); }
};

/// Counts how often it may use the learner, and can be ended by a stop request.
class Slot : public BetweenUpdates {
 public:
  int64_t stop_at_call = -1;
  bool stops_after_epochs = false;  ///< else after reports
  std::vector<Interlude> calls;
  Findings run(Learner&, const Interlude& interlude) override {
    calls.push_back(interlude);
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
      : options_(options), checkpoints_({folder, 2, true, true}, RunIdentity{}) {
    checkpoints_.files().prepare();
    listeners_.add(recorder_);
    torch::manual_seed(1);
    learner_.model = std::make_shared<LinearModel>(options.memory, options.has_batch_norm);
    std::vector<optim::NamedParameter> parameters;
    for (const auto& item : learner_.model->named_parameters()) parameters.push_back({item.key(), item.value()});
    config::ResolvedOptimOptions optim_options;
    learner_.optimizer = std::make_unique<optim::Optimizer>(parameters, optim_options);
    learner_.scaler = std::make_unique<optim::GradScaler>(optim::GradScalerSettings{}, torch::kCPU);
    train_feed_ = feed(options.images, options.one_is_bad, /*training=*/true);
    val_feed_ = feed(40, false, /*training=*/false);
  }

  FinishEvent go() {
    RunProgress at;
    const std::string newest = checkpoints_.files().newest_verified();
    std::vector<data::BadSample> bad;
    if (!newest.empty()) at = checkpoints_.load(newest, learner_, bad);
    TaskSpec spec;
    spec.num_classes = 4;
    const std::unique_ptr<Task> task = make_task(spec, torch::kCPU);
    TrainerSettings settings;
    settings.eval_metric = config::EvalMetric::top1;
    settings.plan = {train_feed_->loader().images_per_epoch(), options_.batch_size,
                     train_feed_->loader().batches_per_epoch(), options_.accumulation};
    settings.limits = options_.limits;
    settings.val_every = config::Interval::epochs(1);
    settings.save_every = options_.save_every;
    settings.updater.mix = options_.mix;
    settings.updater.auto_micro_batch = options_.auto_micro_batch;
    settings.report_every = config::Interval::updates(1);
    const optim::Schedule schedule(options_.schedule, options_.lr, 3 * settings.plan.updates(),
                                   settings.plan.updates());
    Trainer trainer(settings, {*task, learner_, *train_feed_, *val_feed_, schedule, checkpoints_, listeners_, &slot_});
    return trainer.run(at);
  }

  /// The first update, each of its batches mixed as it says here.
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
    step.apply(optim::Schedule(config::ScheduleOptions{}, options_.lr, 3, 1).at(0));
  }

  torch::Tensor weight() { return learner_.model->named_parameters()["fc.weight"].detach().clone(); }
  int64_t trained_on() const { return static_cast<const LinearModel&>(*learner_.model).trained_on(); }
  Checkpoints& checkpoints() { return checkpoints_; }
  Recorder recorder_;
  Observers listeners_;
  Slot slot_;

 private:
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
    feed_settings.mean = {0.3};
    feed_settings.std = {0.2};
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

TEST_F(TrainerTest, Learns) {
  TinyOptions options;
  options.images = 2000;
  TinyRun run(folder_ / "a", options);
  const FinishEvent finish = run.go();
  EXPECT_EQ(finish.reason, StopReason::epochs_done);
  EXPECT_EQ(finish.updates, 3 * 250);
  EXPECT_GT(finish.best_value, 90) << "percent of validation images";
}

TEST_F(TrainerTest, MicroBatchesAddUpToTheLargeBatchIncludingTheShortLastWindow) {
  TinyOptions large, small;
  large.batch_size = 32;  // 103 images: windows of 32, 32, 32 and 7
  small.batch_size = 8;   // the last window has one micro-batch of 7
  small.accumulation = 4;
  TinyRun a(folder_ / "large", large), b(folder_ / "small", small);
  EXPECT_EQ(a.go().updates, b.go().updates);
  EXPECT_TRUE(torch::allclose(a.weight(), b.weight(), 1e-5, 1e-6)) << (a.weight() - b.weight()).abs().max();
}

TEST_F(TrainerTest, AStopAtAnyUpdateThenAResumeGivesTheSameBits) {
  TinyOptions options;
  options.accumulation = 3;  // 5 updates per epoch
  options.mix.mixup_alpha = options.mix.cutmix_alpha = 0.4;
  const torch::Tensor wanted = unbroken_weight(options);
  for (const int64_t update : {1, 4, 5, 6, 10, 14, 15}) {
    const std::string folder = folder_ / ("stop-" + std::to_string(update));
    {
      TinyRun first(folder, options);
      first.recorder_.stop_after_update = update;
      const FinishEvent stopped = first.go();
      EXPECT_EQ(stopped.reason, StopReason::signal);
      EXPECT_EQ(stopped.updates, update) << "the update under way is finished, no other is begun";
    }
    core::request_stop(0);
    TinyRun second(folder, options);
    EXPECT_EQ(second.go().updates, 15);
    EXPECT_TRUE(torch::equal(second.weight(), wanted)) << "stopped after update " << update;
  }
}

TEST_F(TrainerTest, AStopRequestInTheSlotBetweenUpdatesLosesNeitherCheckpointNorRow) {
  const TinyOptions options;
  const torch::Tensor wanted = unbroken_weight(options);
  for (const bool after_epoch : {false, true}) {
    const std::string folder = folder_ / (after_epoch ? "epoch" : "report");
    {
      TinyRun first(folder, options);
      first.slot_.stops_after_epochs = after_epoch;
      first.slot_.stop_at_call = after_epoch ? 2 : 16;  // of 13 updates and reports per epoch
      const FinishEvent stopped = first.go();
      EXPECT_EQ(stopped.reason, StopReason::signal);
      EXPECT_EQ(stopped.updates, after_epoch ? 26 : 16);
      EXPECT_EQ(first.checkpoints().files().list().front(), stopped.updates);
      EXPECT_EQ(first.recorder_.epochs.size(), after_epoch ? 2u : 1u) << "every epoch that is saved has its row";
    }
    core::request_stop(0);
    TinyRun second(folder, options);
    EXPECT_EQ(second.go().updates, 39);
    EXPECT_EQ(second.recorder_.epochs.size(), after_epoch ? 1u : 2u);
    EXPECT_TRUE(torch::equal(second.weight(), wanted));
  }
}

TEST_F(TrainerTest, TheSlotIsToldItsTimeAndItsFindingsReachTheListeners) {
  const TinyOptions options;
  TinyRun run(folder_ / "a", options);
  run.recorder_.stop_after_update = 20;
  run.go();
  const std::vector<Interlude>& calls = run.slot_.calls;
  ASSERT_EQ(calls.size(), 13u + 1 + 7) << "once per report and once per epoch";
  EXPECT_EQ(calls[13].after, Interlude::After::epoch);
  EXPECT_EQ(run.recorder_.epochs.at(0).found.diagnosis.value().advice, "call 14");
  EXPECT_TRUE(calls[0].is_first_epoch);
  EXPECT_FALSE(calls[14].is_first_epoch);
  EXPECT_EQ(calls[0].epochs_left, 2);
  EXPECT_GT(calls[0].seconds_allowed, 0);
  EXPECT_EQ(calls.back().seconds_allowed, 0) << "a stop was asked for";
}

/// A listener that breaks its contract, or loses a record.
class Thrower : public Observer {
 public:
  bool looks_for_stops = false;
  void on_epoch(const EpochEvent&) override {
    if (looks_for_stops) throw core::StopRequested{};
    throw core::Error(core::ErrorKind::io, "the disk is full");
  }
};

TEST_F(TrainerTest, AListenerThatLooksForStopRequestsIsABugAndALostRecordEndsTheRun) {
  for (const bool looks_for_stops : {true, false}) {
    Thrower thrower;
    thrower.looks_for_stops = looks_for_stops;
    TinyRun run(folder_ / (looks_for_stops ? "bug" : "lost"), {});
    run.listeners_.add(thrower);
    try {
      run.go();
      FAIL() << "no error";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.kind(), looks_for_stops ? core::ErrorKind::bug : core::ErrorKind::io);
    }
    EXPECT_TRUE(run.checkpoints().files().list().empty()) << "no checkpoint says that an epoch is done that has no row";
  }
}

TEST_F(TrainerTest, SavesEverySoManyUpdatesTheLastOnesOfEpochsIncluded) {
  TinyOptions options;
  options.images = 48;  // 6 updates per epoch
  options.save_every = config::Interval::updates(4);
  TinyRun run(folder_ / "a", options);
  run.go();
  std::vector<int64_t> saved_on_time;
  for (const int64_t updates : run.recorder_.saved_at) {
    if (updates % 4 == 0) saved_on_time.push_back(updates);
  }
  EXPECT_EQ(saved_on_time, (std::vector<int64_t>{4, 8, 12, 16}));
}

TEST_F(TrainerTest, OneCycleMovesTheMomentumAsWell) {
  TinyOptions constant, at_its_value, moving;
  constant.schedule.sched = config::ScheduleKind::one_cycle;
  constant.schedule.one_cycle_momentum = false;
  at_its_value.schedule.sched = moving.schedule.sched = config::ScheduleKind::one_cycle;
  at_its_value.schedule.one_cycle_base_momentum = at_its_value.schedule.one_cycle_max_momentum = 0.9;
  TinyRun a(folder_ / "constant", constant), b(folder_ / "at-its-value", at_its_value), c(folder_ / "moving", moving);
  a.go();
  b.go();
  c.go();
  EXPECT_TRUE(torch::equal(a.weight(), b.weight()));
  EXPECT_FALSE(torch::allclose(a.weight(), c.weight(), 1e-2, 1e-3));
}

TEST_F(TrainerTest, EachMicroBatchIsMixedInItsOwnWay) {
  TinyOptions options;
  options.images = 8;  // one update of two batches
  options.batch_size = 4;
  options.accumulation = 2;
  options.limits.epochs = 1;
  options.mix.mixup_alpha = 0.4;
  const Mix first = draw_mix(options.mix, /*epoch=*/0, /*batch=*/0, 4, 4);
  const Mix second = draw_mix(options.mix, 0, 1, 4, 4);
  ASSERT_GT(std::abs(first.lambda - second.lambda), 0.01);
  TinyRun run(folder_ / "run", options), by_hand(folder_ / "by hand", options);
  run.go();
  by_hand.update_by_hand({first, second});
  EXPECT_TRUE(torch::equal(run.weight(), by_hand.weight()));
}

TEST_F(TrainerTest, TheEpochThatWasInterruptedReportsTheSameLoss) {
  TinyOptions options;
  TinyRun unbroken(folder_ / "unbroken", options);
  unbroken.go();
  {
    TinyRun first(folder_ / "a", options);
    first.recorder_.stop_after_update = 6;
    first.go();
    EXPECT_TRUE(first.recorder_.epochs.empty());
  }
  core::request_stop(0);
  TinyRun second(folder_ / "a", options);
  second.go();
  ASSERT_EQ(second.recorder_.epochs.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(second.recorder_.epochs[i].train_loss, unbroken.recorder_.epochs[i].train_loss);
    EXPECT_EQ(second.recorder_.epochs[i].eval_loss, unbroken.recorder_.epochs[i].eval_loss);
    EXPECT_EQ(second.recorder_.epochs[i].images, 103);
  }
}

TEST_F(TrainerTest, MaxUpdatesStopsInsideAnEpochAndARaisedLimitGoesOnFromThere) {
  TinyOptions options;
  const torch::Tensor wanted = unbroken_weight(options);
  TinyOptions limited = options;
  limited.limits.max_updates = 20;  // 13 updates per epoch
  {
    TinyRun first(folder_ / "a", limited);
    const FinishEvent finish = first.go();
    EXPECT_EQ(finish.reason, StopReason::max_updates);
    EXPECT_EQ(finish.updates, 20);
    EXPECT_TRUE(first.recorder_.epochs.back().has_eval) << "the end of a run is always validated";
  }
  TinyRun second(folder_ / "a", options);
  EXPECT_EQ(second.go().updates, 39);
  EXPECT_TRUE(torch::equal(second.weight(), wanted));
}

TEST_F(TrainerTest, PatienceEndsARunThatNoLongerImproves) {
  TinyOptions options;
  options.lr = 0;
  options.limits.patience = 1;
  TinyRun run(folder_ / "a", options);
  const FinishEvent finish = run.go();
  EXPECT_EQ(finish.reason, StopReason::no_improvement);
  EXPECT_EQ(finish.epochs_done, 2);
}

TEST_F(TrainerTest, DivergenceIsAnErrorAndOverwritesNoCheckpoint) {
  TinyOptions good;
  good.limits.epochs = 1;
  TinyRun(folder_ / "a", good).go();
  TinyOptions bad;
  bad.lr = std::numeric_limits<double>::infinity();
  TinyRun run(folder_ / "a", bad);
  try {
    run.go();
    FAIL() << "no error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::diverged);
    EXPECT_NE(std::string(error.what()).find("training diverged: the loss is"), std::string::npos) << error.what();
  }
  EXPECT_EQ(run.checkpoints().files().list(), std::vector<int64_t>{13});
}

/// 7 updates in an epoch, each but its last of two batches of 8; from the second batch of update 6 on there is memory
/// for 3 images at once.
TinyOptions tight_options() {
  TinyOptions options;
  options.batch_size = 8;
  options.accumulation = 2;
  options.memory = {/*roomy_passes=*/11, /*images_at_once=*/3};
  options.auto_micro_batch = true;
  options.mix.mixup_alpha = 0.4;
  return options;
}

TEST_F(TrainerTest, WhenMemoryRunsOutTheUpdateIsDoneAgainInSmallerPieces) {
  TinyRun tight(folder_ / "tight", tight_options());
  const FinishEvent finish = tight.go();
  TinyOptions roomy_options = tight_options();
  roomy_options.memory = {};
  TinyRun roomy(folder_ / "roomy", roomy_options);
  EXPECT_EQ(finish.updates, roomy.go().updates) << "an update sees as many images as before";
  EXPECT_TRUE(torch::allclose(tight.weight(), roomy.weight(), 1e-5, 1e-6));
  EXPECT_FALSE(torch::equal(tight.weight(), roomy.weight())) << "no piece was ever smaller";
  EXPECT_EQ(tight.trained_on(), 3 * 103) << "what the failed update had done is undone";
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(tight.recorder_.epochs[i].images, 103);
    EXPECT_NEAR(tight.recorder_.epochs[i].train_loss, roomy.recorder_.epochs[i].train_loss, 1e-5);
  }
}

TEST_F(TrainerTest, AResumeGoesOnWithThePiecesThatItsCheckpointHas) {
  const torch::Tensor wanted = unbroken_weight(tight_options());
  for (const int64_t update : {3, 6, 8, 20}) {
    const std::string folder = folder_ / ("stop-" + std::to_string(update));
    {
      TinyRun first(folder, tight_options());
      first.recorder_.stop_after_update = update;
      first.go();
    }
    core::request_stop(0);
    TinyOptions after = tight_options();
    after.memory.roomy_passes -= 2 * update;  // of the second process
    if (update >= 6) after.memory = {};       // nothing runs out any more: the checkpoint says how to go on
    TinyRun second(folder, after);
    second.go();
    EXPECT_TRUE(torch::equal(second.weight(), wanted)) << "stopped after update " << update;
  }
}

TEST_F(TrainerTest, OutOfMemoryIsNotMendedUnaskedNorWithoutEnd) {
  TinyOptions unasked = tight_options();
  unasked.auto_micro_batch = false;
  EXPECT_THROW(TinyRun(folder_ / "unasked", unasked).go(), std::bad_alloc);
  TinyOptions hopeless = tight_options();
  hopeless.memory.images_at_once = 1;
  try {
    TinyRun(folder_ / "hopeless", hopeless).go();
    FAIL() << "no error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::out_of_memory);
    EXPECT_EQ(std::string(error.what()), "out of memory at update 6 with 2 images at a time: std::bad_alloc");
  }
}

TEST_F(TrainerTest, ASkippedImageLeavesTheMeanOverTheOthers) {
  // One update that holds all images: its gradient is the mean over those that can be read.
  TinyOptions with_bad;
  with_bad.one_is_bad = true;
  with_bad.images = 8;
  with_bad.batch_size = 4;
  with_bad.accumulation = 2;
  with_bad.limits.epochs = 1;
  TinyOptions without = with_bad;
  without.one_is_bad = false;
  without.left_out = kBadRow;
  without.images = without.batch_size = 7;
  without.accumulation = 1;
  TinyRun run(folder_ / "a", with_bad), reference(folder_ / "b", without);
  run.go();
  reference.go();
  EXPECT_EQ(run.recorder_.epochs[0].images, 7);
  EXPECT_EQ(run.recorder_.epochs[0].bad_images, 1);
  const double error = (run.weight() - reference.weight()).abs().max().item<double>();
  EXPECT_LT(error, 1e-6) << "divided by the 8 planned images the weights are 1e-4 and more apart";
}

TEST_F(TrainerTest, ABatchThatSkippingLeavesWithOneImageIsLeftOutWhereBatchNormCannotTrainOnIt) {
  TinyOptions options;
  options.images = 8;
  options.batch_size = 2;
  options.one_is_bad = true;
  TinyRun plain(folder_ / "plain", options);
  plain.go();
  options.has_batch_norm = true;
  TinyRun norm(folder_ / "norm", options);
  norm.go();
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(plain.recorder_.epochs.at(epoch).images, 7) << "a network without batch norm trains on one image";
    EXPECT_EQ(norm.recorder_.epochs.at(epoch).images, 6);
  }
}

}  // namespace
}  // namespace stoker::engine
