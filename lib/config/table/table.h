// SPDX-License-Identifier: Apache-2.0
// The table of options: one row per option, bound to its field. Flags, YAML keys, --help, --print-config,
// range checks and docs/options.md are all derived from these rows and from nothing else.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"

namespace stoker::config {

/// Where a value came from, for --print-config and error messages.
struct Origin {
  /// In order of precedence: a value never replaces one of a later kind, whichever is read first.
  /// `run` is the configuration of a finished run that eval and predict take over.
  enum class Kind { built_in, run, preset, file, flag, resolved } kind = Kind::built_in;
  std::string detail;  ///< "configs/a.yaml:12", "--batch-size", "2 CPUs by affinity"
};

/// One option. Values travel as text and are parsed strictly by the row.
struct Row {
  const void* field = nullptr;           ///< that the row is bound to
  std::vector<const void*> more_fields;  ///< further fields of an option of several values
  std::string name;                      ///< canonical kebab-case long name, without dashes
  std::string group;                     ///< also the YAML group
  std::vector<std::string> aliases;      ///< long names accepted besides; one-letter aliases are short flags
  std::string counted_alias;             ///< one of these: a plain number given by it counts `counted_unit`s
  std::string counted_unit;              ///< "u", "e"; "": as it is. What is not above 0 means `counted_none`
  std::string counted_none;
  std::string placeholder;  ///< stands for the value in --help: "N", "DIR"; empty for switches and choices
  std::string unit;         ///< "images per device", "epochs"; empty when it has none
  std::string range;        ///< for people: "1 to 1048576"; empty when free
  std::vector<std::string> choices;
  std::string help;
  std::string default_text;   ///< rendered built-in value
  std::string shown_default;  ///< in help and docs instead of it, where the value depends on others: "by image size"
  bool is_switch = false;     ///< bool: `--x` and `--no-x`
  bool is_list = false;
  bool has_parts = false;         ///< several values of their own kinds: in YAML a list, or one text with commas
  bool is_expert = false;         ///< shown by --help-all and the manual alone
  bool takes_list = false;        ///< in YAML a single value or a list, of one, too: "2," is what assign() gets then
  bool is_number = false;         ///< a YAML value in quotes is text and therefore an error
  bool training_relevant = true;  ///< a change of it changes the trained bits: checked on resume
  bool in_eval = false, in_predict = false, in_pack = false;  ///< these commands take it too, besides training
  std::function<bool()> is_used;    ///< false: other options leave it without effect; empty: always used
  std::string value_in_older_runs;  ///< what runs did whose checkpoints do not have it; empty: they cannot be compared
  bool per_process = false;         ///< local to this process or machine: eval and predict do not take it from the run

  /// Parses and stores; returns "" or what is wrong with the text, in words with the accepted range.
  std::function<std::string(const std::string& text)> assign;
  std::function<std::string()> render;  ///< the current value as text that assign() reads back
  std::function<bool()> is_auto;        ///< still to be chosen by resolve()
  Origin origin;
};

/// A word of other programs for a combination of ours, or for nothing: `--bf16`, `--gpus 1`. They are read, and shown
/// nowhere; table/foreign_words.cpp has them.
struct Shorthand {
  using Values = std::vector<std::pair<std::string, std::string>>;  ///< option name, text
  std::string name;
  std::vector<std::pair<std::string, Values>> choices;  ///< N: any whole number from 1 on
  bool is_switch = false;                               ///< `--x` alone is `--x true`
  bool has_negation = false;                            ///< `--no-x` is `--x false`
  std::string note;                                     ///< for whoever uses it; empty: none
  bool is_written_for_gpus = false;  ///< it is copied from commands for a GPU: on a CPU its float16 may give way
  Origin used;                       ///< where it was written last; built_in: nowhere
};

/// A word that the option lists, as it is listed: of Cosine, True, AUTO. Other texts stay.
std::string in_small_letters(const Row& row, const std::string& text);

/// One option and the text to give it.
struct Assignment {
  Row* row = nullptr;
  std::string text;
};

struct Group {
  std::string name;   ///< YAML group
  std::string title;  ///< heading in --help
};

/// All rows, bound to one object of options that must outlive the table.
class Table {
 public:
  explicit Table(Options& options);  ///< declares every option (declare_*.cpp)
  /// The options of a run, in the same order. "auto" is not a value of theirs, but for lists that may be empty.
  explicit Table(ResolvedOptions& options);

  std::vector<Row>& rows() { return rows_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Group>& groups() const { return groups_; }
  const std::vector<Shorthand>& shorthands() const { return shorthands_; }
  /// By canonical name or alias, `_` taken for `-`; nullptr when unknown.
  Row* find(const std::string& name);
  const Row* find(const std::string& name) const;
  /// The row of a member of the options that the table is bound to. Throws std::logic_error for any other object.
  template <typename Field>
  Row& row_of(const Field& field) {
    return row_at(&field);
  }
  template <typename Field>
  const Row& row_of(const Field& field) const {
    return const_cast<Table*>(this)->row_at(&field);  // which changes nothing
  }
  const Shorthand* find_shorthand(const std::string& name) const;
  /// Remembers where a shorthand stands; nothing for the name of an option.
  void note_use(const std::string& name, const Origin& origin);
  const Group* find_group(const std::string& name) const;

  /// The options that `name` = `text` sets: the option itself, or those behind a shorthand. Returns "" or what is
  /// wrong; nothing is stored.
  std::string expand(const std::string& name, const std::string& text, std::vector<Assignment>& assignments);
  /// Checks the text and stores it, unless the row holds a value of a later kind of origin. "~/" is the home folder:
  /// no shell expands the values of a file.
  /// Returns "" or what is wrong.
  std::string set(Row& row, const std::string& text, const Origin& origin);

  /// Canonical names, aliases and shorthands, for "did you mean". One-letter aliases are left out.
  std::vector<std::string> all_names() const;

 private:
  friend class Declaration;
  template <typename AnyOptions>
  void declare(AnyOptions& options);
  void declare_foreign();
  Row& row_at(const void* field);

  std::vector<Row> rows_;
  std::vector<Group> groups_;
  std::vector<Shorthand> shorthands_;
};

/// `_` becomes `-`: both are accepted in every name.
std::string kebab(std::string name);

}  // namespace stoker::config
