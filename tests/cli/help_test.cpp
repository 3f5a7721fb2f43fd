// SPDX-License-Identifier: Apache-2.0
// --help and --version, from any working directory.
#include <gtest/gtest.h>

#include <algorithm>

#include "program.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

bool is_plain_text(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7F); });
}

/// The words that --help lists under "Other commands".
std::vector<std::string> commands_in(const std::string& help) {
  std::vector<std::string> commands;
  bool listed = false;
  for (const std::string& line : lines_of(help)) {
    if (listed && line.empty()) break;
    if (listed && line.size() > 2 && line[2] != ' ') commands.push_back(line.substr(2, line.find(' ', 2) - 2));
    if (line.rfind("Other commands", 0) == 0) listed = true;
  }
  return commands;
}

TEST(HelpTest, ThatIsLostOnAFullDeviceIsAnError) {
  Launch launch;
  launch.words = {"--help"};
  launch.standard_output = Stream::full;
  const Ended ended = run(launch);
  SCOPED_TRACE(story_of(launch.words, ended));
  EXPECT_EQ(ended.exit_code, 74);
  EXPECT_NE(ended.err.find("cannot write standard output: No space left on device"), std::string::npos);
  launch.standard_output = Stream::broken_pipe;
  EXPECT_EQ(run(launch).exit_code, 0) << "a reader that has seen enough is no error";
}

Words help_of(const std::string& command) { return command.empty() ? Words{"--help"} : Words{command, "--help"}; }

TEST(HelpTest, EveryCommandHasHelpInPlainText) {
  std::vector<std::string> commands = commands_in(run({"--help"}, ".").out);
  EXPECT_NE(std::find(commands.begin(), commands.end(), "eval"), commands.end());
  EXPECT_NE(std::find(commands.begin(), commands.end(), "predict"), commands.end());
  commands.emplace_back("");
  for (const std::string& command : commands) {
    const Ended ended = run(help_of(command), ".");
    SCOPED_TRACE(story_of(help_of(command), ended));
    EXPECT_EQ(ended.exit_code, 0);
    EXPECT_EQ(ended.out.rfind("Usage: train " + command, 0), 0u);
    const Words without = {"", "import", "export", "runs", "inspect", "list"};
    const bool takes_options = std::find(without.begin(), without.end(), command) == without.end();
    EXPECT_EQ(ended.out.find("[default") != std::string::npos, takes_options);
    EXPECT_TRUE(is_plain_text(ended.out));
    EXPECT_EQ(ended.err, "");
    for (const std::string& line : lines_of(ended.out)) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(HelpTest, NamesUnitsRangesDefaultsAndAliases) {
  const std::string help = run({"--help-all"}, ".").out;
  EXPECT_NE(help.find("images per device"), std::string::npos);
  EXPECT_NE(help.find("1 to 1048576"), std::string::npos);
  EXPECT_NE(help.find("default auto"), std::string::npos);
  EXPECT_NE(help.find("--learning-rate"), std::string::npos);
  EXPECT_EQ(run({"-h"}, ".").out, run({"--help"}, ".").out);
}

TEST(HelpTest, IsShortWithExamplesAndTheUsualOptions) {
  const Ended help = run({"--help"}, ".");
  EXPECT_LE(lines_of(help.out).size(), 80u) << help.out;
  for (const char* const part : {"train --data-dir photos", "train predict runs/photos", "--epochs", "--help-all"}) {
    EXPECT_NE(help.out.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(run({"help"}, ".").out, help.out);
  EXPECT_EQ(run({"help", "eval"}, ".").out, run({"eval", "--help"}, ".").out);
  EXPECT_EQ(run({"-V"}, ".").out, run({"--version"}, ".").out);
}

TEST(HelpTest, ModelsAndPresetsAreListed) {
  EXPECT_NE(run({"list", "models"}, ".").out.find("resnet18\n"), std::string::npos);
  EXPECT_NE(run({"list", "presets"}, ".").out.find("fashion_mnist\n"), std::string::npos);
}

TEST(HelpTest, AConfigFileWithoutDataIsAnError) {
  const Workplace work;
  work.write("c.yaml", "epochs: 1\n");
  const Ended ended = run({"-c", "c.yaml"}, work.path());
  EXPECT_EQ(ended.exit_code, 78);
  EXPECT_NE(ended.err.find("c.yaml names no data"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("--data-dir FOLDER"), std::string::npos) << ended.err;
}

TEST(HelpTest, NeedsNeitherTerminalNorEnvironment) {
  Launch bare;
  bare.words = {"--help"};
  bare.directory = "/";
  bare.empty_environment = true;
  const Ended ended = run(bare);
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_EQ(ended.out, run({"--help"}, ".").out);
}

TEST(HelpTest, NeedsNoStandardStreams) {
  Launch silent;
  silent.words = {"--help"};
  silent.standard_output = Stream::closed;
  silent.standard_error = Stream::closed;
  EXPECT_EQ(run(silent).exit_code, 0);
}

TEST(HelpTest, VersionIsOneLine) {
  const Ended ended = run({"--version"}, ".");
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.out.rfind("stoker train ", 0), 0u) << ended.out;
  EXPECT_EQ(lines_of(ended.out).size(), 1u);
  EXPECT_EQ(ended.err, "");
}

TEST(TrainingTest, NeedsNeitherTerminalNorEnvironment) {
  const Workplace work;
  write_idx(work);
  Launch bare;
  bare.words = train_words();
  bare.directory = work.path();
  bare.empty_environment = true;
  const Ended ended = run(bare);
  SCOPED_TRACE(story_of(bare.words, ended));
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_TRUE(is_plain_text(ended.out));
  EXPECT_EQ(without_result(ended.err),
            "train: exit=0 reason=epochs-done update=4 checkpoint=run/checkpoints/step-00000004\n");
}

}  // namespace
}  // namespace stoker::cli
