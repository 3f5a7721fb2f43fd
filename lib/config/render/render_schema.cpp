// SPDX-License-Identifier: Apache-2.0
// A JSON schema of YAML files, by which editors complete and check them. The program itself reads more strictly.
#include <algorithm>

#include "config/config.h"
#include "config/render/describe.h"
#include "core/text/json.h"

namespace stoker::config {
namespace {

using core::Json;

/// A word of a choice as YAML may read it: `16` as a number, `true` as a truth value.
void add_choice(const std::string& word, Json& choices) {
  choices.push_back(word);
  const Json value = Json::parse(word, /*callback=*/nullptr, /*allow_exceptions=*/false);
  if (value.is_number() || value.is_boolean()) choices.push_back(value);
}

Json schema_of(Row& row) {
  Json schema;
  const bool takes_auto = row.assign("auto").empty();  // of a table that nothing else reads
  if (row.is_switch && row.choices.empty()) {
    schema = takes_auto ? Json{{"enum", {true, false, "auto"}}} : Json{{"type", "boolean"}};
  } else if (!row.choices.empty()) {
    schema["enum"] = Json::array();
    for (const std::string& choice : row.choices) add_choice(choice, schema["enum"]);
    if (row.is_switch) schema["enum"].insert(schema["enum"].end(), {true, false});
    if (takes_auto && std::count(row.choices.begin(), row.choices.end(), "auto") == 0) schema["enum"].push_back("auto");
  } else if (row.is_list || row.has_parts) {
    schema["type"] = {"array", "number", "string"};
  } else if (row.is_number && !takes_auto) {
    schema["type"] = "number";
  } else {
    schema["type"] = {"string", "number"};
  }
  schema["description"] = row.help + " [" + value_text(row) + "]";
  return schema;
}

}  // namespace

std::string render_schema() {
  Configuration scratch;
  Json properties = Json::object();
  for (const Group& group : scratch.table.groups()) {
    Json inside = Json::object();
    const auto add = [&](const std::string& name, const Json& schema) {
      inside[name] = {{"$ref", "#/properties/" + name}};
      properties[name] = schema;
    };
    for (Row& row : scratch.table.rows()) {
      if (row.group != group.name) continue;
      add(row.name, schema_of(row));
      for (const std::string& alias : row.aliases) {
        if (alias.size() > 1) add(alias, {{"$ref", "#/properties/" + row.name}});
      }
    }
    // An option may have the name of a group.
    if (!properties.contains(group.name)) {
      properties[group.name] = {{"type", "object"},
                                {"description", group.title},
                                {"properties", inside},
                                {"patternProperties", {{"_", Json::object()}}},
                                {"additionalProperties", false}};
    }
  }
  const Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                       {"title", "Configuration of train"},
                       {"type", "object"},
                       {"properties", properties},
                       {"patternProperties", {{"_", Json::object()}}},  // `_` is accepted for `-` in every name
                       {"additionalProperties", false}};
  return schema.dump(1) + "\n";
}

}  // namespace stoker::config
