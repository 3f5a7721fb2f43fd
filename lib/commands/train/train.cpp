// SPDX-License-Identifier: Apache-2.0
#include "commands/train/train.h"

#include "commands/train/training_run.h"
#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"
#include "train/failure/end_command.h"
#include "train/setup/resume.h"
#include "train/setup/settings.h"
#include "train/work_on_devices.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// A recipe would train the example that bare `train` trains.
void refuse_what_names_no_data(const config::Configuration& given) {
  const auto is_named = [&](const auto& field) {
    return given.table.row_of(field).origin.kind != config::Origin::Kind::built_in;
  };
  if (is_named(given.options.data.data_dir) || is_named(given.options.data.dataset)) return;
  const config::CommonFlags& flags = given.flags;
  throw Error(
      ErrorKind::config,
      format("{} names no data", flags.config_files.empty() ? "preset " + flags.preset : flags.config_files.back()),
      "add --data-dir FOLDER, or data-dir: FOLDER to the file");
}

}  // namespace

std::string run_directory_of(const config::Configuration& configuration) {
  try {
    return Settings(configuration).options().run.run_dir;
  } catch (const Error&) {
    return "";
  }
}

Outcome train_network(const Context& given, const TrainFlags& flags) {
  const std::unique_ptr<config::Configuration> resumed = options_of_resumed(given.line, given.configuration);
  const Context context = {given.argc, given.argv, given.line, resumed ? *resumed : given.configuration};
  config::Options& options = context.configuration.options;
  if (resumed) given.configuration.options.run.run_dir = options.run.run_dir;  // for --on-end
  if (flags.fresh && options.run.resume != "auto") {
    throw Error(ErrorKind::usage,
                format("--fresh starts over, but --resume {} goes on", config::shown(options.run.resume)),
                "leave one of them out");
  }
  const bool only_shows = context.configuration.flags.print_config;
  if (!flags.dry_run && !only_shows) prepare_end_command(flags.on_end, options);
  if (only_shows) return train_as_rank(context, flags, JoinedRanks());
  refuse_what_names_no_data(context.configuration);
  const config::Auto<int64_t>& replicas = options.train.replicas;
  const auto refuse_what_does_not_divide = [&](int ranks, const std::string& who) {
    if (replicas.is_auto() || replicas.value() % ranks == 0) return;
    throw Error(
        ErrorKind::config, format("replicas {} is not a multiple of {}: each computes as many", replicas.value(), who),
        format(
            "choose a number of processes that divides {}; a new run may have --replicas {}, or no --replicas for one "
            "per process",
            replicas.value(), (replicas.value() / ranks + 1) * ranks));
  };
  return work_on_devices(
      context.argv, options, [&](const JoinedRanks& ranks) { return train_as_rank(context, flags, ranks); },
      flags.dry_run, refuse_what_does_not_divide);
}

}  // namespace stoker::train
