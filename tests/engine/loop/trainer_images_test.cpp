// SPDX-License-Identifier: Apache-2.0
// Updates that do not see what was planned: memory runs out, images are skipped.
#include "loop/tiny_run.h"

namespace stoker::engine {
namespace {

using namespace tiny_run;

using TrainerImagesTest = TrainerTest;

/// 7 updates in an epoch, each but its last of two batches of 8; from the second batch of update 6 on there is memory
/// for 3 images at once.
TinyOptions tight_options() {
  TinyOptions options;
  options.batch_size = 8;
  options.accumulation = 2;
  options.memory = {/*unlimited_passes=*/11, /*images_at_once=*/3};
  options.auto_micro_batch = true;
  options.mix.mixup_alpha = 0.4;
  return options;
}

TEST_F(TrainerImagesTest, WhenMemoryRunsOutTheUpdateIsDoneAgainInSmallerMicroBatches) {
  TinyRun tight(folder_ / "tight", tight_options());
  const FinishEvent finish = tight.go();
  TinyOptions unlimited_options = tight_options();
  unlimited_options.memory = {};
  TinyRun unlimited(folder_ / "unlimited", unlimited_options);
  EXPECT_EQ(finish.updates, unlimited.go().updates) << "an update sees as many images as before";
  EXPECT_TRUE(torch::allclose(tight.weight(), unlimited.weight(), 1e-5, 1e-6));
  EXPECT_FALSE(torch::equal(tight.weight(), unlimited.weight())) << "no micro-batch was ever smaller";
  EXPECT_EQ(tight.trained_on(), 3 * 103) << "what the failed update had done is undone";
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(tight.recorder_.epochs[i].images, 103);
    EXPECT_NEAR(tight.recorder_.epochs[i].train_loss, unlimited.recorder_.epochs[i].train_loss, 1e-5);
  }
}

TEST_F(TrainerImagesTest, AResumeGoesOnWithTheMicroBatchesThatItsCheckpointHas) {
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
    after.memory.unlimited_passes -= 2 * update;  // of the second process
    if (update >= 6) after.memory = {};           // nothing runs out any more: the checkpoint has the micro-batches
    TinyRun second(folder, after);
    second.go();
    EXPECT_TRUE(torch::equal(second.weight(), wanted)) << "stopped after update " << update;
  }
}

TEST_F(TrainerImagesTest, OutOfMemoryIsNotMendedUnaskedNorWithoutEnd) {
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

TEST_F(TrainerImagesTest, ASkippedImageLeavesTheMeanOverTheOthers) {
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

TEST_F(TrainerImagesTest, ABatchThatSkippingLeavesWithOneImageIsLeftOutWhereBatchNormCannotTrainOnIt) {
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

TEST_F(TrainerImagesTest, NoAlgorithmsAreSearchedForTheShortBatchOfAnEpoch) {
  at::globalContext().setBenchmarkCuDNN(true);
  TinyRun run(folder_ / "run", TinyOptions{});  // 103 images in batches of 8
  run.go();
  EXPECT_EQ(run.searches(), (std::map<int64_t, bool>{{8, true}, {7, false}}));
  EXPECT_TRUE(at::globalContext().benchmarkCuDNN());
  at::globalContext().setBenchmarkCuDNN(false);
}

}  // namespace
}  // namespace stoker::engine
