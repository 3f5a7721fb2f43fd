// SPDX-License-Identifier: Apache-2.0
// One YAML text as a small tree with line numbers. The only file that includes yaml-cpp, through its events, so
// that anchors and aliases are refused before anything expands them.
#pragma once

#include <string>
#include <vector>

namespace stoker::config {

/// Something wrong at a line (from 1).
struct YamlProblem {
  int line = 0;
  std::string text;
};

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  int line = 0;                 ///< from 1
  std::string text;             ///< text of a scalar, as written
  bool quoted = false;          ///< true for a scalar in quotes
  bool refused = false;         ///< an alias: already reported
  std::vector<YamlNode> items;  ///< items of a list; for a map: key, value, key, value, ... duplicates included
};

/// Longest configuration text, in bytes.
inline constexpr size_t kMaxYamlBytes = 1'000'000;

/// Parses exactly one document. Appends a problem for bytes that are not UTF-8 text, a syntax error, anchors,
/// aliases, tags, nesting deeper than 8, no document or a second one. What could be read is returned even
/// then.
YamlNode parse_yaml(const std::string& text, std::vector<YamlProblem>& problems);

}  // namespace stoker::config
