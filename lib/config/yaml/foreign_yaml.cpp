// SPDX-License-Identifier: Apache-2.0
// What the files for each other trainer share: entries of YAML trees.
#include "config/yaml/foreign_yaml.h"

namespace stoker::config {

YamlNode yaml_scalar(const std::string& text, int line) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  node.line = line;
  return node;
}

const YamlNode* yaml_value(const YamlNode& map, const std::string& key) {
  for (size_t i = 0; i + 1 < map.items.size(); i += 2) {
    if (map.items[i].text == key) return &map.items[i + 1];
  }
  return nullptr;
}

bool is_empty_value(const YamlNode& value) {
  if (value.refused) return false;
  return value.kind == YamlNode::Kind::scalar ? value.text.empty() : value.items.empty();
}

bool is_off_value(const YamlNode& value) {
  return is_empty_value(value) || value.text == "false" || value.text == "0" || value.text == "0.0";
}

void append_entry(YamlNode& map, const std::string& key, const YamlNode& value) {
  map.items.push_back(yaml_scalar(key, value.line));
  map.items.push_back(value);
}

void append_entry(YamlNode& map, const std::string& key, const std::string& text, int line) {
  append_entry(map, key, yaml_scalar(text, line));
}

}  // namespace stoker::config
