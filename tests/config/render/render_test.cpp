// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "config/read/verbs.h"
#include "tests/config/command_words.h"
#include "tests/temporary_directory.h"

namespace stoker::config {
namespace {

using fixtures::parsed;

/// Without CUDA, 2 CPUs.
std::unique_ptr<Configuration> resolved_words(const std::vector<std::string>& words) {
  auto c = parsed(words);
  core::MachineFacts machine;
  machine.cpus = 2;
  resolve_machine(*c, machine);
  resolve_data(*c, {10, 1, 28, 28, 60000});
  return c;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(RenderTest, ResolvedYamlReadsBackAsTheSameValues) {
  const fixtures::TemporaryDirectory directory;
  const auto first = resolved_words({"--run-dir",
                                     "a \"b\" \\ #c: null",
                                     "--lr",
                                     "0.30000000000000004",
                                     "--mean",
                                     "0.1",
                                     "--decay-milestones",
                                     "1.5,3",
                                     "--save-every",
                                     "90s",
                                     "--max-time",
                                     "2h",
                                     "--val-split",
                                     "null",
                                     "--train-split",
                                     "~",
                                     "--log-file",
                                     "äö",
                                     "--seed",
                                     "18446744073709551615"});
  for (const bool with_origin : {false, true}) {
    const std::string path = directory.write("config.yaml", render_yaml(first->table, with_origin));
    const auto second = resolved_words({"-c", path});
    for (const Row& row : first->table.rows()) {
      EXPECT_EQ(second->table.find(row.name)->render(), row.render()) << row.name;
      EXPECT_EQ(second->table.find(row.name)->origin.kind, Origin::Kind::file) << row.name;
    }
  }
}

TEST(RenderTest, EveryTextValueSurvivesYaml) {
  for (const char* text : {"null", "Null", "~",  "true", "no",  "123", "010", "-x",    "- x", "a: b", "a #b",
                           "'",    "\"",   "\\", "@x",   "`x`", "%x",  "*x",  "&x",    "!x",  "[x]",  "{x}",
                           "|",    ">",    "?",  " x ",  ".",   "..",  "---", "a\\nb", "é"}) {
    Configuration c;
    ASSERT_EQ(c.table.set(*c.table.find("train-split"), text, {Origin::Kind::flag, "x"}), "") << text;
    Configuration again;
    std::vector<std::string> problems;
    read_yaml(render_yaml(c.table, true), "c.yaml", Origin::Kind::file, again.table, problems);
    EXPECT_EQ(problems, std::vector<std::string>{}) << text;
    EXPECT_EQ(again.options.data.train_split, text);
  }
}

TEST(RenderTest, PrintedConfigurationSaysWhereEachValueCameFrom) {
  const std::string yaml = render_yaml(resolved_words({"--epochs", "3", "--bf16"})->table, true);
  EXPECT_TRUE(contains(yaml, "  epochs: 3                                 # --epochs\n"));
  EXPECT_TRUE(contains(yaml, "  amp-dtype: bfloat16                       # --bf16\n"));
  EXPECT_TRUE(contains(yaml, "  threads: 2                                # auto: 2 CPUs\n"));
  EXPECT_TRUE(contains(yaml, "  seed: 42                                  # default\n"));
  EXPECT_TRUE(contains(yaml, "# preset fashion_mnist:"));
}

TEST(RenderTest, HelpOfEveryVerbFitsAHundredColumns) {
  const Configuration c;
  for (const Verb& verb : verbs()) {
    std::istringstream help(render_help(c.table, verb.name));
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(RenderTest, HelpShowsEveryOptionWithUnitRangeAndDefault) {
  const Configuration c;
  const std::string help = render_help(c.table, "");
  for (const Row& row : c.table.rows()) {
    EXPECT_TRUE(contains(help, (row.is_switch ? "--[no-]" : "--") + row.name)) << row.name;
  }
  EXPECT_TRUE(contains(help, "  -b, --batch-size N              Images in one forward pass;"));
  EXPECT_TRUE(contains(help, "[images per device: auto, or 1 to"));
  EXPECT_TRUE(contains(help, "How samples travel from disk to the device (loader):"));
  EXPECT_TRUE(contains(help, "--opt sgd|adam|adamw            Update rule. [default sgd] Also --optimizer."));
}

TEST(RenderTest, HelpOfEvalShowsWhatEvalTakesAndNothingElse) {
  const Configuration c;
  const std::string help = render_help(c.table, "eval");
  EXPECT_TRUE(contains(help, "Usage: train eval RUN_OR_CHECKPOINT [options]"));
  EXPECT_TRUE(contains(help, "--which best|last"));
  EXPECT_TRUE(contains(help, "--val-batch-size N"));
  EXPECT_FALSE(contains(help, "--epochs"));
  EXPECT_FALSE(contains(help, "--momentum"));
  EXPECT_TRUE(contains(render_help(c.table, "predict"), "INPUT    "));
}

TEST(RenderTest, TrainingRelevantValuesLeaveOutTheMachineAndTheLogs) {
  const auto c = resolved_words({"--epochs", "3"});
  const auto values = training_relevant_values(c->table);
  const auto has = [&](const std::string& name) {
    return std::any_of(values.begin(), values.end(), [&](const auto& value) { return value.first == name; });
  };
  EXPECT_TRUE(has("epochs"));
  EXPECT_TRUE(has("batch-size"));
  EXPECT_FALSE(has("num-workers"));
  EXPECT_FALSE(has("run-dir"));
  EXPECT_FALSE(has("device"));
}

}  // namespace
}  // namespace stoker::config
