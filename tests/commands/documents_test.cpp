// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "commands/command.h"
#include "core/text/json.h"

namespace stoker::train {
namespace {

/// All commands, as they are described.
struct Described {
  const std::vector<Command> all = all_commands();
  config::Commands commands;
  config::Configuration configuration;
  const config::Table& table = configuration.table;

  Described() {
    for (const Command& command : all) commands.push_back(&command);
  }
  const config::Syntax& named(const std::string& name) const {
    for (const Command& command : all) {
      if (command.name == name) return command;
    }
    throw std::logic_error(name);
  }
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(DocsTest, OptionsPageIsUpToDate) {
  std::ostringstream page;
  page << std::ifstream(STOKER_SOURCE_DIR "/docs/options.md", std::ios::binary).rdbuf();
  const Described described;
  EXPECT_TRUE(page.str() == config::render_markdown(described.table, described.commands))
      << "docs/options.md is out of date: run `train list options --format markdown > docs/options.md`";
}

TEST(DocsTest, SchemaIsUpToDate) {
  std::ostringstream file;
  file << std::ifstream(STOKER_SOURCE_DIR "/docs/options.schema.json", std::ios::binary).rdbuf();
  EXPECT_TRUE(file.str() == config::render_schema())
      << "docs/options.schema.json is out of date: run `train list options --format schema > docs/options.schema.json`";
}

TEST(DocsTest, EveryOptionIsInTheManualPageInEachCompletionAndInTheSchema) {
  const Described described;
  std::string page = config::render_man(described.table, described.commands, "1");
  for (size_t at = 0; (at = page.find("\\-", at)) != std::string::npos;) page.erase(at, 1);
  const core::Json properties = core::Json::parse(config::render_schema()).at("properties");
  for (const config::Row& row : described.table.rows()) {
    EXPECT_NE(page.find((row.is_switch ? "]" : "-") + row.name), std::string::npos) << row.name;
    EXPECT_TRUE(properties.contains(row.name)) << row.name;
    if (row.is_expert) continue;
    for (const std::string& shell : config::completion_shells()) {
      const std::string script = config::render_completion(described.table, described.commands, shell, {"resnet18"});
      const std::string flag = shell == "fish" ? " -l " + row.name + " " : "--" + row.name;
      EXPECT_NE(script.find(flag), std::string::npos) << shell << " " << row.name;
    }
  }
}

TEST(DocsTest, SchemaHasTypesAndChoices) {
  const core::Json properties = core::Json::parse(config::render_schema()).at("properties");
  EXPECT_EQ(properties.at("epochs").at("type"), "number");
  EXPECT_EQ(properties.at("keep-last").at("type"), "number");
  EXPECT_EQ(properties.at("report").at("type"), "boolean");
  EXPECT_EQ(properties.at("batch-size").at("type"), core::Json({"string", "number"}));  // or auto
  EXPECT_EQ(properties.at("log-level").at("enum").size(), 4u);
  for (const auto& [name, schema] : properties.items()) {
    if (schema.count("enum") == 0) continue;
    const std::vector<core::Json> words = schema.at("enum");
    EXPECT_EQ(std::set<core::Json>(words.begin(), words.end()).size(), words.size()) << name;
  }
  EXPECT_EQ(properties.at("run").at("properties").at("report").at("$ref"), "#/properties/report");
}

TEST(HelpTextTest, HelpOfEveryCommandFitsAHundredColumns) {
  const Described described;
  for (const Command& command : described.all) {
    std::istringstream help(config::render_help(described.table, described.commands, command));
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(HelpTextTest, HelpShowsEveryOptionWithUnitRangeAndDefault) {
  const Described described;
  const std::string help = config::render_help(described.table, described.commands, described.named(""));
  for (const config::Row& row : described.table.rows()) {
    EXPECT_TRUE(contains(help, (row.is_switch ? "--[no-]" : "--") + row.name)) << row.name;
  }
  EXPECT_TRUE(contains(help, "  -b, --batch-size N              "));
  EXPECT_TRUE(contains(help, "[images per device: auto, or 1 to"));
}

TEST(HelpTextTest, HelpOfEvalShowsWhatEvalTakesAndNothingElse) {
  const Described described;
  const std::string help = config::render_help(described.table, described.commands, described.named("eval"));
  EXPECT_TRUE(contains(help, "Usage: train eval RUN_OR_CHECKPOINT [DATA] [options]"));
  EXPECT_TRUE(contains(help, "--which best|last"));
  EXPECT_TRUE(contains(help, "--val-batch-size N"));
  EXPECT_FALSE(contains(help, "--epochs"));
  EXPECT_FALSE(contains(help, "--momentum"));
}

TEST(HelpTextTest, TheListOfOptionsHasOneLineForEach) {
  const Described described;
  const std::string list = config::render_option_list(described.table);
  EXPECT_EQ(static_cast<size_t>(std::count(list.begin(), list.end(), '\n')), described.table.rows().size());
}

}  // namespace
}  // namespace stoker::train
