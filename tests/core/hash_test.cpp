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

}  // namespace
}  // namespace stoker::core
