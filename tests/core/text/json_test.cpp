// SPDX-License-Identifier: Apache-2.0
#include "core/text/json.h"

#include <gtest/gtest.h>

#include <ctime>

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

/// Seconds of the processor that this thread needs to read `text`: what else runs on the machine does not count.
double seconds_to_read(const std::string& text) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  };
  const double begin = now();
  parse_json(text, "x");
  return now() - begin;
}

std::string object_of(int keys) {
  std::string text = "{\"\":0";
  for (int i = 0; i < keys; ++i) text += ",\"key" + std::to_string(i) + "\":1";
  return text + "}";
}

std::string array_of(int objects) {
  std::string text = "[0";
  for (int i = 0; i < objects; ++i) text += ",{\"key\":1}";
  return text + "]";
}

TEST(JsonTest, AProblemIsNamedWithoutTheLibrarysName) {
  const auto problem = [](const auto& read) -> std::string {
    try {
      read(Json{{"a", "x\x1b[31m"}});
    } catch (const Json::exception& error) {
      return problem_text(error);
    }
    return "";
  };
  EXPECT_EQ(problem([](const Json& json) { json.at("height"); }), "key 'height' not found");
  EXPECT_EQ(problem([](const Json& json) { json.at("a").get<int>(); }), "type must be number, but is string");
  EXPECT_EQ(problem([](const Json& json) { json.at("\x1b[31m"); }).find('\x1b'), std::string::npos);
  EXPECT_EQ(problem_with("[1,}").find("json.exception"), std::string::npos) << problem_with("[1,}");
}

TEST(JsonTest, ReadingTakesNoQuadraticTime) {
  for (const auto& text_of : {object_of, array_of}) {
    const double few = seconds_to_read(text_of(5000)), many = seconds_to_read(text_of(5000 * 32));
    EXPECT_LT(many / few, 32 * 8) << "32 times as much; 1024 times the time would be quadratic";
  }
}

TEST(JsonTest, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse_json(R"({"z":{"b":1,"a":[{"y":1,"x":2}]},"a":-1})", "x").dump(),
            R"({"z":{"b":1,"a":[{"y":1,"x":2}]},"a":-1})");
}

TEST(JsonTest, TheSameKeyInTwoObjectsIsFine) { EXPECT_EQ(problem_with(R"({"a":{"k":1},"b":{"k":2}})"), ""); }

}  // namespace
}  // namespace stoker::core
