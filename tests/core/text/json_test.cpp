// SPDX-License-Identifier: Apache-2.0
#include "core/text/json.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace stoker::core {
namespace {

std::string problem_with(const std::string& text, int max_depth = 8) {
  try {
    parse_json(text, "x.json", max_depth);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
  return "";
}

TEST(JsonTest, ReadsWhatItWrites) {
  const Json json = {{"b", 1}, {"a", {1.5, "x", nullptr}}};
  EXPECT_EQ(parse_json(json.dump(), "x").dump(), json.dump());
}

TEST(JsonTest, DoublesSurviveExactly) {
  const double value = 0.1 + 0.2;
  EXPECT_EQ(parse_json(Json(value).dump(), "x").get<double>(), value);
}

TEST(JsonTest, RejectsDuplicateKeysDepthGarbageAndBadUtf8) {
  EXPECT_NE(problem_with(R"({"a":1,"a":2})").find("duplicate JSON key a"), std::string::npos);
  EXPECT_NE(problem_with("[[[[1]]]]", 3).find("deeper than 3"), std::string::npos);
  EXPECT_NE(problem_with("{} x").find("x.json: not valid JSON"), std::string::npos);
  EXPECT_NE(problem_with("\"\xff\"").find("not valid JSON"), std::string::npos);
  EXPECT_NE(problem_with("").find("not valid JSON"), std::string::npos);
}

TEST(JsonTest, TheSameKeyInTwoObjectsIsFine) { EXPECT_EQ(problem_with(R"({"a":{"k":1},"b":{"k":2}})"), ""); }

}  // namespace
}  // namespace stoker::core
