// SPDX-License-Identifier: Apache-2.0
// Archives made byte by byte, by our writer and by the machine's tar, and how the reader reads or refuses them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/system/file.h"
#include "data/container/tar_reader.h"
#include "made_data.h"

namespace stoker::data {
namespace {

using Listing = std::vector<std::pair<std::string, std::string>>;  ///< names and contents

std::string padded(std::string content) {
  content.append(tar_padding(content.size()), '\0');
  return content;
}

std::string entry(const std::string& name, const std::string& content) {
  return tar_header_text(name, content.size()) + padded(content);
}

std::string end_of_archive() { return std::string(2 * kTarBlock, '\0'); }

/// Writes the checksum that fits, so that a test can change other fields of a header.
void sign(std::string& block) {
  block.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) sum += static_cast<uint8_t>(block[i]);
  block.replace(148, 8, core::format("{:06o}", sum) + '\0' + ' ');
}

/// A header with its type and size field changed.
std::string header(const std::string& name, char type, const std::string& size_field) {
  std::string block = tar_header_text("x", 0);
  block.replace(0, std::max<size_t>(1, name.size()), name.empty() ? std::string(1, '\0') : name);
  block[156] = type;
  block.replace(124, 12, (size_field + std::string(12, '\0')).substr(0, 12));
  sign(block);
  return block;
}

/// An extension entry of the given type.
std::string extension(char type, const std::string& content) {
  return header("extension", type, core::format("{:011o}", content.size())) + padded(content);
}

Listing list(const std::string& archive) {
  const MemoryBytes bytes("made.tar", reinterpret_cast<const uint8_t*>(archive.data()), archive.size());
  TarReader reader(bytes);
  Listing listing;
  for (TarEntry found; reader.next(found);) {
    listing.emplace_back(found.name, reader.content_of(found, 1 << 20));
    EXPECT_EQ(archive.substr(found.offset, found.size), listing.back().second);
  }
  return listing;
}

std::string archive_problem(const std::string& archive) {
  const core::Error error = error_of([&] { list(archive); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_EQ(std::string(error.what()).rfind("made.tar: byte ", 0), 0u) << error.what();
  return error.what();
}

TEST(TarTest, WhatIsWrittenIsRead) {
  const std::string fits(255, 'a'), long_name = std::string(200, 'b') + "/" + std::string(200, 'c');
  std::string split = std::string(150, 'd') + "/" + std::string(99, 'e');
  const Listing wanted = {{"a/1.jpg", "content"},
                          {"a/1.cls", "0"},
                          {"empty", ""},
                          {split, std::string(512, 'x')},
                          {long_name, std::string(513, 'y')},
                          {"caf\xC3\xA9/2.png", std::string(70'000, 'z')},
                          {fits, "1"}};
  std::string archive;
  for (const auto& [name, content] : wanted) archive += entry(name, content);
  EXPECT_EQ(list(archive + end_of_archive()), wanted);
  EXPECT_EQ(list(archive + end_of_archive().substr(kTarBlock)), wanted);
}

TEST(TarTest, TheMachinesTarListsWhatWeWrite) {
  const TempFolder folder;
  const std::string deep = std::string(200, 'm') + "/" + std::string(200, 'n');
  folder.write("a.tar", entry("cat/1.jpg", "one") + entry(deep + "/\xC3\xA9.png", "two") + end_of_archive());
  const std::string command = core::format(
      "cd {} && LC_ALL=C.UTF-8 tar tvf a.tar --quoting-style=literal "
      "> list 2>&1 && mkdir x && tar xf a.tar -C x",
      folder.path());
  ASSERT_EQ(std::system(command.c_str()), 0) << core::read_file(folder / "list", 1 << 20);
  const std::string listed = core::read_file(folder / "list", 1 << 20);
  EXPECT_NE(listed.find("-rw-r--r-- 0/0               3 1970-01-01"), std::string::npos) << listed;
  EXPECT_NE(listed.find(deep + "/\xC3\xA9.png\n"), std::string::npos) << listed;
  EXPECT_EQ(core::read_file(folder / "x/cat/1.jpg", 100), "one");
}

TEST(TarTest, EveryFormatOfTheMachinesTarIsRead) {
  for (const std::string format : {"ustar", "pax", "gnu"}) {
    const TempFolder folder;
    const std::string deep = std::string(90, 'p') + "/" + std::string(90, 'q') + ".jpg";
    const std::string long_one = std::string(120, 'r') + ".jpg";
    folder.write("in/" + deep, std::string("deep"));
    folder.write("in/b.png", std::string(100'000, 'b'));
    if (format != "ustar") folder.write("in/" + long_one, std::string("long"));
    const std::string command = core::format(
        "cd {}/in && ln -s b.png link && tar cf ../a.tar --format={} --sort=name *", folder.path(), format);
    ASSERT_EQ(std::system(command.c_str()), 0);
    Listing wanted = {{"b.png", std::string(100'000, 'b')}, {deep, "deep"}};
    if (format != "ustar") wanted.push_back({long_one, "long"});
    EXPECT_EQ(list(core::read_file(folder / "a.tar", 1 << 20)), wanted) << format;
  }
}

TEST(TarTest, TheSameEntryHasTheSameBytes) {
  EXPECT_EQ(entry("a/b.jpg", "x"), entry("a/b.jpg", "x"));
  EXPECT_EQ(entry("a/b.jpg", "x").size(), 2 * kTarBlock);
}

TEST(TarTest, GnuBinarySizesAndPaxSizesAreRead) {
  const std::string binary_size = std::string("\x80\0\0\0\0\0\0\0\0\0\0\3", 12);
  EXPECT_EQ(list(header("a", '0', binary_size) + padded("abc") + end_of_archive()), (Listing{{"a", "abc"}}));
  EXPECT_EQ(list(extension('x', "10 size=3\n") + header("a", '0', "") + padded("abc") + end_of_archive()),
            (Listing{{"a", "abc"}}));
  EXPECT_EQ(list(extension('g', "17 comment=hello\n") + entry("a", "b") + end_of_archive()), (Listing{{"a", "b"}}));
}

TEST(TarTest, LinksAndFoldersArePassedOver) {
  const std::string archive = header("folder/", '5', "") + header("link", '2', "") + header("hard", '1', "") +
                              entry("a", "b") + end_of_archive();
  EXPECT_EQ(list(archive), (Listing{{"a", "b"}}));
}

TEST(TarTest, ContentThatIsTooLargeIsRefused) {
  const std::string archive = entry("a", std::string(100, 'a')) + end_of_archive();
  const MemoryBytes bytes("made.tar", reinterpret_cast<const uint8_t*>(archive.data()), archive.size());
  TarReader reader(bytes);
  TarEntry found;
  ASSERT_TRUE(reader.next(found));
  EXPECT_EQ(reader.content_of(found, 100).size(), 100u);
  EXPECT_NE(std::string(error_of([&] { reader.content_of(found, 99); }).what()).find("a has 100 bytes"),
            std::string::npos);
}

struct BadArchive {
  std::string fact, bytes, message;
};

TEST(TarTest, DamagedArchivesAreRefused) {
  std::string wrong_sum = entry("a", "b");
  wrong_sum[0] = 'x';
  std::string no_magic = entry("a", "b");
  no_magic[257] = 'U';
  sign(no_magic);
  const std::string whole = entry("a", std::string(1000, 'c')) + end_of_archive();
  const std::vector<BadArchive> all = {
      {"Empty", "", "cut short: there is no end-of-archive block"},
      {"NoEnd", entry("a", "b"), "byte 1024: cut short: there is no end-of-archive block"},
      {"CutInTheHeader", whole.substr(0, 300), "cut short"},
      {"CutInTheContent", whole.substr(0, 1000), "cut short: an entry of 1000 bytes, 488 are left"},
      {"CutInThePadding", whole.substr(0, 1530), "cut short: an entry of 1000 bytes"},
      {"Checksum", wrong_sum, "a header whose checksum does not fit"},
      {"Magic", no_magic, "not a header of a POSIX or GNU tar archive"},
      {"SizeNotOctal", header("a", '0', "00000000019"), "a size that is not a number"},
      {"SizeNegative", header("a", '0', std::string(12, '\xFF')), "a size that is not a number"},
      {"SizeBeyond63Bits", header("a", '0', "\x80" + std::string(11, '\xFF')), "a size that is not a number"},
      {"SizeJustBelow63Bits", header("a", '0', std::string("\x80\0\0\0\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12)),
       "cut short: an entry of 9223372036854775807 bytes"},
      {"LinkWithContent", header("a", '2', "00000000001"), "with content"},
      {"NoName", header("", '0', "00000000000") + end_of_archive(), "an entry without a name"},
      {"PaxEmpty", extension('x', ""), "an extension header of 0 bytes"},
      {"PaxTooLarge", extension('x', std::string(kMaxTarExtension + 1, 'x')), "an extension header of 1048577"},
      {"PaxLength", extension('x', "99 path=a\n"), "a damaged pax header"},
      {"PaxLengthZero", extension('x', "0 path=a\n"), "a damaged pax header"},
      {"PaxLengthHuge", extension('x', "99999999999999999999 path=a\n"), "a damaged pax header"},
      {"PaxNoNewline", extension('x', "10 path=a "), "a damaged pax header"},
      {"PaxNoEquals", extension('x', "9 path a\n"), "a damaged pax header"},
      {"PaxTwoPaths", extension('x', "9 path=a\n9 path=b\n"), "two paths"},
      {"PaxPathWithNul", extension('x', std::string("9 path=\0\n", 9)), "holds a NUL byte"},
      {"PaxSizeHuge", extension('x', "28 size=9999999999999999999\n"), "a size that is not a number"},
      {"PaxSizeBeyondTheEnd", extension('x', "13 size=9999\n") + entry("a", "b"), "an entry of 9999 bytes"},
      {"PaxSizeOfALink", extension('x', "10 size=3\n") + header("a", '2', "") + padded("abc"),
       "a size to something that is not a regular file"},
      {"PaxGlobalPath", extension('g', "9 path=a\n"), "a global pax header"},
      {"PaxSparse", extension('x', "22 GNU.sparse.major=1\n"), "a sparse file"},
      {"PaxTwice", extension('x', "9 path=a\n") + extension('x', "9 path=a\n"), "two extension headers"},
      {"PaxAlone", extension('x', "9 path=a\n") + end_of_archive(), "without an entry behind it"},
      {"LongNameEmpty", extension('L', std::string(1, '\0')), "a long name that is empty"},
      {"LongNameTooLong", extension('L', std::string(kMaxTarName + 1, 'x')), "a long name that is empty or too"},
  };
  for (const BadArchive& bad : all) {
    EXPECT_NE(archive_problem(bad.bytes).find(bad.message), std::string::npos)
        << bad.fact << ": " << archive_problem(bad.bytes);
  }
}

TEST(TarTest, EveryCutAndEveryFlippedBitOfAHeaderIsRefusedOrHarmless) {
  const std::string whole =
      extension('L', "long") + entry("caf\xC3\xA9.jpg", "abc") + entry("b", std::string(600, 'b')) + end_of_archive();
  const size_t end = whole.size() - end_of_archive().size();
  for (size_t cut = 0; cut <= end; cut += 7) archive_problem(whole.substr(0, cut));
  for (size_t at = 0; at < kTarBlock; ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    try {
      EXPECT_EQ(list(flipped), list(whole)) << at;  // such as a space for a leading zero
    } catch (const core::Error& error) {
      EXPECT_EQ(error.kind(), core::ErrorKind::data);
    }
  }
}

}  // namespace
}  // namespace stoker::data
