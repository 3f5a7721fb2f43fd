// SPDX-License-Identifier: Apache-2.0
#include "observe/listeners/live_line.h"

#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

const std::vector<LinePart> kParts = {{"one", 0}, {"two", 2}, {"A: 1", 1, true}, {"B: 2", 3, true}};

TEST(LiveLineTest, PartsStandInOrderWithBarsBetweenThoseThatHaveThem) {
  EXPECT_EQ(whole_line(kParts), "one  two  A: 1 | B: 2");
  EXPECT_EQ(whole_line({{"", 0}, {"a", 1}, {"", 2, true}, {"B", 3, true}}), "a  B");
}

TEST(LiveLineTest, TheLeastImportantPartsGoFirst) {
  EXPECT_EQ(fit_line(kParts, 21), "one  two  A: 1 | B: 2");
  EXPECT_EQ(fit_line(kParts, 20), "one  two  A: 1");
  EXPECT_EQ(fit_line(kParts, 13), "one  A: 1");
  EXPECT_EQ(fit_line(kParts, 8), "one");
  EXPECT_EQ(fit_line(kParts, 2), "on");
}

TEST(LiveLineTest, OfEquallyImportantPartsTheRightmostGoesFirst) {
  EXPECT_EQ(fit_line({{"a", 1}, {"b", 1}, {"c", 0}}, 4), "a  c");
}

TEST(LiveLineTest, CutsAtCharactersNotBytes) {
  EXPECT_EQ(cut_to_columns("abcdef", 3), "abc");
  EXPECT_EQ(cut_to_columns("abc", 3), "abc");
  EXPECT_EQ(cut_to_columns("a\xc3\xa9z", 2), "a\xc3\xa9");
  EXPECT_EQ(character_count("a\xc3\xa9z"), 3);
}

}  // namespace
}  // namespace stoker::observe
