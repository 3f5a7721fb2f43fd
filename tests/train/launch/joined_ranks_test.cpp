// SPDX-License-Identifier: Apache-2.0
#include "train/launch/joined_ranks.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace stoker::train {
namespace {

/// Two ranks, this one is rank 1: rank 0 brings `of_root` to the first gather(); the second fails where `loses_rank`.
class ScriptedGroup : public engine::Group {
 public:
  ScriptedGroup(std::string of_root, bool loses_rank, int& gathers)
      : of_root_(std::move(of_root)), loses_rank_(loses_rank), gathers_(gathers) {}
  int rank() const override { return 1; }
  int size() const override { return 2; }
  void sum(const std::vector<at::Tensor>&) override {}
  std::string from_root(const std::string&) override { return of_root_; }
  std::vector<std::string> gather(const std::string& bytes) override {
    if (++gathers_ == 2 && loses_rank_) throw core::Error(core::ErrorKind::peer_lost, "rank 0 is gone");
    return {of_root_, bytes};
  }
  bool abort(const std::string&) noexcept override { return true; }

 private:
  const std::string of_root_;
  const bool loses_rank_;
  int& gathers_;
};

struct Refusal {
  std::string message;  ///< empty: not refused
  core::ErrorKind kind = core::ErrorKind::bug;
  int gathers = 0;
};

/// Rank 0 has `of_root` under the name "lr", this one 0.1, and `more`.
Refusal refusal(const std::string& of_root, bool loses_rank = false,
                const std::vector<std::pair<std::string, std::string>>& more = {}) {
  Refusal refusal;
  RankLocation place;
  place.rank = 1;
  place.size = 2;
  const JoinedRanks ranks(place,
                          std::make_unique<ScriptedGroup>("{\"lr\":\"" + of_root + "\"}", loses_rank, refusal.gathers));
  try {
    std::vector<std::pair<std::string, std::string>> values = {{"lr", "0.1"}};
    values.insert(values.end(), more.begin(), more.end());
    ranks.refuse_differences(values);
  } catch (const core::Error& error) {
    refusal.message = error.what();
    refusal.kind = error.kind();
  }
  return refusal;
}

TEST(JoinedRanksTest, EqualValuesAreComparedInOneExchange) {
  const Refusal equal = refusal("0.1");
  EXPECT_EQ(equal.message, "");
  EXPECT_EQ(equal.gathers, 1);
}

TEST(JoinedRanksTest, AValueThatRank0LacksIsADifference) {
  const Refusal different = refusal("0.1", /*loses_rank=*/false, {{"mixup", "0.2"}});
  EXPECT_NE(different.message.find("mixup: rank 1 has 0.2, rank 0 (not set)"), std::string::npos) << different.message;
}

TEST(JoinedRanksTest, ADifferenceIsRefusedOnceAllRanksHaveIt) {
  const Refusal different = refusal("0.2");
  EXPECT_NE(different.message.find("lr: rank 1 has 0.1, rank 0 0.2"), std::string::npos) << different.message;
  EXPECT_EQ(different.kind, core::ErrorKind::config);
  EXPECT_EQ(different.gathers, 2) << "else another rank may still wait for the values when this one ends";
}

TEST(JoinedRanksTest, ARankThatIsLostMeanwhileDoesNotHideTheDifference) {
  const Refusal different = refusal("0.2", /*loses_rank=*/true);
  EXPECT_EQ(different.kind, core::ErrorKind::config) << different.message;
  EXPECT_EQ(different.gathers, 2);
}

}  // namespace
}  // namespace stoker::train
