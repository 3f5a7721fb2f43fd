// SPDX-License-Identifier: Apache-2.0
#include "config/table/parse_value.h"

#include <gtest/gtest.h>

namespace stoker::config {
namespace {

const std::vector<std::string> kNames = {"batch-size", "lr", "log", "epochs"};

TEST(SuggestTest, FindsTheNameThatWasMeant) {
  EXPECT_EQ(near_name("bacth-size", kNames), "batch-size");
  EXPECT_EQ(near_name("epoch", kNames), "epochs");
  EXPECT_EQ(suggestion("epoch", kNames, "--"), "; did you mean --epochs?");
}

TEST(SuggestTest, OfEquallyNearNamesTheOneOfSimilarLengthIsTaken) {
  EXPECT_EQ(near_name("adamv", {"adam", "adamw"}), "adamw");
  EXPECT_EQ(near_name("sede", {"std", "seed"}), "seed");
  EXPECT_EQ(near_name("resnet81", {"resnet9", "resnet18", "resnet101"}), "resnet18") << "two letters are swapped";
}

TEST(SuggestTest, ShortWordsOnlyMatchNamesThatBeginAlike) {
  EXPECT_EQ(near_name("lrr", kNames), "lr");
  EXPECT_EQ(near_name("foo", kNames), "");
  EXPECT_EQ(near_name("name", {"amp", "lr"}), "");
  EXPECT_EQ(near_name("x", kNames), "");
}

TEST(SuggestTest, StrangeAndHugeWordsMatchNothing) {
  EXPECT_EQ(near_name("", kNames), "");
  EXPECT_EQ(near_name(std::string(1000000, 'e'), kNames), "");
  EXPECT_EQ(suggestion("completely-different", kNames), "");
}

}  // namespace
}  // namespace stoker::config
