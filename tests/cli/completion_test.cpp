// SPDX-License-Identifier: Apache-2.0
// Files that the program writes about itself are valid for their readers: bash, zsh, fish, groff.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

bool has(const char* program) {
  return std::system((std::string("command -v ") + program + " >/dev/null").c_str()) == 0;
}

class CompletionTest : public ::testing::Test {
 protected:
  void write(const Words& words, const std::string& file) {
    const Ended ended = run(words, work_.path());
    ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
    work_.write(file, ended.out);
  }
  /// The completions of bash for a command line; the last word is the one that is completed.
  std::string offered(const std::string& words) {
    work_.write("ask.bash",
                "source train.bash\nCOMP_WORDS=(" + words +
                    ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_train\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
    const int status = std::system(("cd " + work_.path() + " && bash -u ask.bash > offered 2>&1").c_str());
    EXPECT_EQ(status, 0) << content_of_file(work_ / "offered");
    return "\n" + content_of_file(work_ / "offered");
  }

  const Workplace work_;
};

TEST_F(CompletionTest, BashOffersCommandsFlagsValuesAndRuns) {
  if (!has("bash")) GTEST_SKIP();
  write({"list", "completion", "bash"}, "train.bash");
  EXPECT_NE(offered("train ev").find("\neval\n"), std::string::npos);
  EXPECT_NE(offered("train --batch-s").find("\n--batch-size\n"), std::string::npos);
  EXPECT_EQ(offered("train predict --lr-").find("--lr-base"), std::string::npos) << "predict does not take it";
  EXPECT_NE(offered("train --model resnet1").find("\nresnet18\n"), std::string::npos);
  EXPECT_NE(offered("train --opt = s").find("\nsgd\n"), std::string::npos);
  EXPECT_NE(offered("train --preset ''").find('/'), std::string::npos);
  work_.write("runs/shop/checkpoints/best", "");
  EXPECT_NE(offered("train eval sh").find("\nruns/shop\n"), std::string::npos);
  EXPECT_NE(offered("train --data-dir ru").find("\nruns\n"), std::string::npos);
}

TEST_F(CompletionTest, ZshAndFishUnderstandTheirs) {
  write({"list", "completion", "zsh"}, "_train");
  write({"list", "completion", "fish"}, "train.fish");
  EXPECT_TRUE(!has("zsh") || std::system(("zsh -n " + (work_ / "_train")).c_str()) == 0);
  EXPECT_TRUE(!has("fish") || std::system(("fish -n " + (work_ / "train.fish")).c_str()) == 0);
  const std::string zsh = content_of_file(work_ / "_train"), fish = content_of_file(work_ / "train.fish");
  EXPECT_EQ(zsh.rfind("#compdef train\n", 0), 0u);
  EXPECT_NE(zsh.find("'--batch-size=["), std::string::npos);
  EXPECT_NE(fish.find(" -l batch-size"), std::string::npos);
  EXPECT_EQ(run({"list", "completion", "tcsh"}, work_.path()).exit_code, 64);
}

TEST_F(CompletionTest, GroffReadsTheManualPageWithoutAWarning) {
  if (!has("groff")) GTEST_SKIP();
  write({"list", "options", "--format", "man"}, "train.1");
  const std::string command = "cd " + work_.path() + " && groff -man -ww -Tutf8 train.1 > page 2> warnings";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(content_of_file(work_ / "warnings"), "");
  EXPECT_NE(content_of_file(work_ / "page").find("STOKER_EXIT_CODE"), std::string::npos);
}

}  // namespace
}  // namespace stoker::cli
