// SPDX-License-Identifier: Apache-2.0
#include "app/listeners/watch_turns.h"

#include <cstdlib>

#include "core/error.h"
#include "core/log.h"
#include "core/system/machine.h"
#include "core/time/elapsed.h"
#include "core/time/watching.h"

namespace stoker::app {

int64_t watch_turns_for_tests() {
  const char* const text = std::getenv("STOKER_TEST_WATCH_TURNS");
  if (!text) return 0;
  const int64_t updates = std::strtoll(text, nullptr, 10);
  if (updates < 2) throw core::Error(core::ErrorKind::usage, "STOKER_TEST_WATCH_TURNS wants 2 updates or more");
  return updates;
}

WatchTurns::WatchTurns(engine::Observer& watcher, int64_t updates) : watcher_(watcher), updates_(updates) {}

WatchTurns::~WatchTurns() { core::set_watched(true); }

void WatchTurns::on_start(const engine::StartEvent& event) {
  watcher_.on_start(event);
  begin_turn();
}

void WatchTurns::on_update(const engine::UpdateEvent& event) {
  if (core::is_watched()) watcher_.on_update(event);
  if (event.updates % updates_ != updates_ / 2) return;
  end_turn();
  core::set_watched(!core::is_watched());
  begin_turn();
}

void WatchTurns::on_report(const engine::ReportEvent& event) {
  if (core::is_watched()) watcher_.on_report(event);
}

void WatchTurns::on_epoch(const engine::EpochEvent& event) {
  if (core::is_watched()) watcher_.on_epoch(event);
}

void WatchTurns::on_checkpoint(const engine::CheckpointEvent& event) {
  if (core::is_watched()) watcher_.on_checkpoint(event);
}

void WatchTurns::on_finish(const engine::FinishEvent& event) {
  core::set_watched(true);
  watcher_.on_finish(event);
}

void WatchTurns::end_turn() {
  core::log_debug("turn {}: {:.6f} s of CPU, {:.6f} s", core::is_watched() ? "watched" : "unwatched",
                  core::read_thread_cpu_seconds() - cpu_seconds_, core::seconds_since(begin_));
}

void WatchTurns::begin_turn() {
  begin_ = std::chrono::steady_clock::now();
  cpu_seconds_ = core::read_thread_cpu_seconds();
}

}  // namespace stoker::app
