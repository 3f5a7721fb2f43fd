// SPDX-License-Identifier: Apache-2.0
// Whole configuration files of other trainers, rewritten as options of this one before they are assigned. Knows the
// names and defaults of LightningCLI and of timm's train.py.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "config/yaml/yaml_tree.h"

namespace stoker::config {

/// What a rewritten file said besides options.
struct ForeignReport {
  std::vector<std::string> notes;         ///< sentences for whoever gave the file
  std::vector<std::string> without_work;  ///< keys that have no meaning here
};

/// Rewrites a file for LightningCLI: data, model, optimizer and lr_scheduler with class_path and init_args. Leaves any
/// other file as it is and returns false.
bool rewrite_lightning(YamlNode& top, std::vector<YamlProblem>& problems, ForeignReport& report);

/// Rewrites an args.yaml of timm's train.py. Leaves any other file as it is and returns false.
bool rewrite_timm(YamlNode& top, std::vector<YamlProblem>& problems, ForeignReport& report);

/// read_yaml() that also says, in notes, what a file of another trainer has that has no meaning here.
void read_yaml_with_notes(const std::string& text, const std::string& path, Origin::Kind kind, Table& table,
                          std::vector<std::string>& problems, std::vector<std::string>& notes);

// Parts of rewriting.

YamlNode yaml_scalar(const std::string& text, int line);
/// The value of a key of a map, or nullptr.
const YamlNode* yaml_value(const YamlNode& map, const std::string& key);
/// null, '', [] and {}.
bool is_empty_value(const YamlNode& value);
/// An empty value, false and 0.
bool is_off_value(const YamlNode& value);
void append_entry(YamlNode& map, const std::string& key, const YamlNode& value);
void append_entry(YamlNode& map, const std::string& key, const std::string& text, int line);

}  // namespace stoker::config
