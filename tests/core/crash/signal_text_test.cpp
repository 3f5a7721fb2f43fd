// SPDX-License-Identifier: Apache-2.0
#include "core/crash/signal_text.h"

#include <gtest/gtest.h>

#include "core/format.h"

namespace stoker::core {
namespace {

TEST(SignalTextTest, IsTextNumbersAndNames) {
  SignalText<64> text;
  text.add("exit=").add(uint64_t{136}).add(' ').add(uint64_t{0}).add(' ').add(uint64_t{7}, 3).add(' ');
  text.add_printable("a b\xff.so");
  EXPECT_STREQ(text.text(), "exit=136 0 007 a\\x20b\\xff.so");
  EXPECT_EQ(text.size(), std::string(text.text()).size());
}

TEST(SignalTextTest, CutsWhatDoesNotFit) {
  SignalText<4> text;
  text.add("123").add("456").add(uint64_t{7});
  EXPECT_STREQ(text.text(), "1234");
  EXPECT_EQ(text.size(), 4u);
}

TEST(SignalTextTest, KnowsTheDateOfEachDay) {
  constexpr uint64_t kDay = 86'400, kDaysOf450Years = 164'362;
  for (uint64_t day = 0; day < kDaysOf450Years; ++day) {
    const uint64_t seconds = day * kDay + day % kDay;
    SignalText<64> text;
    text.add_utc(seconds);
    ASSERT_EQ(text.text(), utc_text(static_cast<int64_t>(seconds)));
  }
}

}  // namespace
}  // namespace stoker::core
