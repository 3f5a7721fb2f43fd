// SPDX-License-Identifier: Apache-2.0
// Checkpoints that are written while training continues.
#include <gtest/gtest.h>

#include <cerrno>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "core/log.h"
#include "engine/checkpoint/saving_thread.h"
#include "tests/engine/checkpoint/tiny_learner.h"
#include "tests/faulty_file_system.h"
#include "tests/temporary_directory.h"

namespace stoker::engine {
namespace {

using fixtures::TemporaryDirectory;

/// Whoever makes the folder of a checkpoint waits for open_gate().
class GatedFileSystem : public fixtures::FaultyFileSystem {
 public:
  using FaultyFileSystem::FaultyFileSystem;
  void close_gate() { set(false); }
  void open_gate() { set(true); }
  int make_directory(const std::string& path) override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return is_open_; });
    return FaultyFileSystem::make_directory(path);
  }

 private:
  void set(bool is_open) {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
};

class AsynchronousSaveTest : public ::testing::Test {
 protected:
  AsynchronousSaveTest() {
    core::set_console_level(core::LogLevel::error);
    checkpoints_->files().prepare();
  }
  ~AsynchronousSaveTest() override {
    files_.open_gate();
    core::set_console_level(core::LogLevel::info);
  }

  static RunProgress at(int64_t updates) {
    RunProgress state;
    state.updates = updates;
    return state;
  }
  void begin(int64_t updates) { checkpoints_->begin_save(at(updates), learner_, {}); }
  double saved_weight(int64_t updates) {
    Learner loaded = learner_of(-1);
    std::vector<data::BadSample> bad;
    checkpoints_->load(checkpoints_->files().path_of(updates), loaded, bad);
    return weight_of(loaded);
  }
  void set_weights(double value) {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& weight : learner_.model->parameters()) weight.fill_(value);
  }

  const TemporaryDirectory folder_;
  GatedFileSystem files_{folder_.path()};
  std::unique_ptr<Checkpoints> checkpoints_ = std::make_unique<Checkpoints>(
      Checkpoints::Settings{folder_ / "checkpoints", 2, true, /*space_check=*/false, &files_}, RunIdentity{});
  Learner learner_ = learner_of(1);
};

TEST_F(AsynchronousSaveTest, WhatIsWrittenIsWhatWasThereWhenTheSaveBegan) {
  files_.close_gate();
  begin(1);
  EXPECT_FALSE(checkpoints_->take_saved()) << "nothing is written yet, and nobody waited for it";
  set_weights(7);  // training continues
  files_.open_gate();
  const std::optional<CheckpointEvent> saved = checkpoints_->finish_save();
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->updates, 1);
  EXPECT_EQ(saved_weight(1), 1);
  EXPECT_FALSE(checkpoints_->finish_save()) << "its end is reported once";
  begin(2);
  checkpoints_->finish_save();
  EXPECT_EQ(saved_weight(2), 7);
}

TEST_F(AsynchronousSaveTest, AFailedWriteIsThrownWhereItsEndIsAskedForAndTheNextSaveWorks) {
  begin(1);
  checkpoints_->finish_save();
  files_.fail_call(files_.calls() + 5, ENOSPC);
  begin(2);
  try {
    checkpoints_->finish_save();
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::io);
  }
  EXPECT_EQ(checkpoints_->files().list(), std::vector<int64_t>{1});
  begin(3);
  EXPECT_EQ(checkpoints_->finish_save()->updates, 3);
}

TEST_F(AsynchronousSaveTest, WeightsThatAreNotFiniteAreNotWritten) {
  for (const double weight : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    set_weights(weight);
    begin(1);
    try {
      checkpoints_->finish_save();
      FAIL();
    } catch (const core::Error& error) {
      EXPECT_EQ(error.kind(), core::ErrorKind::diverged);
    }
    EXPECT_TRUE(checkpoints_->files().list().empty());
  }
  set_weights(std::numeric_limits<float>::max());
  begin(1);
  EXPECT_TRUE(checkpoints_->finish_save());
}

TEST_F(AsynchronousSaveTest, TheEndOfARunWaitsForTheSaveThatIsUnderWay) {
  begin(1);
  checkpoints_.reset();
  EXPECT_EQ(verify_checkpoint(folder_ / "checkpoints/step-00000001").updates, 1);
}

TEST_F(AsynchronousSaveTest, TheSameBytesAreWrittenWithoutACopy) {
  const TemporaryDirectory other;
  Checkpoints at_once({other / "checkpoints", 2, true, false, &core::posix_file_system(), /*asynchronous=*/false},
                      RunIdentity{});
  at_once.files().prepare();
  at_once.save(at(1), learner_, {});
  begin(1);
  checkpoints_->finish_save();
  const Manifest ours = read_manifest(folder_ / "checkpoints/step-00000001"),
                 theirs = read_manifest(other / "checkpoints/step-00000001");
  for (const auto& [name, record] : theirs.files) EXPECT_EQ(ours.files.at(name).digest, record.digest) << name;
}

TEST(StagingTest, CopiesKeepValuesAndStridesAndTheBlockStays) {
  Staging staging(torch::kCPU);
  const torch::Tensor last = torch::randn({3, 4, 5, 2}).contiguous(torch::MemoryFormat::ChannelsLast);
  const torch::Tensor strided = torch::randn({8, 8}).slice(1, 0, 8, 2);
  const std::vector<std::vector<NamedTensor>> groups = {
      {{"last", last}, {"bytes", torch::arange(7, torch::kUInt8)}, {"none", torch::empty({0, 3})}},
      {},
      {{"strided", strided},
       {"scalar", torch::tensor(3.5, torch::kFloat64)},
       {"half", torch::ones({3}, torch::kHalf)}}};
  const auto copies = staging.copy(groups);
  ASSERT_EQ(copies.size(), 3u);
  for (size_t g = 0; g < groups.size(); ++g) {
    ASSERT_EQ(copies[g].size(), groups[g].size());
    for (size_t i = 0; i < groups[g].size(); ++i) {
      EXPECT_TRUE(copies[g][i].tensor.equal(groups[g][i].tensor)) << groups[g][i].name;
      EXPECT_EQ(copies[g][i].tensor.scalar_type(), groups[g][i].tensor.scalar_type());
      EXPECT_FALSE(copies[g][i].tensor.is_alias_of(groups[g][i].tensor));
    }
  }
  EXPECT_EQ(copies[0][0].tensor.strides(), last.strides()) << "nothing is reordered while training waits";
  const void* const before = copies[0][0].tensor.data_ptr();
  EXPECT_EQ(staging.copy(groups)[0][0].tensor.data_ptr(), before);
}

}  // namespace
}  // namespace stoker::engine
