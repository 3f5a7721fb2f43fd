// SPDX-License-Identifier: Apache-2.0
// Work that may be dealt to several ranks: alone, as one of them, or as the command that starts them.
#include "app/launch/start_ranks.h"
#include "app/output/crash_handler.h"
#include "app/output/failure.h"
#include "app/setup/resume.h"
#include "app/setup/settings.h"
#include "app/verbs/train_as_rank.h"
#include "core/crash/fault_signals.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"

namespace stoker::app {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// The signal for which another rank is gone; empty: it is gone for something else.
std::string stopped_elsewhere(const Error& error) {
  return error.kind() == ErrorKind::peer_lost ? engine::stop_signal_in(error.what()) : "";
}

/// Before anything was trained: nothing to save.
Outcome stopped_before(const std::string& signal, const RankPlace& place, int64_t stop_exit_code) {
  const int code = signal == "INT" ? core::kExitInterrupted : static_cast<int>(stop_exit_code);
  return {code, place.rank == 0 ? "signal:" + signal : ""};
}

}  // namespace

Outcome work_with_others(const Invocation& invocation, const RankPlace& place, const RankWork& work) {
  const config::Options& options = invocation.configuration.options;
  if (place.rank != 0) core::set_console_level(core::LogLevel::error);
  set_rank_of_crashes(place.rank);
  // It says what became of a lost rank, and writes the last line, behind what all ranks say.
  const bool has_starter = place.starter == "train";
  const auto end_quietly = [](const Error& error) {
    core::log_debug("{}", error.what());
    return Outcome{core::exit_code(error.kind()), ""};
  };
  try {
    const JoinedRanks ranks(place, options.device.exchange_timeout_seconds,
                            static_cast<int>(options.run.stop_exit_code));
    try {
      Outcome outcome = work(ranks);
      if (place.rank != 0) outcome.reason.clear();
      return outcome;
    } catch (const core::StopRequested&) {
      ranks.group()->abort(engine::kStoppedBySignal + core::stop_signal_name());
      return stopped_before(core::stop_signal_name(), place, options.run.stop_exit_code);
    } catch (const std::exception& exception) {
      const Error error = error_of(exception, options);
      const bool is_first = ranks.group()->abort(error.what());
      if (error.kind() == ErrorKind::peer_lost) throw Error(error);
      if (!is_first) return end_quietly(error);
      const std::string who = place.rank == 0 ? "" : format("rank {}: ", place.rank);  // as it would be without ranks
      if (!has_starter) throw Error(error.kind(), who + error.what(), error.hint());
      core::log_error("{}{}", who, error.text());
      return {core::exit_code(error.kind()), ""};
    }
  } catch (const core::StopRequested&) {  // while ranks meet
    return stopped_before(core::stop_signal_name(), place, options.run.stop_exit_code);
  } catch (const Error& error) {
    if (const std::string signal = stopped_elsewhere(error); !signal.empty()) {
      return stopped_before(signal, place, options.run.stop_exit_code);
    }
    if (error.kind() != ErrorKind::peer_lost || (place.rank == 0 && !has_starter)) throw;
    return end_quietly(error);
  }
}

Outcome work_on_devices(const Invocation& invocation, const RankWork& work, const RankCheck& check) {
  const config::Options& options = invocation.configuration.options;
  const auto devices = static_cast<int>(options.device.devices.count);
  const bool only_plans = invocation.configuration.command.dry_run;  // whoever may have started this process
  const std::optional<RankPlace> place =
      only_plans ? std::nullopt : rank_place(process_environment, {devices, options.device.listen});
  if (place) {
    if (check) check(place->size, format("the {} ranks of {}", place->size, place->starter));
    return work_with_others(invocation, *place, work);
  }
  if (devices == 1) return work(JoinedRanks());
  if (check) check(devices, format("devices {}", devices));
  config::choose_device(invocation.configuration.options.device, machine_with_accelerators());  // refuses for all ranks
  if (only_plans) {
    RankPlace first;  // with its share of the machine, without the others
    first.size = first.local_size = devices;
    return work(JoinedRanks(first, nullptr));
  }
  const RanksEnd end = run_ranks({invocation.argv, devices, options.device.restarts, options.run.stop_exit_code});
  const core::FaultSignal* const fault = end.has_failed ? core::fault_of_exit_code(end.exit_code) : nullptr;
  if (fault != nullptr) {
    Outcome crashed = {end.exit_code, format("crash:{}", fault->name)};
    crashed.rank = end.rank;
    return crashed;
  }
  const std::string reason = end.stopped_by.empty() ? "" : "signal:" + end.stopped_by;
  return {end.exit_code, end.has_failed ? "error" : reason};
}

namespace {

/// A recipe would train the example that bare `train` trains.
void refuse_what_names_no_data(const config::Configuration& given) {
  const auto is_named = [&](const auto& field) {
    return given.table.row_of(field).origin.kind != config::Origin::Kind::built_in;
  };
  if (is_named(given.options.data.data_dir) || is_named(given.options.data.dataset)) return;
  const config::CommandLine& command = given.command;
  throw Error(ErrorKind::config,
              format("{} names no data",
                     command.config_files.empty() ? "preset " + command.preset : command.config_files.back()),
              "add --data-dir FOLDER, or data-dir: FOLDER to the file");
}

}  // namespace

Outcome train(const Invocation& given) {
  const std::unique_ptr<config::Configuration> resumed =
      options_of_resumed(given.argc, given.argv, given.configuration);
  const Invocation invocation = {given.argc, given.argv, resumed ? *resumed : given.configuration};
  if (resumed) given.configuration.options.run.run_dir = resumed->options.run.run_dir;  // for --on-end
  const config::CommandLine& command = invocation.configuration.command;
  if (!command.print_config) refuse_what_names_no_data(invocation.configuration);
  if (command.print_config) return train_as_rank(invocation, JoinedRanks());
  const int64_t replicas = invocation.configuration.options.train.replicas;
  const auto refuse_what_does_not_divide = [&](int ranks, const std::string& who) {
    if (replicas % ranks == 0) return;
    throw Error(
        ErrorKind::config, format("replicas {} is not a multiple of {}: each computes as many", replicas, who),
        replicas == 1
            ? format("add --replicas {} to a new run: an update then sees {} times as many images", ranks, ranks)
            : format("choose a number of processes that divides {}; a new run may have --replicas {}, too", replicas,
                     (replicas / ranks + 1) * ranks));
  };
  return work_on_devices(
      invocation, [&](const JoinedRanks& ranks) { return train_as_rank(invocation, ranks); },
      refuse_what_does_not_divide);
}

}  // namespace stoker::app
