// SPDX-License-Identifier: Apache-2.0
// From the options that were given to those of a run, in which nothing is automatic any more.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/config.h"
#include "config/facts.h"
#include "config/options.h"

namespace stoker::config {

// An option as a checkpoint remembers it, to be compared when a run resumes.

/// An option that must not change on resume, because trained bits depend on it.
struct TrainingOption {
  std::string name, value;
  std::string value_in_older_runs;  ///< the value of runs whose checkpoints lack it; empty: unknown
};

/// An automatic option: what it became, and why.
struct Choice {
  std::string option;  ///< its name, without dashes
  std::string value;   ///< as it is written
  std::string reason;
  ChoiceSource source = ChoiceSource::rule;
};

/// Options without open ends, and how they came about. A plain value.
struct Resolution {
  ResolvedOptions options;
  std::vector<Choice> choices;  ///< in the order of the table
  /// Names of automatic options that wait for a fact. Until it is known, they hold a usual value.
  std::vector<std::string> assumed;
  bool waits_for_amp = false;                  ///< amp is assumed, and Facts::amp decides it
  bool waits_for_batch = false;                ///< batch-size is assumed
  bool waits_for_trains_on_one_image = false;  ///< drop-last is assumed, and Facts::trains_on_one_image decides it
  std::set<std::size_t> automatic;             ///< where in `options` those lie that nobody gave: see was_automatic()

  /// Whether nobody gave the option that `field` is, a member of `options`: it was chosen, or is assumed. Throws
  /// std::logic_error for any other object.
  template <typename Field>
  bool was_automatic(const Field& field) const {
    return automatic.count(place_of(&field)) > 0;
  }
  template <typename T>
  bool was_automatic(const Auto<T>& field) const = delete;  // no member of `options`
  /// Bytes from the beginning of `options`.
  std::size_t place_of(const void* field) const;
};

/// "cpu" or "cuda:N", and why: empty where it was given.
struct DeviceChoice {
  std::string name;
  std::string reason;
};
/// The device of this process. Of several on a machine (MachineFacts::local_ranks, or before they are started
/// --devices) process k has GPU k or the k-th of the list, and --device cuda:N stands for `cuda` where N is the GPU of
/// the first. One that sees a single GPU takes that. Throws Error{unavailable} for a device that is not there, also for
/// more processes than GPUs; {config} for a list of GPUs on a CPU.
DeviceChoice choose_device(const DeviceOptions& given, const core::MachineFacts& machine);

/// Gives every option a value: those that were given keep theirs, automatic ones are chosen from facts. It may be
/// called with few facts and again with more. Rules that span options are checked as far as their facts are known.
/// Throws Error{config} listing all problems, Error{unavailable} for a device that is not there.
///
/// An automatic drop-last leaves out the last batch when it is not full, not the only one, and
///  - would be an update of its own with fewer than an eighth of the images of a full update, each of which would count
///    more than eight times as much as the others; or
///  - is a single image, and the network cannot train on one.
Resolution resolve(const Options& given, const Facts& facts);

/// YAML of all values, grouped, each with a comment with its origin; -c reads it back. What is assumed is
/// written as auto. `given` is what was resolved.
std::string render_yaml(const Configuration& given, const Resolution& resolution);
/// YAML of all values without comments.
std::string render_yaml(const ResolvedOptions& options);
/// Reads what render_yaml(options) wrote: every option has the value that it had. Throws Error{config} that names every
/// option that is missing, unknown or not a value. `path` is for messages.
ResolvedOptions read_resolved_yaml(const std::string& text, const std::string& path);
/// Gives every option the value that it has in `resolved`, as if it had been written; but what belongs to a process or
/// a machine stays as it was given, unless it was automatic.
void take_over(const ResolvedOptions& resolved, Configuration& given);
/// The options of which the trained bits depend, as they were given: name and text.
std::vector<std::pair<std::string, std::string>> given_training_options(const Configuration& given);
/// The options of a run that must not change on resume, but for those that others leave without effect.
std::vector<TrainingOption> training_relevant_values(const ResolvedOptions& options);

}  // namespace stoker::config
