// SPDX-License-Identifier: Apache-2.0
#include "core/system/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

namespace stoker::core {
namespace {

TEST(ThreadTeamTest, EveryMemberWorksOnceOnItsOwnThread) {
  std::vector<std::thread::id> prepared(4);
  std::vector<std::thread::id> threads(4);
  ThreadTeam team(4, [&](int64_t member) { prepared[static_cast<size_t>(member)] = std::this_thread::get_id(); });
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> calls{0};
    team.run([&](int64_t member) {
      threads[static_cast<size_t>(member)] = std::this_thread::get_id();
      ++calls;
    });
    EXPECT_EQ(calls, 4);
  }
  EXPECT_EQ(threads[0], std::this_thread::get_id());
  for (size_t member = 1; member < 4; ++member) EXPECT_EQ(threads[member], prepared[member]);
  EXPECT_EQ(std::set<std::thread::id>(threads.begin(), threads.end()).size(), 4u);
}

TEST(ThreadTeamTest, EveryPieceIsDoneOnce) {
  ThreadTeam team(3);
  std::vector<std::atomic<int>> done(1000);
  team.for_each(1000, [&](int64_t piece) { ++done[static_cast<size_t>(piece)]; });
  for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
  team.for_each(0, [](int64_t) { FAIL(); });
}

TEST(ThreadTeamTest, WithoutATeamTheCallerDoesThePiecesInOrder) {
  std::vector<int64_t> done;
  ThreadTeam::for_each_on(nullptr, 4, [&](int64_t piece) { done.push_back(piece); });
  EXPECT_EQ(done, (std::vector<int64_t>{0, 1, 2, 3}));
  ThreadTeam team(2);
  std::atomic<int> pieces{0};
  ThreadTeam::for_each_on(&team, 7, [&](int64_t) { ++pieces; });
  EXPECT_EQ(pieces, 7);
}

TEST(ThreadTeamTest, WhatTheFirstMemberThrewIsThrownOnceAllHaveReturned) {
  ThreadTeam team(4);
  std::atomic<int> returned{0};
  for (int round = 0; round < 20; ++round) {
    try {
      team.run([&](int64_t member) {
        if (member == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (member == 1 || member == 3) throw std::runtime_error(member == 1 ? "one" : "three");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ++returned;
      });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "one");
    }
  }
  EXPECT_EQ(returned, 40);
  team.run([&](int64_t) { ++returned; });
  EXPECT_EQ(returned, 44) << "the team goes on";
}

TEST(ThreadTeamTest, AfterAPieceHasThrownNoFurtherOneBegins) {
  ThreadTeam team(2);
  std::atomic<int> begun{0};
  EXPECT_THROW(team.for_each(1'000'000,
                             [&](int64_t) {
                               ++begun;
                               throw std::runtime_error("piece");
                             }),
               std::runtime_error);
  EXPECT_LE(begun, 2);
}

TEST(ThreadTeamTest, OneMemberIsTheCaller) {
  ThreadTeam team(1);
  int64_t sum = 0;
  team.for_each(5, [&](int64_t piece) { sum += piece; });
  EXPECT_EQ(sum, 10);
}

}  // namespace
}  // namespace stoker::core
