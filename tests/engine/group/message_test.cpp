// SPDX-License-Identifier: Apache-2.0
// A message is read as it was written.
#include "engine/group/message.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

namespace stoker::engine {
namespace {

TEST(MessageTest, IsReadInTheOrderInWhichItWasWritten) {
  MessageWriter writer;
  writer.add(true);
  writer.add(int64_t{-7});
  writer.add(0.1);
  writer.add(std::string("a\0b", 3));
  writer.add(std::string());
  writer.add(at::arange(6, at::kFloat).view({2, 3}));
  writer.add(at::zeros({0}, at::kLong));
  writer.add(false);
  MessageReader reader(writer.bytes());
  EXPECT_TRUE(reader.flag());
  EXPECT_EQ(reader.i64(), -7);
  EXPECT_EQ(reader.f64(), 0.1);
  EXPECT_EQ(reader.string(), std::string("a\0b", 3));
  EXPECT_EQ(reader.string(), "");
  EXPECT_TRUE(reader.tensor().equal(at::arange(6, at::kFloat).view({2, 3})));
  EXPECT_EQ(reader.tensor().scalar_type(), at::kLong);
  EXPECT_FALSE(reader.at_end());
  EXPECT_FALSE(reader.flag());
  EXPECT_TRUE(reader.at_end());
}

TEST(MessageTest, HalfOfOneIsRefused) {
  MessageWriter writer;
  writer.add(std::string("text"));
  const std::string half = writer.bytes().substr(0, writer.bytes().size() - 1);
  MessageReader reader(half);
  EXPECT_THROW(reader.string(), core::Error);
}

}  // namespace
}  // namespace stoker::engine
