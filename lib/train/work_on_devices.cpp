// SPDX-License-Identifier: Apache-2.0
#include "train/work_on_devices.h"

#include "core/crash/signal_stack.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "train/failure/crash_handler.h"
#include "train/launch/start_ranks.h"
#include "train/process/failure.h"
#include "train/setup/settings.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// The signal for which another rank is gone; empty: it is gone for something else.
std::string stopped_elsewhere(const Error& error) {
  return error.kind() == ErrorKind::peer_lost ? engine::stop_signal_in(error.what()) : "";
}

/// Whether this rank reports the lost one to the user: the first that can.
bool reports_lost(const std::string& lost, const RankLocation& place) {
  const bool is_root = lost.find("rank 0 ") != std::string::npos && lost.find(" failed: ") == std::string::npos;
  return place.starter != "train" && place.rank == (is_root ? 1 : 0);
}

/// Before anything was trained: nothing to save.
Outcome stopped_before(const std::string& signal, const RankLocation& place, int64_t stop_exit_code) {
  const int code = signal == "INT" ? core::kExitInterrupted : static_cast<int>(stop_exit_code);
  return {code, place.rank == 0 ? core::stop_reason(signal) : ""};
}

}  // namespace

Outcome work_as_rank(const config::Options& options, const RankLocation& place, const RankWork& work) {
  set_rank_of_crashes(place.rank);
  if (place.rank != 0) core::set_console_level(core::LogLevel::warning);  // until rank 0 is there
  // The starter reports a lost rank, and writes the last line after the messages of all ranks.
  const bool has_starter = place.starter == "train";
  const auto end_quietly = [](const Error& error) {
    core::log_debug("{}", error.what());
    return Outcome{core::exit_code(error.kind()), ""};
  };
  try {
    const JoinedRanks ranks(place, options.device.exchange_timeout_seconds,
                            static_cast<int>(options.run.stop_exit_code));
    if (place.rank != 0) core::set_console_level(core::LogLevel::error);  // its lines are in train.rank-N.log
    try {
      Outcome outcome = work(ranks);
      if (place.rank != 0) outcome.reason.clear();
      return outcome;
    } catch (const core::StopRequested&) {
      ranks.group().abort(engine::kStoppedBySignal + core::stop_signal_name());
      return stopped_before(core::stop_signal_name(), place, options.run.stop_exit_code);
    } catch (const std::exception& exception) {
      const Error error = error_of(exception, options);
      const bool is_first = ranks.group().abort(error.what());
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
    if (error.kind() != ErrorKind::peer_lost || reports_lost(error.what(), place)) throw;
    return end_quietly(error);
  }
}

Outcome work_on_devices(const char* const* argv, config::Options& options, const RankWork& work, bool only_plans,
                        const RankCheck& check) {
  const auto devices = static_cast<int>(options.device.devices.count);
  const std::optional<RankLocation> place =
      only_plans ? std::nullopt : rank_location(process_environment, {devices, options.device.listen});
  if (place) {
    if (check) check(place->size, format("the {} ranks of {}", place->size, place->starter));
    return work_as_rank(options, *place, work);
  }
  if (devices == 1) return work(JoinedRanks());
  if (check) check(devices, format("devices {}", devices));
  config::choose_device(options.device, machine_with_accelerators());  // refuses for all ranks
  if (only_plans) {
    RankLocation first;  // with its share of the machine, without the others
    first.size = first.local_size = devices;
    return work(JoinedRanks(first, nullptr));
  }
  const RanksEnd end = run_ranks({argv, devices, options.device.restarts, options.run.stop_exit_code});
  const core::FaultSignal* const fault = end.has_failed ? core::fault_of_exit_code(end.exit_code) : nullptr;
  if (fault != nullptr) {
    Outcome crashed = {end.exit_code, format("crash:{}", fault->name)};
    crashed.rank = end.rank;
    return crashed;
  }
  const std::string reason = end.stopped_by.empty() ? "" : core::stop_reason(end.stopped_by);
  return {end.exit_code, end.has_failed ? "error" : reason};
}

}  // namespace stoker::train
