// SPDX-License-Identifier: Apache-2.0
// Options on their way from given to resolved: a copy of those that were given, in which choices are written down.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "config/facts.h"
#include "config/resolution.h"

namespace stoker::config {

constexpr int64_t kSmallImage = 64;  ///< pixels: from here on images are treated as photographs

class Draft {
 public:
  explicit Draft(const Options& given) : options_(given) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  Options& options() { return options_; }

  /// Whether choices from here on only stand in until the fact is known that decides them.
  void assume(bool assumes) { assumes_ = assumes; }

  /// Gives an automatic option its value; one that was given is left alone. `field` is a member of options(). Throws
  /// Error{config} where `text` is no value of the option.
  template <typename T>
  void choose(const Auto<T>& field, const std::string& text, const std::string& reason) {
    if (field.is_auto()) store(table_.row_of(field), text, reason);
  }
  /// choose() by the name of the option; does nothing where there is none of that name.
  void choose_named(const std::string& name, const std::string& text, const std::string& reason) {
    Row* const row = table_.find(name);
    if (row != nullptr && row->is_auto()) store(*row, text, reason);
  }
  /// Gives an automatic option the value that it has by default: not worth a word.
  template <typename T>
  void set_default(Auto<T>& field, T value) {
    if (field.is_auto()) field = std::move(value);
  }
  /// Replaces a value that was given; `is_notable`: see Choice.
  template <typename Field>
  void replace(const Field& field, const std::string& text, const std::string& reason, bool is_notable = true) {
    store(table_.row_of(field), text, reason);
    if (is_notable) notable_.insert(&table_.row_of(field));
  }
  /// choose() for what was measured or asked for.
  template <typename T>
  void choose_found(const Auto<T>& field, const std::string& text, const std::string& reason, bool was_asked_for) {
    if (!field.is_auto()) return;
    choose(field, text, reason);
    if (was_asked_for) notable_.insert(&table_.row_of(field));
  }
  template <typename Field>
  const std::string& name_of(const Field& field) {
    return table_.row_of(field).name;
  }

  /// Throws std::logic_error when an option is still automatic.
  Resolution resolution();

 private:
  void store(Row& row, const std::string& text, const std::string& reason);

  Options options_;
  Table table_{options_};
  bool assumes_ = false;
  std::map<const Row*, std::string> reasons_;  ///< of what was chosen
  std::map<const Row*, std::string> assumed_;  ///< what stands in, with reasons
  std::set<const Row*> notable_;               ///< see Choice
};

/// Device, threads, workers and precision. Returns whether Facts::amp decides and is not known. Throws
/// Error{unavailable} for a device that is not there.
bool choose_for_machine(const Facts& facts, Draft& draft);
/// Shape, scales, weights, crops and normalisation. Throws Error{config} for what only the training split says where
/// that is not read.
void choose_for_data(const DataFacts& data, Draft& draft);
/// Optimizer, schedule and learning rate. Batch, accumulation and img-size have been chosen; `batch_is_assumed`: the
/// batch only stands in for one that will be measured.
void choose_optimization(const Options& given, const Facts& facts, bool batch_is_assumed, Draft& draft);

}  // namespace stoker::config
