// SPDX-License-Identifier: Apache-2.0
#include "core/format.h"

#include <gtest/gtest.h>

namespace stoker::core {
namespace {

TEST(FormatTest, BytesUsePowersOfThousand) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(18400000), "18.4 MB");
  EXPECT_EQ(bytes_text(999960), "1.0 MB");
}

TEST(FormatTest, DurationsGrowTheirUnits) {
  EXPECT_EQ(duration_text(4.21), "4.2s");
  EXPECT_EQ(duration_text(192), "3m12s");
  EXPECT_EQ(duration_text(7500), "2h05m");
  EXPECT_EQ(duration_text(1.0 / 0.0), "n/a");
}

TEST(FormatTest, CountsHaveSeparators) {
  EXPECT_EQ(count_text(60000), "60,000");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(-1234567), "-1,234,567");
  EXPECT_EQ(counted(1, "epoch"), "1 epoch");
  EXPECT_EQ(counted(2000, "epoch"), "2,000 epochs");
}

TEST(FormatTest, AnEndIsFoundWhereTheTextIsAsLongAtLeast) {
  EXPECT_TRUE(ends_with("a.h5", ".h5"));
  EXPECT_TRUE(ends_with(".h5", ".h5"));
  EXPECT_FALSE(ends_with("h5", ".h5"));
  EXPECT_FALSE(ends_with("a.h5.part", ".h5"));
}

TEST(FormatTest, ListsSayHowManyWereLeftOut) {
  EXPECT_EQ(list_text({"a"}), "a");
  EXPECT_EQ(list_text({"a", "b"}), "a and b");
  EXPECT_EQ(list_text({"a", "b", "c", "d"}, 2), "a, b and 2 more");
}

TEST(FormatTest, NearestNameFindsTyposOnly) {
  EXPECT_EQ(nearest_name("batchsize", {"batch-size", "epochs"}), "batch-size");
  EXPECT_EQ(nearest_name("zzzzzz", {"batch-size", "epochs"}), "");
}

TEST(FormatTest, PrintableEscapesControlCharactersAndInvalidUtf8) {
  EXPECT_EQ(printable("a\nb"), "a\\x0ab");
  EXPECT_EQ(printable("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(printable("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a lone surrogate is not UTF-8";
  EXPECT_EQ(printable("\x1b[2J \xc2\x9b"
                      "2J \xc2\xa0"),
            "\\x1b[2J \\xc2\\x9b2J \xc2\xa0")
      << "U+009B begins a sequence, too";
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "gnp \xe2\x81\xa7 \xe2\x80\x9d"),
            "a\\xe2\\x80\\xaegnp \\xe2\\x81\\xa7 \xe2\x80\x9d")
      << "U+202E shows what follows from right to left";
  EXPECT_EQ(terminal_text("a\n\tb\x07\r"), "a\n\tb\\x07\\x0d");
}

TEST(FormatTest, AShellReadsAWordBackAsItWas) {
  EXPECT_EQ(shell_word("runs/a-1/x.yaml"), "runs/a-1/x.yaml");
  EXPECT_EQ(shell_word("my photos"), "'my photos'");
  EXPECT_EQ(shell_word("it's *"), "'it'\\''s *'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a\nb"), "'a\\x0ab'");
}

}  // namespace
}  // namespace stoker::core
