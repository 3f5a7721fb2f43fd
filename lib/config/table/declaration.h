// SPDX-License-Identifier: Apache-2.0
// The vocabulary in which declare_*.cpp writes one row per option. Knows nothing of single options.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "config/table/codec.h"
#include "config/table/table.h"

namespace stoker::config {

/// Adds to the row just declared.
class RowDraft {
 public:
  RowDraft(std::vector<Row>& rows, size_t index) : rows_(rows), index_(index) {}

  RowDraft& alias(std::initializer_list<const char*> names);
  RowDraft& unit(const std::string& text);
  RowDraft& help(const std::string& text);
  RowDraft& placeholder(const std::string& text);
  /// It may change on resume: the trained bits do not depend on it.
  RowDraft& free_on_resume();
  /// It belongs to this process or machine; also free on resume.
  RowDraft& per_process();
  RowDraft& used_in_eval();
  RowDraft& used_in_inference();  ///< eval and predict
  RowDraft& used_in_pack();
  /// The text "auto" is a request to resolve() although the field is no Auto<T>.
  RowDraft& chosen_when_auto();

 private:
  Row& row() { return rows_[index_]; }

  std::vector<Row>& rows_;
  size_t index_;
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

  RowDraft add_switch(const std::string& name, bool& field);
  RowDraft add_switch(const std::string& name, Auto<bool>& field);
  RowDraft add_list(const std::string& name, std::vector<double>& field, const Bounds& bounds,
                    const std::string& empty_word);
  void add_shorthand(const std::string& name, const std::string& help,
                     std::vector<std::pair<std::string, Shorthand::Values>> choices);

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

// One function per file of rows, each for the groups that it names.
void declare_data(Declaration& declaration, Options& options);      ///< data, augment, loader
void declare_task(Declaration& declaration, Options& options);      ///< task
void declare_augment(Declaration& declaration, Options& options);   ///< augment, between data and loader
void declare_training(Declaration& declaration, Options& options);  ///< model, optim, schedule, train
void declare_process(Declaration& declaration, Options& options);   ///< precision, device, run, log

}  // namespace stoker::config
