// SPDX-License-Identifier: Apache-2.0
// The one way of every command from the options that were given to those that hold: facts are added as they become
// known, and each time all options are resolved again.
#pragma once

#include <optional>
#include <string>
#include <type_traits>

#include "config/config.h"
#include "config/resolution.h"

namespace stoker::train {

/// Machine facts with the accelerators that LibTorch sees.
core::MachineFacts machine_with_accelerators();

class Settings {
 public:
  /// `given` outlives this. `ranks`: processes that a starter has started to train together. Throws as
  /// config::resolve(), with nothing known but the machine.
  explicit Settings(const config::Configuration& given, core::MachineFacts machine = machine_with_accelerators(),
                    int64_t ranks = 1);
  /// For work on files alone: no device is looked for, and workers have every CPU.
  static Settings without_network(const config::Configuration& given);

  const config::Facts& facts() const { return facts_; }
  const config::Resolution& resolution() const { return resolution_; }
  /// The reference stays valid; what it refers to changes with every fact.
  const config::ResolvedOptions& options() const { return resolution_.options; }
  /// Whether the option `field`, a member of options(), was left at its default.
  template <typename Field>
  bool was_automatic(const Field& field) const {
    return resolution_.was_automatic(field);
  }
  /// The options that data is opened with, as they were given: automatic ones are known of opened data only.
  const config::DataOptions& given_data() const { return given_.options.data; }

  /// To be called after a change of what was given.
  void on_options_changed() {  // every option is given then
    facts_.names_model = facts_.names_lr_base = true;
    resolve();
  }

  /// Adds one of the facts that may be absent, as learn(&config::Facts::amp, ...). Throws as config::resolve().
  template <typename T>
  void learn(std::optional<T> config::Facts::*fact, const std::common_type_t<T>& value) {
    facts_.*fact = value;
    resolve();
  }
  /// Sets the usual rates of the network that the options name.
  void set_model_facts();
  /// All that data and network decide, for work that is not planned as a run: an automatic batch is a usual one, and an
  /// automatic drop-last is that of a network that cannot train on one image. The cache is not chosen here.
  void settle(config::DataFacts data);

 private:
  Settings(const config::Configuration& given, core::MachineFacts machine, int64_t ranks, bool has_network);
  void resolve() { resolution_ = config::resolve(given_.options, facts_); }

  const config::Configuration& given_;
  config::Facts facts_;
  config::Resolution resolution_;
};

}  // namespace stoker::train
