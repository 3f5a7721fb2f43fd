// SPDX-License-Identifier: Apache-2.0
#include "data/shard/shard_index.h"

#include <gtest/gtest.h>

#include "core/hash.h"
#include "made_data.h"

namespace stoker::data {
namespace {

ShardIndex small_index() {
  ShardIndex index;
  index.shard_bytes = 10'240;
  index.first_source = 5;
  index.source_count = 4;
  index.shard_digest = core::hash_hex("shard");
  index.pack_identity = core::hash_hex("pack");
  index.add(512, 100, 3, "cat/1.jpg");
  index.add(2048, 0, -1, "x");
  index.add(4096, 6144, 999'999, "dog/2.png");
  return index;
}

ShardIndex parse_index(const std::string& text) {
  return parse_shard_index(reinterpret_cast<const uint8_t*>(text.data()), text.size(), "a.tar.index");
}

std::string index_problem(const std::string& text) {
  const core::Error error = error_of([&] { parse_index(text); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_EQ(std::string(error.what()).rfind("a.tar.index: ", 0), 0u) << error.what();
  return error.what();
}

/// With a digest that fits, so that what lies behind the digest is tested.
std::string signed_again(std::string text) {
  text.resize(text.size() - 32);
  return text + core::hash_hex(text);
}

TEST(ShardIndexTest, WhatIsWrittenIsRead) {
  const ShardIndex index = small_index(), read = parse_index(shard_index_text(index));
  EXPECT_EQ(read.shard_bytes, 10'240u);
  EXPECT_EQ(read.first_source, 5u);
  EXPECT_EQ(read.source_count, 4u);
  EXPECT_EQ(read.shard_digest, index.shard_digest);
  EXPECT_EQ(read.pack_identity, index.pack_identity);
  ASSERT_EQ(read.entries.size(), 3u);
  EXPECT_EQ(read.name(0), "cat/1.jpg");
  EXPECT_EQ(read.name(1), "x");
  EXPECT_EQ(read.name(2), "dog/2.png");
  EXPECT_EQ(read.entries[0].offset, 512u);
  EXPECT_EQ(read.entries[0].size, 100u);
  EXPECT_EQ(read.entries[0].label, 3);
  EXPECT_EQ(read.entries[1].label, -1);
  EXPECT_EQ(read.entries[2].label, 999'999);
}

TEST(ShardIndexTest, UnknownDigestsStayUnknownAndNothingIsAllowed) {
  const ShardIndex read = parse_index(shard_index_text(ShardIndex()));
  EXPECT_EQ(read.shard_digest, "");
  EXPECT_EQ(read.pack_identity, "");
  EXPECT_TRUE(read.entries.empty());
}

TEST(ShardIndexTest, TheBytesAreAsDocumented) {
  const std::string text = shard_index_text(small_index());
  EXPECT_EQ(text.size(), 128u + 3 * 24 + 19 + 32);
  EXPECT_EQ(text.substr(0, 17), std::string("STOKERIX\1\0\0\0\0\0\0\0\3", 17));
  EXPECT_EQ(text.substr(128, 24), std::string("\0\2\0\0\0\0\0\0d\0\0\0\3\0\0\0\x9\0\0\0\0\0\0\0", 24));
  EXPECT_EQ(text.substr(200, 19), "cat/1.jpgxdog/2.png");
}

TEST(ShardIndexTest, EveryCutAndEveryFlippedBitIsNoticed) {
  const std::string whole = shard_index_text(small_index());
  for (size_t cut = 0; cut < whole.size(); ++cut) index_problem(whole.substr(0, cut));
  index_problem(whole + "x");
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    index_problem(flipped);
  }
}

TEST(ShardIndexTest, NumbersOutOfRangeAreRefusedThoughTheDigestFits) {
  const std::string whole = shard_index_text(small_index());
  const auto changed = [&](size_t at, const std::string& bytes) {
    std::string text = whole;
    text.replace(at, bytes.size(), bytes);
    return index_problem(signed_again(text));
  };
  const std::string huge(8, '\x7F');
  EXPECT_NE(changed(8, "\2").find("version 2 of the index; version 1 is read"), std::string::npos);
  EXPECT_NE(changed(16, huge).find("its size differs from that in the header"), std::string::npos);
  EXPECT_NE(changed(16, std::string(8, '\xFF')).find("its size"), std::string::npos);
  EXPECT_NE(changed(24, huge).find("its size differs from that in the header"), std::string::npos);
  EXPECT_NE(changed(32, std::string("\0\x10\0\0", 4)).find("entry 2 is out of range"), std::string::npos);
  EXPECT_NE(changed(64, "X").find("a digest that is none"), std::string::npos);
  EXPECT_NE(changed(128, huge).find("entry 0 is out of range"), std::string::npos);
  EXPECT_NE(changed(128, std::string(8, '\0')).find("entry 0"), std::string::npos);
  EXPECT_NE(changed(128, "\1").find("entry 0"), std::string::npos);
  EXPECT_NE(changed(136, std::string(4, '\xFF')).find("entry 0"), std::string::npos);
  EXPECT_NE(changed(140, "\x40\x42\x0F").find("entry 0"), std::string::npos);  // label 1,000,000
  EXPECT_NE(changed(144, huge).find("entry 0"), std::string::npos);
  EXPECT_NE(changed(168, "\1").find("entry 1"), std::string::npos);  // names that go backwards
  EXPECT_NE(changed(192, "\x12").find("names that belong to no entry"), std::string::npos);
}

}  // namespace
}  // namespace stoker::data
