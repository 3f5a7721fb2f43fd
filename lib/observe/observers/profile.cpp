// SPDX-License-Identifier: Apache-2.0
#include "observe/observers/profile.h"

#include "core/error.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/time/clock.h"
#include "core/time/trace.h"

namespace stoker::observe {
namespace {

constexpr int64_t kMaxSpans = 400'000;  // 20 MB of memory, 50 MB of file

using Unit = config::Interval::Unit;

}  // namespace

Profile::Profile(const std::string& run_dir, config::Interval length)
    : path_(run_dir + "/profile.json"), length_(length) {}

void Profile::on_start(const engine::StartEvent& event) {
  first_update_ = event.start_updates;
  first_epoch_ = event.start_epoch;
  begin_ = std::chrono::steady_clock::now();
  core::begin_trace(kMaxSpans);
  state_ = State::recording;
}

void Profile::on_update(const engine::UpdateEvent& event) {
  if (state_ != State::recording) return;
  const double seconds = core::seconds_since(begin_);
  const bool over =
      (length_.unit == Unit::updates && static_cast<double>(event.updates - first_update_) >= length_.amount) ||
      (length_.unit == Unit::seconds && seconds >= length_.amount);
  if (!over) return;
  core::end_trace();
  state_ = State::recorded;
}

void Profile::on_report(const engine::ReportEvent&) {
  if (state_ == State::recorded) write();
}

void Profile::on_epoch(const engine::EpochEvent& event) {
  if (event.is_inside) return;
  const auto epochs = static_cast<double>(event.epoch + 1 - first_epoch_);
  if (state_ == State::recording && length_.unit == Unit::epochs && epochs >= length_.amount) state_ = State::recorded;
  if (state_ == State::recorded) write();
}

void Profile::on_finish(const engine::FinishEvent&) {
  if (state_ == State::recording || state_ == State::recorded) write();
}

void Profile::write() {
  state_ = State::written;
  try {
    core::write_file_atomically(path_, core::take_trace_json(), /*durable=*/false);
    core::log_info("profile   {}: open it in chrome://tracing or ui.perfetto.dev", path_);
  } catch (const core::Error& error) {
    core::log_warning("no profile: {}", error.what());
  }
}

}  // namespace stoker::observe
