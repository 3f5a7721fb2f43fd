// SPDX-License-Identifier: Apache-2.0
// The vocabulary in which declare_*.cpp writes one row per option.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/table/codec.h"
#include "config/table/table.h"

namespace stoker::config {

/// Adds to the row just declared.
class RowDraft {
 public:
  using Text = std::string;
  RowDraft(std::vector<Row>& rows, size_t index) : rows_(rows), index_(index) {}

  RowDraft& alias(std::initializer_list<const char*> names);
  /// Like alias(); a plain number given by this name counts `unit`s, and 0 or less means `none`: as elsewhere.
  RowDraft& counted_alias(const char* name, const Text& unit, const Text& none) {
    with(&Row::counted_alias, Text(name)).with(&Row::counted_unit, unit).with(&Row::counted_none, none);
    return alias({name});
  }
  RowDraft& unit(const Text& text) { return with(&Row::unit, text); }
  RowDraft& help(const Text& text) { return with(&Row::help, text); }
  RowDraft& placeholder(const Text& text) { return with(&Row::placeholder, text); }
  /// `--x` alone is `--x on`, `--no-x` is `--x off`, and it takes other words besides.
  RowDraft& value_switch(const std::vector<Text>& words, std::function<bool()> is_auto) {
    return with(&Row::is_switch, true).with(&Row::choices, words).with(&Row::is_auto, std::move(is_auto));
  }
  /// In YAML it may also be a list: [0, 2] of GPUs, which is never a single number; [0.4, p0.8] of several values.
  RowDraft& takes_list() { return with(&Row::takes_list, true); }
  RowDraft& several() { return with(&Row::has_parts, true); }
  /// It may change on resume: the trained bits do not depend on it.
  RowDraft& free_on_resume() { return with(&Row::training_relevant, false); }
  /// Trained bits depend on it only while `is_used` holds; a run that does not use it may resume with any value.
  RowDraft& used_while(std::function<bool()> is_used) { return with(&Row::is_used, std::move(is_used)); }
  /// For an option that older programs did not have: the value that has their bits.
  RowDraft& value_in_older_runs(const Text& text) { return with(&Row::value_in_older_runs, text); }
  /// It belongs to this process or machine; also free on resume.
  RowDraft& per_process() { return with(&Row::per_process, true).free_on_resume(); }
  RowDraft& used_in_eval() { return with(&Row::in_eval, true); }
  RowDraft& used_in_inference() { return used_in_eval().with(&Row::in_predict, true); }
  RowDraft& used_in_pack() { return with(&Row::in_pack, true); }
  RowDraft& shown_default(const Text& text) { return with(&Row::shown_default, text); }
  /// Advanced: shown by --help-all and the manual alone.
  RowDraft& expert() { return with(&Row::is_expert, true); }

 private:
  template <typename T>
  RowDraft& with(T Row::*member, T value) {
    rows_[index_].*member = std::move(value);
    return *this;
  }

  std::vector<Row>& rows_;
  size_t index_;
};

/// One value of an option that has several: the 0.08 of `--scale 0.08,1`.
struct Part {
  const void* field = nullptr;
  std::string name, accepted, default_text;
  std::function<std::string(const std::string& text)> assign;
  std::function<std::string()> render;

  /// The usual value is that of a Group as it is made.
  template <typename Group, typename T>
  Part(const std::string& of, Group& group, T Group::*member, const Codec<T>& codec)
      : field(&(group.*member)),
        name(of),
        accepted(codec.range),
        default_text(codec.render(Group().*member)),
        assign([&value = group.*member, codec](const std::string& text) { return codec.parse(text, value); }),
        render([&value = group.*member, codec] { return codec.render(value); }) {}
};

/// Fills a table. Fields must outlive it.
class Declaration {
 public:
  explicit Declaration(Table& table) : table_(table) {}

  /// Later rows belong to this group.
  void group(const std::string& name, const std::string& title);

  template <typename T>
  RowDraft add(const std::string& name, T& field, const Codec<T>& codec) {
    Row row = described(name, &field, codec);
    row.assign = [&field, codec](const std::string& text) { return codec.parse(text, field); };
    row.render = [&field, codec] { return codec.render(field); };
    row.is_auto = [] { return false; };
    return append(std::move(row));
  }

  template <typename T>
  RowDraft add(const std::string& name, Auto<T>& field, const Codec<T>& codec) {
    Row row = described(name, &field, codec);
    row.range = codec.range.empty() ? "" : "auto, or " + codec.range;
    if (!row.choices.empty()) row.choices.insert(row.choices.begin(), "auto");
    row.assign = [&field, codec](const std::string& text) {
      T value{};
      if (text == "auto") {
        field = Auto<T>();
        return std::string();
      }
      std::string problem = codec.parse(text, value);
      if (problem.empty()) field = Auto<T>(std::move(value));
      return problem.empty() ? problem : problem + automatic_advice(text, codec.is_number);
    };
    row.render = [&field, codec] { return field.is_auto() ? std::string("auto") : codec.render(field.value()); };
    row.is_auto = [&field] { return field.is_auto(); };
    return append(std::move(row));
  }

  /// "auto" leaves the field empty for whoever reads the option; resolve() does not choose.
  template <typename T>
  RowDraft add(const std::string& name, std::optional<T>& field, const Codec<T>& codec) {
    Row row = described(name, &field, codec);
    if (!row.choices.empty()) row.choices.insert(row.choices.begin(), "auto");
    row.assign = [&field, codec](const std::string& text) {
      T value{};
      std::string problem = text == "auto" ? "" : codec.parse(text, value);
      if (problem.empty()) field = text == "auto" ? std::nullopt : std::optional<T>(std::move(value));
      return problem;
    };
    row.render = [&field, codec] { return field ? codec.render(*field) : std::string("auto"); };
    row.is_auto = [] { return false; };
    return append(std::move(row));
  }

  /// `Field` is bool or Auto<bool>.
  template <typename Field>
  RowDraft add_switch(const std::string& name, Field& field) {
    const RowDraft draft = add(name, field, switch_codec());
    table_.rows_.back().is_switch = true;
    return draft;
  }

  /// `Field` is a list of numbers or an Auto of one.
  template <typename Field>
  RowDraft add_list(const std::string& name, Field& field, const Bounds& bounds, const std::string& empty_word) {
    const RowDraft draft = add(name, field, list_codec(bounds, empty_word));
    table_.rows_.back().is_list = true;
    return draft;
  }

  /// An option of several values with commas between them, of which the first `needed` must be written. `is_on`: the
  /// word `off` makes it false, any values true.
  RowDraft add_parts(const std::string& name, const std::vector<Part>& parts, size_t needed = 1, bool* is_on = nullptr);

  /// An option with a text of its own for several fields.
  RowDraft add_own(const std::string& name, const std::vector<const void*>& fields,
                   std::function<std::string(const std::string& text)> assign, std::function<std::string()> render);

 private:
  template <typename T>
  static Row described(const std::string& name, const void* field, const Codec<T>& codec) {
    Row row;
    row.field = field;
    row.name = name;
    row.placeholder = codec.placeholder;
    row.range = codec.range;
    row.choices = codec.choices;
    row.is_number = codec.is_number;
    return row;
  }
  static std::string automatic_advice(const std::string& text, bool is_number);
  RowDraft append(Row row);

  Table& table_;
};

// One function per file of rows, each for the groups that it names, for Options and for ResolvedOptions.
template <typename AnyOptions>
void declare_data(Declaration& declaration, AnyOptions& options);  ///< data, augment, loader
template <typename AnyOptions>
void declare_task(Declaration& declaration, AnyOptions& options);  ///< task
template <typename AnyOptions>
void declare_augment(Declaration& declaration, AnyOptions& options);  ///< augment, between data and loader
template <typename AnyOptions>
void declare_training(Declaration& declaration, AnyOptions& options);  ///< model, optim, schedule, train
template <typename AnyOptions>
void declare_process(Declaration& declaration, AnyOptions& options);  ///< precision, device, run, log

}  // namespace stoker::config
