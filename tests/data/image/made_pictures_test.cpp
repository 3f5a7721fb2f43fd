// SPDX-License-Identifier: Apache-2.0
// Pictures of many kinds, each with what is right beside it: tests/files/make_pictures.py wrote them and lists where
// right comes from.
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "data/image/decode.h"
#include "made_data.h"

namespace stoker::data {
namespace {

std::string folder_of_pictures() {
  const std::string here = __FILE__;
  return here.substr(0, here.rfind("tests/data/image")) + "tests/files/pictures/";
}

/// "37 21 0123abcd", as in right.txt, or "refused REASON".
std::string seen_in(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const Bytes file((std::istreambuf_iterator<char>(stream)), {});
  ImageBuffer image;
  const std::string reason = decode_image(file.data(), file.size(), 3, {}, image);
  if (!reason.empty()) return "refused " + reason;
  const auto bytes = static_cast<uInt>(image.width * image.height * 3);
  char text[64];
  std::snprintf(text, sizeof text, "%d %d %08lx", image.width, image.height, ::crc32(0, image.pixels.data(), bytes));
  return text;
}

TEST(MadePicturesTest, EachIsReadAsItsOwnerSeesItOrRefusedInWords) {
  std::ifstream list(folder_of_pictures() + "right.txt");
  int pictures = 0;
  for (std::string name, right; list >> name && std::getline(list >> std::ws, right); ++pictures) {
    const std::string seen = seen_in(folder_of_pictures() + name);
    if (right.rfind("refused ", 0) == 0) {
      EXPECT_TRUE(seen.rfind("refused ", 0) == 0 && seen.find(right.substr(8)) != std::string::npos)
          << name << ": " << seen;
    } else {
      EXPECT_EQ(seen, right) << name;
    }
  }
  EXPECT_GE(pictures, 300);
}

}  // namespace
}  // namespace stoker::data
