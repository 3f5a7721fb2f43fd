// SPDX-License-Identifier: Apache-2.0
// Expected bytes: scripts/parity/tensorboard_parse.py --golden.
#include "observe/observers/tensorboard.h"

#include <gtest/gtest.h>

#include "core/format.h"

namespace stoker::observe {
namespace {

constexpr double kTime = 1700000000.5;

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += core::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

TEST(EventFileTest, ChecksumIsThatOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

TEST(EventFileTest, RecordsAreThoseOfThePublicSchema) {
  EXPECT_EQ(hex(version_record(kTime)),
            "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110");
  EXPECT_EQ(hex(restart_record(kTime, 300)), "100000000000000095fbfe180900002040fc54d94110ac023a020801b94512a3");
  EXPECT_EQ(hex(scalars_record(kTime, 300, {{"train/loss", 0.25}})),
            "2100000000000000017becf60900002040fc54d94110ac022a130a110a0a747261696e2f6c6f7373150000803e0da12f0e");
}

}  // namespace
}  // namespace stoker::observe
