// SPDX-License-Identifier: Apache-2.0
// A proof is found again for the same request alone, and never where others could have written it.
#include "proof/kept_proofs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/temporary_directory.h"

namespace stoker::proof {
namespace {

class KeptProofsTest : public ::testing::Test {
 protected:
  KeptProofsTest() {
    request_.network.name = "small_cnn";
    request_.input = {3, 32, 32};
    request_.passes = {{true, 64, "bfloat16", true, 2}};
    proof_.is_right = true;
    proof_.operations = 52;
    proof_.remedy.isa = "AVX2";
    proof_.faults = {{"convolution", "oneDNN", "output: wrong"}};
  }

  fixtures::TemporaryDirectory place_;
  const std::string folder_ = place_.path() + "/proofs";
  const KeptProofs kept_{folder_};
  const core::Json machine_ = {{"processor", "one"}};
  Request request_;
  Proof proof_;
};

TEST_F(KeptProofsTest, IsFoundAgainWithItsRemedyAndFaults) {
  kept_.keep(machine_, request_, {}, proof_);
  const auto found = kept_.find(machine_, request_, {});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->was_kept);
  EXPECT_EQ(found->operations, 52);
  EXPECT_EQ(found->remedy.isa, "AVX2");
  ASSERT_EQ(found->faults.size(), 1U);
  EXPECT_EQ(found->faults[0].what, "output: wrong");
}

TEST_F(KeptProofsTest, AnotherMachineRequestOrRemedyIsNotFound) {
  kept_.keep(machine_, request_, {}, proof_);
  EXPECT_FALSE(kept_.find({{"processor", "another"}}, request_, {}));
  Request other = request_;
  other.passes[0].images = 65;
  EXPECT_FALSE(kept_.find(machine_, other, {}));
  Remedy before;
  before.onednn_off = true;
  EXPECT_FALSE(kept_.find(machine_, request_, before));
}

TEST_F(KeptProofsTest, WhatIsWrongIsNotKept) {
  proof_.is_right = false;
  kept_.keep(machine_, request_, {}, proof_);
  EXPECT_FALSE(kept_.find(machine_, request_, {}));
}

TEST_F(KeptProofsTest, AFolderThatOthersMayWriteToIsNotBelieved) {
  kept_.keep(machine_, request_, {}, proof_);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  EXPECT_FALSE(kept_.find(machine_, request_, {}));
}

TEST_F(KeptProofsTest, ADamagedFileIsProvenAgain) {
  kept_.keep(machine_, request_, {}, proof_);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::filesystem::resize_file(entry.path(), 40);
  }
  EXPECT_FALSE(kept_.find(machine_, request_, {}));
}

}  // namespace
}  // namespace stoker::proof
