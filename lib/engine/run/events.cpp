// SPDX-License-Identifier: Apache-2.0
#include "engine/run/events.h"

#include "core/error.h"
#include "core/system/stop_signal.h"

namespace stoker::engine {

std::string reason_text(StopReason reason, const std::string& signal_name) {
  switch (reason) {
    case StopReason::epochs_done: return "epochs-done";
    case StopReason::max_updates: return "max-updates";
    case StopReason::max_time: return "max-time";
    case StopReason::no_improvement: return "no-improvement";
    case StopReason::signal: return core::stop_reason(signal_name);
  }
  return "unknown";
}

template <typename Notify>
void Observers::notify_all(const Notify& notify) const {
  try {
    for (Observer* observer : observers_) notify(*observer);
  } catch (const core::StopRequested&) {
    throw core::Error(core::ErrorKind::bug, "an observer of the run looked for a stop request");
  }
}

void Observers::on_start(const StartEvent& event) {
  notify_all([&](Observer& observer) { observer.on_start(event); });
}
void Observers::on_update(const UpdateEvent& event) {
  notify_all([&](Observer& observer) { observer.on_update(event); });
}
void Observers::on_digest(const DigestEvent& event) {
  notify_all([&](Observer& observer) { observer.on_digest(event); });
}
void Observers::on_report(const ReportEvent& event) {
  notify_all([&](Observer& observer) { observer.on_report(event); });
}
void Observers::on_evaluation(int64_t images_done, int64_t images_total) {
  notify_all([&](Observer& observer) { observer.on_evaluation(images_done, images_total); });
}
void Observers::on_epoch(const EpochEvent& event) {
  notify_all([&](Observer& observer) { observer.on_epoch(event); });
}
void Observers::on_checkpoint(const CheckpointEvent& event) {
  notify_all([&](Observer& observer) { observer.on_checkpoint(event); });
}
void Observers::on_finish(const FinishEvent& event) {
  notify_all([&](Observer& observer) { observer.on_finish(event); });
}

}  // namespace stoker::engine
