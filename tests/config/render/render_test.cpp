// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/config/resolved_words.h"
#include "tests/temporary_directory.h"

namespace stoker::config {
namespace {

using fixtures::parsed;

/// Data of 28 pixels on 2 CPUs without CUDA.
Facts facts_of_28() {
  core::MachineFacts machine;
  machine.cpus = 2;
  return fixtures::facts_of(machine, {10, 1, 28, 28, 60000});
}

struct Resolved {
  std::unique_ptr<Configuration> given;
  Resolution resolution;

  std::string yaml() const { return render_yaml(*given, resolution); }
};

Resolved resolved_words(const std::vector<std::string>& words) {
  auto given = parsed(words);
  Resolution resolution = resolve(given->options, facts_of_28());
  return {std::move(given), std::move(resolution)};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(RenderTest, ALogOutsideTheRunIsNotNamedByTheRunsFile) {
  EXPECT_TRUE(
      contains(resolved_words({"--run-dir", "r", "--log-file", "out/x.log"}).yaml(), "\n  # log-file: out/x.log"));
  EXPECT_TRUE(contains(resolved_words({"--run-dir", "r", "--log-file", "r/../x.log"}).yaml(), "\n  # log-file: "));
  EXPECT_TRUE(contains(resolved_words({"--run-dir", "r", "--log-file", "r/.x/l.log"}).yaml(), "\n  # log-file: "));
  EXPECT_TRUE(contains(resolved_words({"--run-dir", "r", "--log-file", "./r/x.log"}).yaml(), "\n  log-file: "));
}

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
                                     "a \"b\" \\ #c: null/äö.log",
                                     "--seed",
                                     "18446744073709551615"});
  for (const std::string& yaml : {render_yaml(first.resolution.options), first.yaml()}) {
    const auto second = resolved_words({"-c", directory.write("config.yaml", yaml)});
    EXPECT_EQ(render_yaml(second.resolution.options), render_yaml(first.resolution.options));
    for (const Row& row : second.given->table.rows()) EXPECT_EQ(row.origin.kind, Origin::Kind::file) << row.name;
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

TEST(RenderTest, PrintedConfigurationShowsWhereEachValueCameFrom) {
  const std::string yaml = resolved_words({"--epochs", "3", "--bf16"}).yaml();
  EXPECT_TRUE(contains(yaml, "  epochs: 3                                 # --epochs\n"));
  EXPECT_TRUE(contains(yaml, "  amp: bfloat16                             # --bf16\n"));
  EXPECT_TRUE(contains(yaml, "  threads: 2                                # auto: 2 CPUs\n"));
  EXPECT_TRUE(contains(yaml, "  seed: 42                                  # default\n"));
  EXPECT_TRUE(contains(yaml, "# preset fashion_mnist:"));
  EXPECT_TRUE(contains(yaml, "  cache: auto                               # default\n")) << "what is assumed is open";
}

TEST(RenderTest, TrainingRelevantValuesLeaveOutTheMachineAndTheLogs) {
  const auto c = resolved_words({"--epochs", "3"});
  const auto values = training_relevant_values(c.resolution.options);
  const auto has = [&](const std::string& name) {
    return std::any_of(values.begin(), values.end(), [&](const auto& value) { return value.name == name; });
  };
  EXPECT_TRUE(has("epochs"));
  EXPECT_TRUE(has("batch-size"));
  EXPECT_FALSE(has("num-workers"));
  EXPECT_FALSE(has("run-dir"));
  EXPECT_FALSE(has("device"));
}

TEST(RenderTest, TrainingRelevantValuesLeaveOutWhatOtherOptionsLeaveWithoutEffect) {
  const auto names = [](const std::vector<std::string>& words) {
    std::string all;
    for (const TrainingOption& option : training_relevant_values(resolved_words(words).resolution.options)) {
      all += option.name + " ";
    }
    return all;
  };
  EXPECT_FALSE(contains(names({"--sched", "cosine"}), "one-cycle"));
  EXPECT_TRUE(contains(names({"--sched", "one-cycle"}), "one-cycle one-cycle-momentum"));
}

}  // namespace
}  // namespace stoker::config
