// SPDX-License-Identifier: Apache-2.0
#include "core/hash.h"

#include <gtest/gtest.h>

namespace stoker::core {
namespace {

TEST(HashTest, EqualsXxhsumOfTheEmptyInput) { EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f"); }

TEST(HashTest, DoesNotDependOnHowInputIsCut) {
  Hasher hasher;
  hasher.add("ab");
  hasher.add("c");
  EXPECT_EQ(hasher.hex(), hash_hex("abc"));
  EXPECT_NE(hash_hex("abc"), hash_hex("abd"));
}

TEST(HashTest, GivesTheSha256OfTheStandardsExamples) {  // FIPS 180-4
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace stoker::core
