// SPDX-License-Identifier: Apache-2.0
// Whole configuration files of timm, Lightning and others: rewritten as options of this program before they are
// assigned, by the tables of config/table/foreign_words.h.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "config/yaml/yaml_tree.h"

namespace stoker::config {

/// Rewrites an args.yaml of timm's train.py, or a file for LightningCLI: data, model, optimizer and lr_scheduler with
/// class_path and init_args. Leaves any other file as it is. `notes`: sentences for whoever gave the file.
void rewrite_foreign(YamlNode& top, std::vector<YamlProblem>& problems, std::vector<std::string>& notes);

/// read_yaml() that also lists in `notes` what has no meaning here in a file of another trainer. `flags`: names that
/// only a command line may have.
void read_yaml_with_notes(const std::string& text, const std::string& path, Origin::Kind kind,
                          const std::vector<std::string>& flags, Table& table, std::vector<std::string>& problems,
                          std::vector<std::string>& notes);

/// Parts of rewriting.
YamlNode yaml_scalar(const std::string& text, int line);
/// A list of scalars where the text has commas, else a scalar.
YamlNode yaml_words(const std::string& text, int line);
void append_entry(YamlNode& map, const std::string& key, const YamlNode& value);

}  // namespace stoker::config
