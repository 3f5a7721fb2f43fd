// SPDX-License-Identifier: Apache-2.0
// The private folder in which ranks of one machine meet: who is there, who is gone, and what earlier jobs left.
#include "engine/group/rendezvous.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

namespace stoker::engine {
namespace {

namespace fs = std::filesystem;
using Doing = Heartbeat::Doing;

/// In a TMPDIR of its own.
class RendezvousTest : public testing::Test {
 protected:
  RendezvousTest() {
    const char* const before = std::getenv("TMPDIR");
    if (before != nullptr) before_ = before;
    std::string name = (fs::temp_directory_path() / "rendezvous-XXXXXX").string();
    place_ = ::mkdtemp(name.data());
    ::setenv("TMPDIR", place_.c_str(), 1);
  }
  ~RendezvousTest() override {
    if (before_.empty())
      ::unsetenv("TMPDIR");
    else
      ::setenv("TMPDIR", before_.c_str(), 1);
    fs::remove_all(place_);
  }
  static std::unique_ptr<RendezvousFolder> come(int rank, double seconds = 0, const std::string& name = "job") {
    return std::make_unique<RendezvousFolder>(name, rank, /*size=*/2, seconds);
  }
  /// The error of the rank.
  static std::pair<int, std::string> refusal_of(int rank) {
    try {
      come(rank);
    } catch (const core::Error& error) {
      return {core::exit_code(error.kind()), error.what()};
    }
    return {};
  }
  std::string folder() const { return place_ + "/stoker-" + std::to_string(::geteuid()); }

  std::string place_, before_;
};

TEST_F(RendezvousTest, RanksSeeWhatOthersSayAndWhoIsThere) {
  const auto one = come(0);
  EXPECT_FALSE(one->heartbeat_of(1).is_present());
  const auto other = come(1);
  EXPECT_TRUE(one->heartbeat_of(1).is_present());
  other->send_heartbeat({7, Doing::waits, 4711});
  EXPECT_EQ(one->heartbeat_of(1).number, 7);
  EXPECT_EQ(one->heartbeat_of(1).doing, Doing::waits);
  EXPECT_EQ(one->heartbeat_of(1).process, 4711);
  EXPECT_EQ(one->cause(), "");
  EXPECT_EQ(other->publish_cause("first"), "first");
  EXPECT_EQ(one->publish_cause("second"), "first");
  EXPECT_EQ(one->cause(), "first");
}

TEST_F(RendezvousTest, ARankThatIsGoneWithoutAWordIsDead) {
  const auto stays = come(0);
  EXPECT_FALSE(stays->is_dead(1)) << "it has not come";
  auto other = come(1);
  EXPECT_FALSE(stays->is_dead(1));
  other.reset();
  EXPECT_TRUE(stays->is_dead(1));
  EXPECT_FALSE(stays->is_dead(0)) << "oneself";
}

TEST_F(RendezvousTest, ARankThatSaysThatItEndsIsNotDead) {
  const auto stays = come(0);
  come(1)->send_heartbeat({2, Doing::ended, 1});
  EXPECT_FALSE(stays->is_dead(1));
}

TEST_F(RendezvousTest, ASecondRankOfOneNumberIsRefusedWithoutHarmToTheFirst) {
  const auto first = come(0), other = come(1);
  first->send_heartbeat({5, Doing::waits, 4711});
  const auto [code, message] = refusal_of(0);
  EXPECT_EQ(code, 78);
  EXPECT_EQ(message, "rank 0 of 2 is here already, as process 4711");
  EXPECT_EQ(other->heartbeat_of(0).number, 5);
  EXPECT_FALSE(other->is_dead(0));
  EXPECT_EQ(other->cause(), "");
}

TEST_F(RendezvousTest, NothingOfADeadJobIsMet) {
  {
    const auto one = come(0), other = come(1);
    one->publish_cause("the disk was full");
    fs::copy(folder(), place_ + "/kept", fs::copy_options::recursive);
  }
  EXPECT_FALSE(fs::exists(folder() + "/job")) << "the last one removes the folder";
  fs::rename(place_ + "/kept/job", folder() + "/job");  // as after SIGKILL to all
  fs::rename(place_ + "/kept", folder() + "/another job");
  const auto one = come(0);
  EXPECT_EQ(one->cause(), "");
  EXPECT_FALSE(one->heartbeat_of(1).is_present());
  EXPECT_FALSE(fs::exists(folder() + "/another job"));
}

TEST_F(RendezvousTest, AnEarlierJobOfTheSameNameIsWaitedForAndNotJoined) {
  auto of_earlier = come(0);
  come(1)->send_heartbeat({2, Doing::ended, 1});
  EXPECT_EQ(refusal_of(1).first, 76) << "rank 0 is still there";
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    of_earlier->publish_cause("it was lost");
    of_earlier.reset();
  });
  const auto next = come(1, /*seconds=*/60);
  ends.join();
  EXPECT_EQ(next->cause(), "");
  EXPECT_FALSE(next->heartbeat_of(0).is_present());
}

TEST_F(RendezvousTest, WhatTheStarterOfTheRanksHoldsIsNoEarlierJob) {
  const auto starter = come(2);
  come(0)->publish_cause("rank 0 failed: stopped by SIGTERM");
  EXPECT_EQ(come(1)->cause(), "rank 0 failed: stopped by SIGTERM");
}

TEST_F(RendezvousTest, TwoJobsMeetBesideEachOther) {
  const auto one = come(0, 0, "job"), other = come(0, 0, "another");
  one->publish_cause("lost");
  EXPECT_EQ(other->cause(), "");
  EXPECT_NE(one->path(), other->path());
}

TEST_F(RendezvousTest, NobodyElseCanEnterTheFolder) {
  const auto one = come(0);
  struct stat info {};
  for (const std::string& path : {folder(), one->path()}) {
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u) << path;
  }
  ASSERT_EQ(::chmod(folder().c_str(), 0750), 0);
  const auto [code, message] = refusal_of(1);
  EXPECT_EQ(code, 77);
  EXPECT_EQ(message.rfind("others may enter " + folder(), 0), 0u) << message;
}

TEST_F(RendezvousTest, ALinkInPlaceOfTheFolderIsNotFollowed) {
  fs::create_directory(place_ + "/elsewhere");
  fs::create_directory_symlink(place_ + "/elsewhere", folder());
  EXPECT_NE(refusal_of(0).first, 0);
  EXPECT_TRUE(fs::is_empty(place_ + "/elsewhere"));
}

}  // namespace
}  // namespace stoker::engine
