// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/run_identity.h"

#include <gtest/gtest.h>

#include "engine/digest/tensor_digest.h"
#include "tests/engine/checkpoint/tiny_learner.h"
#include "tests/temporary_directory.h"

namespace stoker::engine {
namespace {

class LineageTest : public ::testing::Test {
 protected:
  Checkpoints open() const {
    RunIdentity identity;
    identity.training_options = {{"lr", "0.1", ""}};
    identity.data_fingerprint = "abc";
    identity.program = {{"version", "1"}};
    return Checkpoints({folder_ / "checkpoints", 100}, identity);
  }
  static void save(Checkpoints& checkpoints, int64_t updates, double weight = 1) {
    Learner learner = learner_of(weight);
    RunProgress state;
    state.updates = updates;
    checkpoints.save(state, learner, {});
  }
  std::string path(int64_t updates) const { return CheckpointFiles(folder_ / "checkpoints").path_of(updates); }
  const fixtures::TemporaryDirectory folder_;
};

TEST_F(LineageTest, EachCheckpointNamesTheOneBeforeItAlsoOverAResume) {
  {
    Checkpoints first = open();
    first.files().prepare();
    save(first, 2);
    save(first, 4);
  }
  Checkpoints second = open();
  Learner learner = learner_of(0);
  std::vector<data::BadSample> bad;
  second.load(path(4), learner, bad);
  save(second, 6);
  EXPECT_EQ(read_lineage(path(2)).before.digest, "");
  EXPECT_EQ(read_lineage(path(4)).before.updates, 2);
  EXPECT_EQ(read_lineage(path(4)).before.digest, checkpoint_digest(path(2)));
  EXPECT_EQ(read_lineage(path(6)).before.updates, 4);
  EXPECT_EQ(read_lineage(path(6)).before.digest, checkpoint_digest(path(4)));
}

TEST_F(LineageTest, ACheckpointThatTakesThePlaceOfAnotherHasTheSameOneBeforeIt) {
  Checkpoints checkpoints = open();
  checkpoints.files().prepare();
  save(checkpoints, 2);
  save(checkpoints, 4);
  save(checkpoints, 4, 2);
  save(checkpoints, 5);
  EXPECT_EQ(read_lineage(path(4)).before.digest, checkpoint_digest(path(2)));
  EXPECT_EQ(read_lineage(path(5)).before.digest, checkpoint_digest(path(4)));

  Checkpoints resumed = open();
  Learner learner = learner_of(0);
  std::vector<data::BadSample> bad;
  resumed.load(path(5), learner, bad);
  save(resumed, 5);
  EXPECT_EQ(read_lineage(path(5)).before.digest, checkpoint_digest(path(4)));
}

TEST_F(LineageTest, NamesWeightsProgramOptionsAndData) {
  Checkpoints checkpoints = open();
  checkpoints.files().prepare();
  save(checkpoints, 2, 1);
  const Lineage lineage = read_lineage(path(2));
  EXPECT_EQ(lineage.weights, tensor_digest(model::state_of(*learner_of(1).model)));
  EXPECT_NE(lineage.weights, tensor_digest(model::state_of(*learner_of(2).model)));
  EXPECT_EQ(lineage.program.at("version"), "1");
  EXPECT_EQ(lineage.options.size(), 32u);
  EXPECT_NE(lineage.options, lineage.data);
}

TEST_F(LineageTest, OfAnOlderProgramIsEmpty) {
  EXPECT_EQ(Lineage::from_state(core::Json::object(), "x").weights, "");
  EXPECT_THROW(Lineage::from_state({{"digests", {{"weights", 1}}}}, "x"), core::Error);
}

}  // namespace
}  // namespace stoker::engine
