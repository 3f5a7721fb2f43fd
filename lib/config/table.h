// SPDX-License-Identifier: Apache-2.0
// The table of options: one row per option, bound to its field. Flags, YAML keys, --help, --print-config,
// range checks and docs/options.md are all derived from these rows and from nothing else.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/options.h"

namespace stoker::config {

/// Where a value came from, for --print-config and error messages.
struct Origin {
  enum class Kind { built_in, preset, file, flag, resolved } kind = Kind::built_in;
  std::string detail;  ///< "configs/a.yaml:12", "--batch-size", "2 CPUs by affinity"
};

/// One option. Values travel as text and are parsed strictly by the row.
struct Row {
  std::string name;                  ///< canonical kebab-case long name, without dashes
  std::string group;                 ///< also the YAML group
  std::vector<std::string> aliases;  ///< long names accepted besides; one-letter aliases are short flags
  std::string unit;                  ///< "images per device", "epochs"; empty when it has none
  std::string range;                 ///< for people: "1 to 1048576"; empty when free
  std::vector<std::string> choices;
  std::string help;
  std::string default_text;          ///< rendered built-in value
  bool is_switch = false;            ///< bool: `--x` and `--no-x`
  bool is_list = false;
  bool training_relevant = true;     ///< a change of it changes the trained bits: checked on resume

  /// Parses and stores; returns "" or what is wrong with the text, in words with the accepted range.
  std::function<std::string(const std::string& text)> assign;
  std::function<std::string()> render;  ///< the current value as text that assign() reads back
  std::function<bool()> is_auto;        ///< still to be chosen by resolve()
  Origin origin;
};

struct Group {
  std::string name;   ///< YAML group
  std::string title;  ///< heading in --help
};

/// All rows, bound to one Options object that must outlive the table.
class Table {
 public:
  explicit Table(Options& options);  ///< declares every option (declare.cpp)

  std::vector<Row>& rows() { return rows_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Group>& groups() const { return groups_; }
  /// By canonical name or alias, `_` taken for `-`; nullptr when unknown.
  Row* find(const std::string& name);
  /// Canonical names and aliases, for "did you mean".
  std::vector<std::string> all_names() const;

 private:
  friend class Declaration;
  std::vector<Row> rows_;
  std::vector<Group> groups_;
};

}  // namespace stoker::config
