// SPDX-License-Identifier: Apache-2.0
#include "config/parse_value.h"

#include <gtest/gtest.h>
TEST(ParseValueTest, X) { double v; EXPECT_EQ(stoker::config::read_number("1e-3", {0,1}, v), ""); }
