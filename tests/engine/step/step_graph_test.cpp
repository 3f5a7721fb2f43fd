// SPDX-License-Identifier: Apache-2.0
// Updates whose forward and backward passes are replayed from a record are bit-identical to updates that are computed
// operation by operation, whatever comes between. The device that records is a double; see recorded_operations.h.
#include "engine/step/step_graph.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/step/state_snapshot.h"
#include "engine/step/updater.h"
#include "model/model.h"
#include "step/recorded_operations.h"

namespace stoker::engine::graph_run {
namespace {

constexpr int64_t kBatch = 8, kClasses = 10;

struct Trained {
  std::string model = "small_cnn";
  int64_t side = 32;  ///< pixels
  double drop_rate = 0, drop_path_rate = 0;
  int64_t batches = 20, accumulation = 1;
  int64_t last_images = kBatch;       ///< images of the last batch
  std::vector<int64_t> skipped = {};  ///< batches that lost an image
  bool bfloat16 = false, average = false, auto_micro_batch = false;
  double clip = 0;
  MixSettings mix;
  optim::GradScalerSettings scaling;
  bool spoils_used_batches = true;  ///< a batch is overwritten once its update is done
  std::function<void(int64_t update, Learner&, Updater&)> between = {};
};

/// Made anew for each run; the same numbers.
class MadeFeed : public BatchFeed {
 public:
  explicit MadeFeed(const Trained& setup) : setup_(setup) {}
  data::Batch next(bool) override {
    const int64_t number = next_++;
    const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(100 + number));
    data::Batch batch;
    batch.planned_images = number + 1 == setup_.batches ? setup_.last_images : kBatch;
    const bool lost_one = std::find(setup_.skipped.begin(), setup_.skipped.end(), number) != setup_.skipped.end();
    const int64_t images = batch.planned_images - (lost_one ? 1 : 0);
    batch.images = at::randn({images, 3, setup_.side, setup_.side}, random, at::kFloat);
    batch.labels = at::arange(images, at::kLong).add(number).remainder(kClasses);
    batch.targets = at::zeros({images, 0});
    given_.push_back(batch);
    return batch;
  }
  void rewind_to(const UpdateWindow& window) override { next_ = window.first_batch; }
  void spoil() {
    for (data::Batch& batch : given_) {
      batch.images.fill_(std::numeric_limits<float>::quiet_NaN());
      batch.labels.fill_(0);
    }
    given_.clear();
  }

 private:
  const Trained& setup_;
  int64_t next_ = 0;
  std::vector<data::Batch> given_;
};

/// Counts how often the host goes through the network.
class Watched : public model::ImageModel {
 public:
  explicit Watched(std::shared_ptr<model::ImageModel> network) : network_(register_module("network", network)) {}
  torch::Tensor forward(torch::Tensor images) override {
    ++passes;
    if (images.size(0) > images_at_once) throw std::bad_alloc();
    return network_->forward(images);
  }
  std::string head_prefix() const override { return "network." + network_->head_prefix(); }
  int64_t passes = 0;
  int64_t images_at_once = std::numeric_limits<int64_t>::max();

 private:
  const std::shared_ptr<model::ImageModel> network_;
};

Learner made_learner(const Trained& setup) {
  torch::manual_seed(1);
  model::ModelSpec spec;
  spec.name = setup.model;
  spec.num_classes = kClasses;
  spec.img_size = {setup.side, setup.side};
  spec.width = 8;
  spec.drop_rate = setup.drop_rate;
  spec.drop_path_rate = setup.drop_path_rate;
  Learner learner;
  learner.model = std::make_shared<Watched>(model::make_model(spec));
  std::vector<optim::NamedParameter> parameters;
  for (const auto& item : learner.model->named_parameters()) parameters.push_back({item.key(), item.value()});
  learner.optimizer = std::make_unique<optim::Optimizer>(parameters, config::ResolvedOptimOptions());
  learner.scaler = std::make_unique<optim::GradScaler>(setup.scaling, torch::kCPU);
  if (setup.average) learner.ema = std::make_unique<optim::Ema>(*learner.model, 0.9, /*warmup=*/true);
  return learner;
}

/// All that a checkpoint would have of a learner, bit for bit.
struct End {
  std::map<std::string, torch::Tensor> state;
  SumValues sums;
  int64_t passes = 0, micro_batches = 1;
};

End end_of(Learner& learner, const Updater& updater) {
  End end;
  for (const model::NamedTensor& one : model::state_of(*learner.model)) end.state[one.name] = one.tensor.clone();
  for (const optim::NamedState& one : learner.optimizer->state()) end.state["optim." + one.name] = one.tensor.clone();
  if (learner.ema) {
    for (const auto& one : learner.ema->averages()) end.state["average." + one.name] = one.tensor.clone();
  }
  if (learner.scaler->enabled()) end.state["scale"] = learner.scaler->figures();
  for (const model::NamedTensor& one : random_state(torch::kCPU)) end.state["random." + one.name] = one.tensor;
  end.sums = updater.sums().read();
  end.passes = static_cast<const Watched&>(*learner.model).passes;
  end.micro_batches = updater.micro_batches();
  return end;
}

/// Without a recorder: operation by operation.
End trained(const Trained& setup, fixtures::OperationRecorder* recorder, bool is_required = true) {
  at::set_num_threads(1);
  Learner learner = made_learner(setup);
  torch::manual_seed(2);
  TaskSpec spec;
  spec.num_classes = kClasses;
  spec.label_smoothing = 0.1;
  const std::unique_ptr<Task> task = make_task(spec, torch::kCPU);
  UpdaterSettings settings;
  settings.step = {{torch::kCPU, setup.bfloat16, at::kBFloat16}, setup.clip, config::ClipMode::norm};
  settings.mix = setup.mix;
  settings.auto_micro_batch = setup.auto_micro_batch;
  settings.requires_graphs = recorder != nullptr && is_required;
  Updater updater(settings, *task, learner, /*timer=*/nullptr, alone(), recorder);
  updater.use_graphs(true);
  learner.model->train();
  const EpochPlan plan{(setup.batches - 1) * kBatch + setup.last_images, kBatch, setup.batches, setup.accumulation};
  MadeFeed feed(setup);
  for (int64_t number = 0; number < plan.updates(); ++number) {
    if (setup.between) setup.between(number, learner, updater);
    UpdateWindow window = plan.window(/*epoch=*/0, number);
    window.number = number;
    updater.update(feed, window, {0.05 / static_cast<double>(number + 1)});
    if (setup.spoils_used_batches) feed.spoil();
  }
  return end_of(learner, updater);
}

void expect_same_bits(const End& replayed, const End& computed) {
  ASSERT_EQ(replayed.state.size(), computed.state.size());
  for (const auto& [name, tensor] : computed.state) {
    const torch::Tensor& other = replayed.state.at(name);
    ASSERT_EQ(tensor.nbytes(), other.nbytes()) << name;
    EXPECT_EQ(std::memcmp(tensor.data_ptr(), other.data_ptr(), tensor.nbytes()), 0) << name;
  }
  EXPECT_EQ(replayed.sums.loss_sum, computed.sums.loss_sum);
  EXPECT_EQ(replayed.sums.score_sum, computed.sums.score_sum);
  EXPECT_EQ(replayed.sums.images, computed.sums.images);
  EXPECT_TRUE(std::isfinite(computed.sums.loss_sum));
}

/// Trains both ways, and compares.
void expect_replays(const Trained& setup, int64_t replays, int64_t records = 1) {
  fixtures::OperationRecorder recorder;
  const End computed = trained(setup, nullptr);
  const End replayed = trained(setup, &recorder);
  expect_same_bits(replayed, computed);
  EXPECT_EQ(recorder.records, records);
  EXPECT_EQ(recorder.warm_ups, records * StepGraph::kWarmUps);
  EXPECT_EQ(recorder.replays, replays);
  EXPECT_EQ(replayed.passes, computed.passes - replays + records) << "the host goes through one of replayed batches";
}

TEST(StepGraphTest, TwentyUpdatesHaveTheBitsOfComputedOnes) { expect_replays({}, 17); }

TEST(StepGraphTest, ResidualNetworksDoSo) {
  Trained setup;
  setup.model = "resnet18";
  setup.side = 64;  // a map of one pixel would be for kernels of the CPU, which no recorder sees
  setup.batches = 8;
  expect_replays(setup, 5);
}

TEST(StepGraphTest, DropoutAndStochasticDepthDrawOnAtEachReplay) {
  Trained setup;
  setup.model = "efficientnet_b0";
  setup.side = 64;
  setup.drop_rate = 0.3;
  setup.drop_path_rate = 0.2;
  setup.batches = 5;
  expect_replays(setup, 2);
}

TEST(StepGraphTest, BatchesThatAreNotFullAreComputed) {
  Trained setup;
  setup.last_images = 5;
  expect_replays(setup, 16);
  setup.skipped = {6, 7, 12};
  expect_replays(setup, 13);
  setup.drop_rate = 0.5;
  expect_replays(setup, 13);
}

TEST(StepGraphTest, SeveralBatchesOfAnUpdateAddUpInTheSameOrder) {
  Trained setup;
  setup.batches = 24;
  setup.accumulation = 3;
  expect_replays(setup, 21);
  setup.batches = 25;  // the last update has one batch, and another mean
  expect_replays(setup, 21);
  setup.skipped = {8, 13, 15};  // the last, the middle and the first batch of an update
  expect_replays(setup, 18);
}

TEST(StepGraphTest, MixedPrecisionClippingAverageAndLossScaleDoNotMind) {
  Trained setup;
  setup.bfloat16 = setup.average = true;
  setup.clip = 0.5;
  expect_replays(setup, 17);
  setup.scaling = {/*enabled=*/true, /*init_scale=*/1024, 2, 0.5, /*growth_interval=*/4};
  expect_replays(setup, 17);
}

TEST(StepGraphTest, SharesOfMixedImagesComeThroughTheDevice) {
  Trained setup;
  setup.mix.mixup_alpha = 0.6;
  expect_replays(setup, 17);
}

TEST(StepGraphTest, WhereSomeBatchesAreMixedOneKindIsReplayed) {
  Trained setup;
  setup.batches = 40;
  setup.mix.mixup_alpha = setup.mix.cutmix_alpha = 0.6;
  setup.mix.probability = 0.8;
  fixtures::OperationRecorder recorder;
  const End computed = trained(setup, nullptr), replayed = trained(setup, &recorder);
  expect_same_bits(replayed, computed);
  EXPECT_EQ(recorder.records, 1);
  EXPECT_GT(recorder.replays, 15);
  EXPECT_LT(recorder.replays, 36);
}

TEST(StepGraphTest, SmallerMicroBatchesAfterALackOfMemoryAreComputed) {
  for (const int64_t tight_from : {1, 3, 9}) {
    Trained setup;
    setup.auto_micro_batch = true;
    setup.skipped = {9};  // a replay allocates no memory: a batch that is computed finds the lack
    setup.between = [&](int64_t update, Learner& learner, Updater&) {
      static_cast<Watched&>(*learner.model).images_at_once = update >= tight_from ? kBatch / 2 : kBatch;
    };
    fixtures::OperationRecorder recorder;
    Trained later = setup;
    if (tight_from == 3) later.skipped = setup.skipped = {};
    const End computed = trained(setup, nullptr), replayed = trained(later, &recorder);
    expect_same_bits(replayed, computed);
    EXPECT_EQ(replayed.micro_batches, 2) << tight_from;
    EXPECT_EQ(recorder.replays, tight_from == 9 ? 6 : 0);
  }
}

TEST(StepGraphTest, OthersMayUseTheNetworkBetweenUpdates) {
  Trained setup;
  setup.average = true;
  setup.drop_rate = 0.2;
  setup.between = [](int64_t update, Learner& learner, Updater&) {
    if (update % 5 != 4) return;
    learner.ema->swap();  // an evaluation
    learner.model->eval();
    const torch::NoGradGuard no_gradients;
    learner.model->forward(at::ones({3, 3, 32, 32}));
    learner.ema->swap();
    learner.model->train();
    const StateSnapshot undisturbed(*learner.model, torch::kCPU);  // a measurement
    {
      const torch::AutoGradMode with_gradients(true);
      learner.model->forward(at::ones({kBatch, 3, 32, 32})).sum().backward();
    }
    learner.optimizer->zero_grad();
    undisturbed.restore();
  };
  expect_replays(setup, 17);
}

TEST(StepGraphTest, WeightsThatLieElsewhereAreRecordedAnew) {
  Trained setup;
  setup.between = [](int64_t update, Learner& learner, Updater&) {
    if (update != 10) return;
    for (torch::Tensor& parameter : learner.model->parameters()) parameter.set_data(parameter.detach().clone());
  };
  expect_replays(setup, 14, /*records=*/2);
}

/// Sees every batch of every third update.
class Watcher : public StepWatcher {
 public:
  void on_batch(const SeenBatch& seen) override { sums.push_back(seen.outputs.sum().item<double>()); }
  std::vector<double> sums;
};

TEST(StepGraphTest, WhatSomebodyLooksAtIsComputed) {
  std::vector<double> seen[2];
  for (std::vector<double>& sums : seen) {
    Trained setup;
    const auto watcher = std::make_shared<Watcher>();
    setup.between = [watcher](int64_t update, Learner&, Updater& updater) {
      updater.set_watcher(update % 3 == 2 ? watcher.get() : nullptr);
    };
    fixtures::OperationRecorder recorder;
    trained(setup, &sums == seen ? nullptr : &recorder);
    sums = watcher->sums;
    EXPECT_EQ(recorder.replays, &sums == seen ? 0 : 11);
  }
  EXPECT_EQ(seen[0].size(), 6U);
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(StepGraphTest, GraphsMayBeginAndEndAtAnyUpdate) {
  Trained setup;
  setup.between = [](int64_t update, Learner&, Updater& updater) {
    if (updater.graph()) updater.use_graphs(update >= 5 && update < 12);
  };
  expect_replays(setup, 4);
}

TEST(StepGraphTest, AKindOfBatchThatDoesNotComeAnyMoreGivesItsPlaceToAnother) {
  Trained setup;
  Learner learner = made_learner(setup);
  fixtures::OperationRecorder recorder;
  StepGraph graph(recorder, learner, /*is_required=*/true);
  const StepGraph::Compute compute = [&learner](const MicroBatch& input) {
    const torch::Tensor outputs = learner.model->forward(input.batch.images), loss = outputs.sum();
    (loss / static_cast<double>(input.planned_images)).backward();
    return PassResult{outputs, loss};
  };
  MicroBatch input;
  input.batch.images = at::ones({2, 3, 32, 32});
  input.batch.labels = at::zeros({2}, at::kLong);
  const auto replays_of = [&](int64_t batches, int64_t planned_images) {
    input.planned_images = planned_images;
    const int64_t before = graph.replays();
    for (int64_t i = 0; i < batches; ++i) graph.compute(input, compute);
    return graph.replays() - before;
  };
  EXPECT_EQ(replays_of(5, 2), 2);
  EXPECT_EQ(replays_of(63, 4), 0);
  EXPECT_EQ(replays_of(1, 2), 1) << "it did come";
  EXPECT_EQ(replays_of(70, 4), 4) << "63 are computed, then three warm up";
  EXPECT_EQ(recorder.records, 2);
}

TEST(StepGraphTest, WhatCannotBeRecordedIsComputedWithTheSameBits) {
  Trained setup;
  setup.accumulation = 2;
  setup.drop_rate = 0.5;
  fixtures::OperationRecorder recorder;
  recorder.cannot_record = "aten::native_batch_norm";
  const End computed = trained(setup, nullptr), tried = trained(setup, &recorder, /*is_required=*/false);
  expect_same_bits(tried, computed);
  EXPECT_EQ(recorder.records, 0);
  EXPECT_EQ(tried.passes, computed.passes + 1);
}

TEST(StepGraphTest, WhereGraphsAreRequiredWhatCannotBeRecordedEndsTheRun) {
  fixtures::OperationRecorder recorder;
  recorder.cannot_record = "aten::native_batch_norm";
  try {
    trained({}, &recorder);
    FAIL() << "no error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::config);
    EXPECT_NE(std::string(error.what()).find("aten::native_batch_norm"), std::string::npos) << error.what();
  }
}

/// The double itself: a record reads its own tensors, and nothing is done while it is made.
TEST(OperationRecorderTest, DoesNothingWhileItRecordsAndAllAtEachReplay) {
  fixtures::OperationRecorder recorder;
  torch::Tensor in = at::full({3}, 2.0F), count = at::zeros({}), out;
  torch::manual_seed(4);
  int64_t calls = 0;
  const auto record = recorder.record([&] {
    ++calls;
    count.add_(1);
    out = in * 3 + at::empty({3}).uniform_();
  });
  EXPECT_EQ(count.item<float>(), 0);
  EXPECT_TRUE(out.isnan().all().item<bool>());
  for (int replay = 1; replay <= 3; ++replay) {
    in.fill_(static_cast<float>(replay));
    record->replay();
    EXPECT_EQ(count.item<float>(), static_cast<float>(replay));
    EXPECT_TRUE(((out - 3 * replay) < 1).all().item<bool>());
  }
  torch::manual_seed(4);
  torch::Tensor last;
  for (int draw = 0; draw < 3; ++draw) last = at::full({3}, 9.0F) + at::empty({3}).uniform_();
  EXPECT_TRUE(at::equal(out, last)) << "drawn anew each time";
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace stoker::engine::graph_run
