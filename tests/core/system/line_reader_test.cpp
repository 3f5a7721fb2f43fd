// SPDX-License-Identifier: Apache-2.0
#include "core/system/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/error.h"
#include "tests/temporary_directory.h"

namespace stoker::core {
namespace {

using Lines = std::vector<std::string>;

class LineReaderTest : public testing::Test {
 protected:
  Lines read(const std::string& text, uint64_t max_line_bytes = 1 << 20) const {
    LineReader reader(folder_.write("x.txt", text), max_line_bytes);
    Lines lines;
    for (std::string line; reader.next(line);) lines.push_back(line);
    return lines;
  }
  ErrorKind kind_of_failure(const std::string& name) const {
    try {
      LineReader(folder_ / name, 10);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::bug;  // it was opened
  }

  const fixtures::TemporaryDirectory folder_;
};

TEST_F(LineReaderTest, LinesEndWithLfAndTheLastOneNeedsNone) {
  EXPECT_EQ(read(""), Lines());
  EXPECT_EQ(read("\n"), Lines({""}));
  EXPECT_EQ(read("a\n\nb\r\nc"), Lines({"a", "", "b\r", "c"}));
  EXPECT_EQ(read(std::string("a\0b\n", 4)), Lines({std::string("a\0b", 3)}));
}

TEST_F(LineReaderTest, LinesMayBeLongerThanABlock) {
  const std::string longer(200'000, 'x'), as_long_as_a_block(65'535, 'y');
  EXPECT_EQ(read(as_long_as_a_block + "\n" + longer + "\nend\n"), Lines({as_long_as_a_block, longer, "end"}));
}

TEST_F(LineReaderTest, ALineThatIsTooLongIsRefusedWithItsNumber) {
  EXPECT_EQ(read("12345\n12345\n", 5), Lines({"12345", "12345"}));
  try {
    read("12345\n123456\n", 5);
    FAIL() << "was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_EQ(std::string(error.what()), folder_ / "x.txt" + ":2: line longer than 5 bytes");
  }
}

TEST_F(LineReaderTest, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  ASSERT_EQ(::mkdir((folder_ / "folder").c_str(), 0700), 0);
  for (const char* const name : {"fifo", "folder", "missing"}) {
    EXPECT_EQ(kind_of_failure(name), ErrorKind::no_input) << name;
  }
}

}  // namespace
}  // namespace stoker::core
