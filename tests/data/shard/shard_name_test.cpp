// SPDX-License-Identifier: Apache-2.0
#include "data/shard/shard_scan.h"

#include <gtest/gtest.h>

namespace stoker::data {
namespace {

TEST(ShardNameTest, TheKeyEndsAtTheFirstDotOfTheFileName) {
  EXPECT_EQ(split_member("v1.0/cat/001.seg.png").key, "v1.0/cat/001");
  EXPECT_EQ(split_member("v1.0/cat/001.seg.png").kind, "seg.png");
  EXPECT_EQ(split_member("a.cls").key, "a");
  for (const char* const member : {"", "noext", "a.b/c", ".hidden", "a/.hidden", "a/"}) {
    EXPECT_EQ(split_member(member).key, "") << member;
  }
}

TEST(ShardNameTest, UsualNamesKeepThemselves) {
  for (const char* const name : {"cat/001.jpg", "n01440764_10026.JPEG", "v1.0/x.png", "caf\xC3\xA9/a b.webp"}) {
    EXPECT_TRUE(is_plain_name(name)) << name;
    const std::string whole = name;
    EXPECT_EQ(plain_key(name) + whole.substr(whole.rfind('.')), name);
    EXPECT_EQ(name_of_member(name), name);
  }
}

TEST(ShardNameTest, NamesThatTarOrWebDatasetWouldTakeApartAreNotPlain) {
  for (const char* const name :
       {"a.b.jpg", "noext", ".hidden.jpg", "a.txt", "/abs/a.jpg", "../a.jpg", "a/../b.jpg", "./a.jpg", "a//b.jpg",
        "100%.jpg", "__meta__/a.jpg", "a\n.jpg", "\xFF.jpg", "", "a.jpg/"}) {
    EXPECT_FALSE(is_plain_name(name)) << name;
  }
}

TEST(ShardNameTest, WholeKeysLeadBackToTheName) {
  for (const std::string name :
       {"a.b.jpg", "noext", "/abs/a.jpg", "../a.jpg", "a/../b.jpg", "a//b.jpg", "100%.jpg", "__meta__/a.jpg", "a\n.jpg",
        "\xFF.jpg", "a%~3.jpg", "#17", "a/", "%41", "caf\xC3\xA9.x.jpg"}) {
    for (const uint64_t copy : {0, 1, 12}) {
      const std::string key = whole_key(name, copy), member = key + ".png";
      EXPECT_EQ(split_member(member).key, key) << name;
      EXPECT_EQ(split_member(member).kind, "png") << name;
      EXPECT_EQ(name_of_member(member), name) << key;
      EXPECT_NE(key[0], '/');
      EXPECT_EQ(("/" + key).find("/../"), std::string::npos);
      EXPECT_EQ(key.find('\n'), std::string::npos);
    }
  }
  EXPECT_EQ(whole_key("dogs/a.b.jpg", 0), "dogs/a%2Eb%2Ejpg%~");
  EXPECT_NE(whole_key("a", 0), whole_key("a", 1));
}

TEST(ShardNameTest, ForeignNamesStayAsTheyAre) {
  for (const char* const member : {"a%~x.jpg", "%~.jpg", "50%.jpg", "a%2.jpg", "a%ZZ%.jpg"}) {
    EXPECT_EQ(name_of_member(member), member);
  }
}

TEST(ShardNameTest, ExtensionsAreComparedWithTheFormat) {
  EXPECT_TRUE(extension_fits("a.JPEG", ImageFormat::jpeg));
  EXPECT_TRUE(extension_fits("a.jpg", ImageFormat::jpeg));
  EXPECT_TRUE(extension_fits("a.PNG", ImageFormat::png));
  EXPECT_FALSE(extension_fits("a.jpg", ImageFormat::png));
}

TEST(ShardNameTest, JpegIsPreferredAndKindsWithADotComeLast) {
  EXPECT_LT(image_kind_rank("jpg"), image_kind_rank("PNG"));
  EXPECT_LT(image_kind_rank("bmp"), image_kind_rank("left.jpg"));
  EXPECT_LT(image_kind_rank("jp2"), image_kind_rank("wav")) << "a sound beside an image is not the sample";
  EXPECT_EQ(image_kind_rank("cls"), -1);
  EXPECT_EQ(image_kind_rank("jpg.txt"), -1);
}

}  // namespace
}  // namespace stoker::data
