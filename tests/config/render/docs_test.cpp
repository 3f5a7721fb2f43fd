// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "config/config.h"
#include "core/text/json.h"

namespace stoker::config {
namespace {

TEST(DocsTest, OptionsPageIsUpToDate) {
  std::ostringstream page;
  page << std::ifstream(STOKER_SOURCE_DIR "/docs/options.md", std::ios::binary).rdbuf();
  const Configuration configuration;
  EXPECT_TRUE(page.str() == render_markdown(configuration.table))
      << "docs/options.md is out of date: run `train --help-markdown > docs/options.md`";
}

TEST(DocsTest, SchemaIsUpToDate) {
  std::ostringstream file;
  file << std::ifstream(STOKER_SOURCE_DIR "/docs/options.schema.json", std::ios::binary).rdbuf();
  EXPECT_TRUE(file.str() == render_schema())
      << "docs/options.schema.json is out of date: run `train --help-schema > docs/options.schema.json`";
}

TEST(DocsTest, EveryOptionIsInTheManualPageInEachCompletionAndInTheSchema) {
  const Configuration configuration;
  std::string page = render_man(configuration.table, "1");
  for (size_t at = 0; (at = page.find("\\-", at)) != std::string::npos;) page.erase(at, 1);
  const core::Json properties = core::Json::parse(render_schema()).at("properties");
  for (const Row& row : configuration.table.rows()) {
    EXPECT_NE(page.find((row.is_switch ? "]" : "-") + row.name), std::string::npos) << row.name;
    EXPECT_TRUE(properties.contains(row.name)) << row.name;
    for (const std::string& shell : completion_shells()) {
      const std::string script = render_completion(configuration.table, shell, {"resnet18"});
      const std::string flag = shell == "fish" ? " -l " + row.name + " " : "--" + row.name;
      EXPECT_NE(script.find(flag), std::string::npos) << shell << " " << row.name;
    }
  }
}

TEST(DocsTest, SchemaKnowsTypesAndChoices) {
  const core::Json properties = core::Json::parse(render_schema()).at("properties");
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

}  // namespace
}  // namespace stoker::config
