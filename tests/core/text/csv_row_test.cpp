// SPDX-License-Identifier: Apache-2.0
#include "core/text/csv.h"

#include <gtest/gtest.h>

#include "tests/temporary_directory.h"

namespace stoker::core {
namespace {

TEST(CsvRowTest, QuotesOnlyWhereNeeded) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field(""), "");
}

TEST(CsvRowTest, FieldsAreJoinedWithCommas) {
  EXPECT_EQ(csv_row({"a", "b,c", "", "1.5"}), "a,\"b,c\",,1.5");
  EXPECT_EQ(csv_row({"alone"}), "alone");
  EXPECT_EQ(csv_row({"", ""}), ",");
  EXPECT_EQ(csv_row({}), "");
}

TEST(CsvRowTest, TheReaderReadsWhatWasWritten) {
  const std::vector<std::string> written = {"plain", "a,b", "say \"hi\"", "two\r\nlines", "", "\"", "end"};
  const fixtures::TemporaryDirectory folder;
  CsvReader reader(folder.write("x.csv", csv_row(written) + "\n"));
  std::vector<std::string> read;
  ASSERT_TRUE(reader.next_row(read));
  EXPECT_EQ(read, written);
  EXPECT_FALSE(reader.next_row(read));
}

}  // namespace
}  // namespace stoker::core
