// SPDX-License-Identifier: Apache-2.0
// Memory that runs out while operations are tried is no fault of a library. The process that tries them is a script
// here.
#include "proof/trial.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/temporary_directory.h"

namespace stoker::proof {
namespace {

/// The proof by a process that begins with an operation and ends as `end`, a line of a shell script, does.
Proof proof_that_ends(const std::string& end) {
  const fixtures::TemporaryDirectory folder;
  ProverSettings settings;
  settings.program = folder.write(
      "prover",
      "#!/bin/sh\ncat > /dev/null\necho '{\"operations\": 1}'\n"
      "echo '{\"begin\": \"k\", \"family\": \"f\", \"text\": \"convolution\", \"ways\": [], \"library\": \"oneDNN\", "
      "\"calls\": 1}'\n" +
          end + "\n");
  std::filesystem::permissions(settings.program, std::filesystem::perms::owner_all);
  return prove({}, {}, settings);
}

TEST(TrialTest, MemoryThatRunsOutIsAnObstacleAndNoFaultOfTheLibrary) {
  for (const char* const end :
       {"echo '{\"error\": \"cannot allocate\", \"out_of_memory\": true}'; exit 1", "kill -9 $$"}) {
    const Proof proof = proof_that_ends(end);
    EXPECT_FALSE(proof.is_right) << end;
    EXPECT_FALSE(proof.obstacle.empty()) << end;
    EXPECT_TRUE(proof.faults.empty()) << end << ": " << proof.faults.front().what;
    EXPECT_EQ(proof.untried, 1) << end;
  }
}

TEST(TrialTest, ACrashIsAFaultOfTheLibrary) {
  const Proof proof = proof_that_ends("kill -FPE $$");
  ASSERT_EQ(proof.faults.size(), 1u);
  EXPECT_EQ(proof.faults.front().what, "SIGFPE");
  EXPECT_EQ(proof.obstacle, "");
}

}  // namespace
}  // namespace stoker::proof
