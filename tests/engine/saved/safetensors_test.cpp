// SPDX-License-Identifier: Apache-2.0
#include "engine/saved/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/error.h"
#include "core/hash.h"
#include "core/system/file.h"
#include "tests/temporary_directory.h"

namespace stoker::engine {
namespace {

using fixtures::TemporaryDirectory;

std::string with_header(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

std::string problem_with(const std::string& bytes) {
  try {
    parse_safetensors(bytes, "x.safetensors");
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::data);
    EXPECT_EQ(std::string(error.what()).rfind("x.safetensors", 0), 0u) << "the path comes first: " << error.what();
    return error.what();
  }
  return "";
}

TEST(SafetensorsTest, WritesTheDocumentedLayoutByteForByte) {
  const TemporaryDirectory folder;
  write_safetensors(folder / "a", {{"w", torch::tensor({1.0f, 2.0f})}}, {{"format", "pt"}});
  const std::string bytes = core::read_file(folder / "a", 1000);
  const std::string header = R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u) << "data is aligned";
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ(bytes.substr(8 + header.size(), length - header.size()), std::string(length - header.size(), ' '));
  const float values[2] = {1, 2};
  EXPECT_EQ(bytes.substr(8 + length), std::string(reinterpret_cast<const char*>(values), 8));
}

TEST(SafetensorsTest, EveryTypeAndLayoutComesBackEqual) {
  const TemporaryDirectory folder;
  std::vector<NamedTensor> tensors;
  for (const auto type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort, at::kChar,
                          at::kByte, at::kBool}) {
    tensors.push_back({std::string("t") + c10::toString(type), torch::randint(0, 2, {3, 5}).to(type)});
  }
  tensors.push_back({"scalar", torch::tensor(7, at::kLong)});
  tensors.push_back({"empty", torch::empty({0, 4})});
  tensors.push_back({"nhwc", torch::rand({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast)});
  tensors.push_back({"strided", torch::rand({4, 6}).t()});
  const WrittenFile written = write_safetensors(folder / "a", tensors);
  const std::string bytes = core::read_file(folder / "a", 1 << 20);
  EXPECT_EQ(written.bytes, static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(written.digest, core::hash_hex(bytes));
  const SafetensorsContent content = read_safetensors(folder / "a");
  ASSERT_EQ(content.tensors.size(), tensors.size());
  for (const NamedTensor& wanted : tensors) {
    bool found = false;
    for (const NamedTensor& got : content.tensors) {
      if (got.name != wanted.name) continue;
      found = true;
      EXPECT_TRUE(torch::equal(got.tensor, wanted.tensor)) << wanted.name;
      EXPECT_EQ(got.tensor.scalar_type(), wanted.tensor.scalar_type());
    }
    EXPECT_TRUE(found) << wanted.name;
  }
}

TEST(SafetensorsTest, RejectsEveryKindOfMalformedHeader) {
  const std::string two = R"("dtype":"U8","shape":[2])";
  const std::pair<std::string, const char*> cases[] = {
      {"", "too short"},
      {"1234567", "too short"},
      {std::string(8, '\xff'), "its header should have"},
      {with_header("{}").substr(0, 9), "its header should have"},
      {with_header("[]"), "not an object"},
      {with_header("{\"a\":1}"), "needs exactly"},
      {with_header("{\"a\":{" + two + "}}"), "needs exactly"},
      {with_header("{\"a\":{" + two + ",\"data_offsets\":[0,2],\"x\":1}}", "ab"), "needs exactly"},
      {with_header("{\"a\":{\"dtype\":\"U9\",\"shape\":[2],\"data_offsets\":[0,2]}}", "ab"), "unknown dtype"},
      {with_header("{\"a\":{" + two + ",\"data_offsets\":[0,3]}}", "abc"), "size unlike its shape"},
      {with_header("{\"a\":{" + two + ",\"data_offsets\":[2,0]}}", "ab"), "outside the file"},
      {with_header("{\"a\":{" + two + ",\"data_offsets\":[0,2]}}", "a"), "outside the file"},
      {with_header("{\"a\":{" + two + ",\"data_offsets\":[-1,1]}}", "ab"), "not a count"},
      {with_header("{\"a\":{" + two + ",\"data_offsets\":[0.0,2]}}", "ab"), "not a count"},
      {with_header("{\"a\":{" + two + ",\"data_offsets\":[1,3]}}", "abc"), "overlap or leave gaps"},
      {with_header("{\"a\":{" + two + ",\"data_offsets\":[0,2]},\"b\":{" + two + ",\"data_offsets\":[1,3]}}", "abc"),
       "overlap or leave gaps"},
      {with_header("{\"a\":{" + two + ",\"data_offsets\":[0,2]}}", "abc"), "follow the last tensor"},
      {with_header("{\"a\":{" + two + ",\"data_offsets\":[0,2]},\"a\":{" + two + ",\"data_offsets\":[0,2]}}", "ab"),
       "duplicate JSON key"},
      {with_header(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})"), "too large"},
      {with_header(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,0]}})"), "too large"},
      {with_header(R"({"a":{"dtype":"F32","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}})"), "too large"},
      {with_header(R"({"__metadata__":{"a":1}})"), "not text"},
      {with_header(R"({"a":{"dtype":"F32","shape":[[[[1]]]],"data_offsets":[0,0]}})"), "deeper than"},
      {with_header("{\"a\xff\":1}"), "not valid JSON"},
      {std::string("PK\x03\x04rest of a zip"), "a zip archive or a pickle"},
      {std::string("\x80\x02}q\x00(X\x05\x00", 10), "a zip archive or a pickle"},
  };
  for (const auto& [bytes, message] : cases) {
    const std::string problem = problem_with(bytes);
    EXPECT_NE(problem.find(message), std::string::npos) << "wanted: " << message << "\ngot: " << problem;
  }
}

TEST(SafetensorsTest, SurvivesRandomDamage) {
  const TemporaryDirectory folder;
  write_safetensors(folder / "a", {{"w", torch::rand({4, 4})}, {"b", torch::rand({4})}}, {{"format", "pt"}});
  const std::string good = core::read_file(folder / "a", 1000);
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
      bad[random() % 150] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bad.resize(random() % bad.size());
    try {
      parse_safetensors(bad, "x.safetensors");  // accepting is fine when only names or data changed
    } catch (const core::Error& error) {
      EXPECT_EQ(error.kind(), core::ErrorKind::data);
    }
  }
}

}  // namespace
}  // namespace stoker::engine
