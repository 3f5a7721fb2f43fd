// SPDX-License-Identifier: Apache-2.0
// Options on their way from given to resolved: a copy of those that were given, in which choices are written down.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/facts.h"
#include "config/resolution.h"

namespace stoker::config {

constexpr int64_t kSmallImage = 64;  ///< pixels: from here on images are treated as photographs
constexpr char kAsInCheckpoint[] = "as in the checkpoint";

inline std::string switch_text(bool is_on) { return is_on ? "true" : "false"; }

class Draft {
 public:
  explicit Draft(const Options& given);
  Draft& operator=(Draft&&) = delete;  // not copied, not moved

  Options& options() { return options_; }

  /// Whether choices from here on only stand in until the fact is known that decides them.
  void assume(bool assumes) { assumes_ = assumes; }

  /// Gives an automatic option its value; one that was given is left alone. `field` is a member of options(). Throws
  /// Error{config} where `text` is not a value of the option.
  template <typename T>
  void choose(const Auto<T>& field, const std::string& text, const std::string& reason,
              ChoiceSource source = ChoiceSource::rule) {
    if (field.is_auto()) store(table_.row_of(field), text, {reason, source});
  }
  /// choose() for what was found; `text` is its value.
  template <typename T, typename Found>
  void choose(const Auto<T>& field, const std::string& text, const Measured<Found>& found) {
    choose(field, text, found.reason, found.source);
  }
  /// choose() for a value of a checkpoint, where it has one.
  template <typename T>
  void keep(Auto<T>& field, const std::optional<T>& value) {
    if (!value || !field.is_auto()) return;
    field = *value;
    note(table_.row_of(field), {kAsInCheckpoint, ChoiceSource::checkpoint});
  }
  /// Gives an automatic option the value that it has by default: not worth a word.
  template <typename T>
  void set_default(Auto<T>& field, T value) {
    if (field.is_auto()) field = std::move(value);
  }
  /// Replaces a value that was given, or that stands there by default.
  template <typename Field>
  void replace(const Field& field, const std::string& text, const std::string& reason,
               ChoiceSource source = ChoiceSource::rule) {
    store(table_.row_of(field), text, {reason, source});
  }
  template <typename Field>
  const std::string& name_of(const Field& field) {
    return table_.row_of(field).name;
  }

  /// Throws std::logic_error when an option is still automatic.
  Resolution resolution();

 private:
  struct Why {
    std::string reason;
    ChoiceSource source;
  };
  void store(Row& row, const std::string& text, const Why& why);
  void note(const Row& row, const Why& why) { (assumes_ ? assumed_ : chosen_)[&row] = why; }

  Options options_;
  Table table_{options_};
  std::vector<bool> was_automatic_;  ///< for each row, whether it was automatic before anything was chosen
  bool assumes_ = false;
  std::map<const Row*, Why> chosen_, assumed_;
};

/// Device, threads, workers and precision. Returns whether Facts::amp decides and is not known. Throws
/// Error{unavailable} for a device that is not there.
bool choose_for_machine(const Facts& facts, Draft& draft);
/// Shape, scales, weights, crops and normalisation. Throws Error{config} for values that only the training split
/// has, where that is not read.
void choose_for_data(const DataFacts& data, Draft& draft);
/// Optimizer, schedule and learning rate. Batch, accumulation and img-size have been chosen; `batch_is_assumed`: the
/// batch only stands in for one that will be measured.
void choose_optimization(const Options& given, const Facts& facts, bool batch_is_assumed, Draft& draft);

// Rules that span options; ranges of single options stand in their rows.

/// One sentence per broken rule. `resolution` is that of `given`; rules about what is only assumed are left out.
std::vector<std::string> broken_rules(const Options& given, const Resolution& resolution, const Facts& facts);
/// One sentence per broken rule about the data or what follows from it.
std::vector<std::string> broken_data_rules(const ResolvedOptions& options, const DataFacts& data);

}  // namespace stoker::config
