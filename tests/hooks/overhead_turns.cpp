// SPDX-License-Identifier: Apache-2.0
#include "tests/hooks/overhead_turns.h"

#include <atomic>
#include <cstdlib>

#include "core/error.h"
#include "core/log.h"
#include "core/system/machine.h"
#include "core/time/clock.h"
#include "core/time/instrumentation.h"

namespace stoker {
namespace {

std::atomic<bool> instrumented{true};

}  // namespace

bool core::is_instrumented() { return instrumented.load(std::memory_order_relaxed); }

namespace hooks {

int64_t updates_of_a_turn() {
  const char* const text = std::getenv("STOKER_TEST_UNINSTRUMENTED_TURNS");
  if (!text) return 0;
  const int64_t updates = std::strtoll(text, nullptr, 10);
  if (updates < 2)
    throw core::Error(core::ErrorKind::usage, "STOKER_TEST_UNINSTRUMENTED_TURNS wants 2 updates or more");
  return updates;
}

OverheadTurns::OverheadTurns(engine::Observer& observers, int64_t updates) : observers_(observers), updates_(updates) {}

OverheadTurns::~OverheadTurns() { instrumented = true; }

void OverheadTurns::on_start(const engine::StartEvent& event) {
  observers_.on_start(event);
  begin_turn();
}

void OverheadTurns::on_update(const engine::UpdateEvent& event) {
  if (core::is_instrumented()) observers_.on_update(event);
  if (event.updates % updates_ != updates_ / 2) return;
  end_turn();
  instrumented = !instrumented;
  begin_turn();
}

void OverheadTurns::on_report(const engine::ReportEvent& event) {
  if (core::is_instrumented()) observers_.on_report(event);
}

void OverheadTurns::on_epoch(const engine::EpochEvent& event) {
  if (core::is_instrumented()) observers_.on_epoch(event);
}

void OverheadTurns::on_checkpoint(const engine::CheckpointEvent& event) {
  if (core::is_instrumented()) observers_.on_checkpoint(event);
}

void OverheadTurns::on_finish(const engine::FinishEvent& event) {
  instrumented = true;
  observers_.on_finish(event);
}

void OverheadTurns::end_turn() {
  core::log_debug("turn {}: {:.6f} s of CPU, {:.6f} s", core::is_instrumented() ? "instrumented" : "uninstrumented",
                  core::read_thread_cpu_seconds() - cpu_seconds_, core::seconds_since(begin_));
}

void OverheadTurns::begin_turn() {
  begin_ = std::chrono::steady_clock::now();
  cpu_seconds_ = core::read_thread_cpu_seconds();
}

}  // namespace hooks
}  // namespace stoker
