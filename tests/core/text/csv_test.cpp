// SPDX-License-Identifier: Apache-2.0
#include "core/text/csv.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "tests/temporary_directory.h"

namespace stoker::core {
namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const std::string& text, std::vector<int64_t>* lines = nullptr) {
  const fixtures::TemporaryDirectory folder;
  CsvReader reader(folder.write("x.csv", text));
  Rows rows;
  for (std::vector<std::string> fields; reader.next_row(fields);) {
    rows.push_back(fields);
    if (lines != nullptr) lines->push_back(reader.line());
  }
  return rows;
}

/// The message behind the folder's name.
std::string csv_error(const std::string& text) {
  try {
    rows_of(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    const std::string message = error.what();
    return message.substr(message.find("x.csv"));
  }
  return "read";
}

TEST(CsvReaderTest, ReadsQuotesByteOrderMarksAndBothLineEnds) {
  std::vector<int64_t> lines;
  EXPECT_EQ(rows_of("\xEF\xBB\xBFpath,label\r\n\"a,b.jpg\",1\r\n\n\"say \"\"hi\"\"\n.jpg\",\nlast,2", &lines),
            Rows({{"path", "label"}, {"a,b.jpg", "1"}, {"say \"hi\"\n.jpg", ""}, {"last", "2"}}));
  EXPECT_EQ(lines, std::vector<int64_t>({1, 2, 4, 6}));
  EXPECT_EQ(rows_of(""), Rows());
  EXPECT_EQ(rows_of(",\n"), Rows({{"", ""}}));
}

TEST(CsvReaderTest, AnErrorHasFileAndLine) {
  EXPECT_EQ(csv_error("a,b\nc\"d,e\n"), "x.csv:2: quote inside an unquoted field");
  EXPECT_EQ(csv_error("a,b\n\"c\nd,e\n"), "x.csv:2: the quote that opens here is never closed");
  EXPECT_EQ(csv_error("\"a\"b\n"), "x.csv:1: text after a closing quote");
  EXPECT_EQ(csv_error("a\rb\n"), "x.csv:1: carriage return inside a row");
  EXPECT_EQ(csv_error(std::string("a\n\0b\n", 5)), "x.csv:2: NUL byte");
  EXPECT_EQ(csv_error("a\n" + std::string(70000, 'x')), "x.csv:2: row longer than 65536 bytes");
  EXPECT_EQ(rows_of(std::string(65000, 'x') + "\n" + std::string(65000, 'y')).size(), 2u);
}

TEST(CsvReaderTest, TablesOfOtherProgramsAreReadOrNamed) {
  EXPECT_EQ(rows_of("a, \"b,c\" ,d\n"), Rows({{"a", "b,c", "d"}})) << "blanks around quotes";
  for (const char* const text : {"sep=;\r\npath;label\r\n", "path|label\n", "path\tlabel\n"}) {
    const fixtures::TemporaryDirectory folder;
    CsvReader reader(folder.write("x.csv", text), CsvReader::kUsualRowBytes, /*delimiter=*/0);
    std::vector<std::string> fields;
    ASSERT_TRUE(reader.next_row(fields));
    EXPECT_EQ(fields, (std::vector<std::string>{"path", "label"})) << text;
  }
  EXPECT_EQ(csv_error(std::string("\xFF\xFEp\0a\0", 6)), "x.csv:1: it is UTF-16, not UTF-8");
  EXPECT_EQ(csv_error("\x1F\x8B\x08"), "x.csv:1: it is compressed by gzip");
  EXPECT_EQ(csv_error("PK\3\4"), "x.csv:1: it is a zip archive or a table of Excel");
}

TEST(CsvReaderTest, HalfAByteOrderMarkIsRefused) {
  EXPECT_EQ(csv_error("\xEF\xBBpath,label\n"), "x.csv:1: begins with half a byte order mark");
}

TEST(CsvReaderTest, TheLongestRowIsForTheCallerToSay) {
  const fixtures::TemporaryDirectory folder;
  const std::string path = folder.write("x.csv", std::string(70000, 'x') + "\n");
  std::vector<std::string> fields;
  CsvReader reader(path, 80000);
  ASSERT_TRUE(reader.next_row(fields));
  EXPECT_EQ(fields[0].size(), 70000u);
}

TEST(CsvReaderTest, GoesOnBehindALineThatIsRefused) {
  const fixtures::TemporaryDirectory folder;
  CsvReader reader(folder.write("x.csv", std::string("a,b\nc\"d,e\nf\0g\n", 15) + std::string(70000, 'x') + "\nh,i\n"));
  std::vector<std::string> fields;
  ASSERT_TRUE(reader.next_row(fields));
  for (int refused = 0; refused < 3; ++refused) {
    EXPECT_THROW(reader.next_row(fields), Error);
    reader.skip_line();
  }
  ASSERT_TRUE(reader.next_row(fields));
  EXPECT_EQ(fields, (std::vector<std::string>{"h", "i"}));
  EXPECT_EQ(reader.line(), 5);
  EXPECT_FALSE(reader.next_row(fields));
}

TEST(CsvTableTest, RowsAreReadByTheNamesAboveThemAndEachThatIsLeftOutIsNamed) {
  const CsvTable table = read_csv_table("id,a\n1,x\nID,B,\n2,y,\n3\n\"4,z\n5,\"two\nlines\"\n", "t.csv", "id", {"b"});
  EXPECT_EQ(table.columns, (std::vector<std::string>{"b", "id", "a"}));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].cells, (std::vector<std::string>{"", "1", "x"}));
  EXPECT_EQ(table.rows[1].cells, (std::vector<std::string>{"y", "2", ""}));
  EXPECT_EQ(table.rows[2].cells, (std::vector<std::string>{"two\nlines", "5", ""}));
  EXPECT_EQ(table.rows[2].line, 7);
  ASSERT_EQ(table.left_out.size(), 2u);
  EXPECT_EQ(table.left_out[0], "t.csv:5: 1 fields instead of 2");
  EXPECT_EQ(table.left_out[1].rfind("t.csv:6: ", 0), 0u) << table.left_out[1];
}

TEST(CsvReaderTest, ARefusedFileIsClosed) {
  const fixtures::TemporaryDirectory folder;
  const std::string path = folder.write("x.csv", "\xEF\xBBpath,label\n");  // half a byte order mark
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  EXPECT_THROW(CsvReader{path}, Error);
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace stoker::core
