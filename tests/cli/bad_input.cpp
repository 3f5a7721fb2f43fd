// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "bad_input.h"

#include <algorithm>
#include <filesystem>

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

/// Anything but a newline that a terminal would obey.
bool has_control_character(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n') || byte == 0x7F;
  });
}

}  // namespace

void PrintTo(const BadInput& input, std::ostream* out) { *out << input.fact; }

std::function<Words(const Workplace&)> words(const Words& command_line) {
  return [command_line](const Workplace&) { return command_line; };
}

std::function<Words(const Workplace&)> config(const std::string& content) {
  return [content](const Workplace& work) {
    work.write("c.yaml", content);
    return train_words({"-c", "c.yaml"});
  };
}

void expect_nothing_half_written(const Workplace& work) {
  for (const auto& entry : fs::recursive_directory_iterator(work.path())) {
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(name.find(".tmp-"), std::string::npos) << entry.path();
    EXPECT_NE(name.substr(0, 5), "core.") << entry.path();
    EXPECT_NE(name, "core") << entry.path();
  }
}

void expect_refused(const BadInput& input, const Workplace& work) {
  const Words command_line = input.make(work);
  const Ended ended = run(command_line, work.path());
  SCOPED_TRACE(story_of(command_line, ended));
  EXPECT_EQ(ended.exit_code, input.exit_code);
  EXPECT_FALSE(ended.timed_out) << "it hangs";
  EXPECT_EQ(ended.signal, 0);
  for (const std::string& text : input.messages)
    EXPECT_NE(ended.err.find(text), std::string::npos) << "not printed: " << text;
  EXPECT_EQ(last_line(ended.err), "train: exit=" + std::to_string(input.exit_code) + " reason=error");
  EXPECT_FALSE(has_control_character(ended.out + ended.err));
  expect_nothing_half_written(work);
}

void expect_refused_before_the_run(const BadInput& input) {
  const Workplace work;
  expect_refused(input, work);
  EXPECT_FALSE(fs::exists(work / "run"));
}

}  // namespace stoker::cli
