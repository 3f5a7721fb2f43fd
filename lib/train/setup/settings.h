// SPDX-License-Identifier: Apache-2.0
// The one way of every command from the options that were given to those that hold: facts are added as they become
// known, and each time all options are resolved again.
#pragma once

#include <optional>
#include <string>

#include "config/config.h"
#include "config/resolution.h"

namespace stoker::train {

/// Machine facts with the accelerators that LibTorch sees.
core::MachineFacts machine_with_accelerators();

/// The threads that OMP_NUM_THREADS sets, at most one for each CPU; nothing where it is no number.
std::optional<config::Measured<int64_t>> asked_threads(const std::string& omp_num_threads, int cpus);

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
  /// Whether nobody gave the option that `field` is, a member of options().
  template <typename Field>
  bool was_automatic(const Field& field) const {
    return resolution_.was_automatic(field);
  }
  /// What data are opened with, as it was given: what is automatic of it is known of opened data only.
  const config::DataOptions& given_data() const { return given_.options.data; }

  /// To be called after a change of what was given.
  void given_has_changed() {  // every option is given then
    facts_.names_model = facts_.names_lr_base = true;
    resolve();
  }

  // Each adds facts and throws as config::resolve().
  void learn_checkpoint(config::CheckpointFacts checkpoint);
  void learn_data(config::DataFacts data);
  /// What the network that the options name is usually trained with.
  void learn_network();
  void learn_amp(config::Measured<bool> amp);
  void learn_layout(config::Measured<bool> channels_last);
  void learn_threads(config::Measured<int64_t> threads);
  void learn_batch(config::Measured<int64_t> batch_size);
  void learn_one_image(bool trains_on_one_image);
  void learn_workers(config::Measured<int64_t> num_workers);
  void learn_cache_budget(config::Measured<int64_t> bytes);
  void learn_cache(config::Measured<config::CacheTier> cache);
  /// All that data and network decide, for work that is not planned as a run: an automatic batch is a usual one, and an
  /// automatic drop-last is that of a network that cannot train on one image. What stays open is the cache.
  void settle(config::DataFacts data);

 private:
  Settings(const config::Configuration& given, core::MachineFacts machine, int64_t ranks, bool has_network);
  void resolve() { resolution_ = config::resolve(given_.options, facts_); }

  const config::Configuration& given_;
  config::Facts facts_;
  config::Resolution resolution_;
};

}  // namespace stoker::train
