// SPDX-License-Identifier: Apache-2.0
#include "core/long_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/log.h"

namespace stoker::core {
namespace {

/// Lines of the log and of the live line while it lives.
class Shown {
 public:
  explicit Shown(bool has_live_line) {
    set_console_writer(
        [this](LogLevel, std::string_view line) {
          const std::lock_guard<std::mutex> lock(mutex_);
          lines_.emplace_back(line);
        },
        [this, has_live_line](std::string_view line) {
          const std::lock_guard<std::mutex> lock(mutex_);
          if (has_live_line) live_.emplace_back(line);
          return has_live_line;
        });
  }
  ~Shown() { set_console_writer(nullptr); }
  Shown& operator=(Shown&&) = delete;  // not copied, not moved

  std::vector<std::string> lines() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lines_;
  }
  std::vector<std::string> live() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return live_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_, live_;
};

template <typename Holds>
bool comes_true(const Holds& holds) {
  for (int i = 0; i < 3000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return holds();
}

constexpr LongStepPace kFast{0.01, 0.01, 0.02, 0.02};

TEST(LongStepTest, WithoutALiveLineTheLogHasWhatIsDoneNowAndThen) {
  Shown shown(/*has_live_line=*/false);
  LongStep step("backend   comparing", kFast);
  step.set_done("12 of 58 operations");
  ASSERT_TRUE(comes_true([&] { return shown.lines().size() >= 2; }));
  EXPECT_EQ(shown.lines().back().rfind("backend   comparing: 12 of 58 operations, ", 0), 0u) << shown.lines().back();
}

TEST(LongStepTest, ALiveLineIsReplacedAndTakenAwayAtTheEnd) {
  Shown shown(/*has_live_line=*/true);
  {
    LongStep step("backend   comparing", kFast);
    ASSERT_TRUE(comes_true([&] { return shown.live().size() >= 2; }));
  }
  EXPECT_EQ(shown.live().back(), "");
  EXPECT_TRUE(shown.lines().empty());
}

TEST(LongStepTest, AnExplanationComesFirstAndOncePerProcess) {
  Shown shown(/*has_live_line=*/false);
  for (int i = 0; i < 2; ++i) {
    LongStep step("backend   comparing", kFast, "backend   checking once");
    ASSERT_TRUE(comes_true([&] { return shown.lines().size() >= static_cast<size_t>(2 + 2 * i); }));
  }
  const std::vector<std::string> lines = shown.lines();
  EXPECT_EQ(lines.front(), "backend   checking once");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), lines.front()), 1);
}

TEST(LongStepTest, AStepThatIsShortShowsNothing) {
  Shown shown(/*has_live_line=*/false);
  { const LongStep step("backend   comparing"); }
  EXPECT_TRUE(shown.lines().empty());
}

}  // namespace
}  // namespace stoker::core
