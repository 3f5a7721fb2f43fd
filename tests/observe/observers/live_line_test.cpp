// SPDX-License-Identifier: Apache-2.0
#include "observe/observers/console.h"

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

TEST(LiveLineTest, ABarTakesTheColumnsThatAreLeft) {
  const std::vector<LinePart> parts = {{"one", 0, false, "1"}, {"", 1, false, "32", 0.5}, {"two", 2}};
  EXPECT_EQ(whole_line(parts), "one  two");
  EXPECT_EQ(fit_line(parts, 20), "one  [====>   ]  two");
  EXPECT_EQ(fit_line(parts, 18), "one  [===>  ]  two");
  EXPECT_EQ(fit_line(parts, 17), "one  [=====>    ]");
  EXPECT_EQ(fit_line(parts, 12), "one");
  EXPECT_EQ(fit_line(parts, 18, /*in_colour=*/true), "\x1b[1mone\x1b[0m  \x1b[32m[===>  ]\x1b[0m  two");
  EXPECT_EQ(fit_line({{"", 0, false, "", 1.0}}, 8), "[======]");
}

TEST(LiveLineTest, CutsAtCharactersNotBytes) {
  EXPECT_EQ(cut_to_columns("abcdef", 3), "abc");
  EXPECT_EQ(cut_to_columns("abc", 3), "abc");
  EXPECT_EQ(cut_to_columns("a\xc3\xa9z", 2), "a\xc3\xa9");
  EXPECT_EQ(character_count("a\xc3\xa9z"), 3);
}

}  // namespace
}  // namespace stoker::observe
