// SPDX-License-Identifier: Apache-2.0
#include "engine/run/events.h"

namespace stoker::engine {

std::string reason_text(StopReason reason, const std::string& signal_name) {
  switch (reason) {
    case StopReason::epochs_done: return "epochs-done";
    case StopReason::max_updates: return "max-updates";
    case StopReason::max_time: return "max-time";
    case StopReason::no_improvement: return "no-improvement";
    case StopReason::signal: return "signal:" + signal_name;
  }
  return "unknown";
}

void Observers::on_start(const StartEvent& event) {
  for (Observer* observer : observers_) observer->on_start(event);
}
void Observers::on_update(const UpdateEvent& event) {
  for (Observer* observer : observers_) observer->on_update(event);
}
void Observers::on_report(const ReportEvent& event) {
  for (Observer* observer : observers_) observer->on_report(event);
}
void Observers::on_evaluation(int64_t images_done, int64_t images_total) {
  for (Observer* observer : observers_) observer->on_evaluation(images_done, images_total);
}
void Observers::on_epoch(const EpochEvent& event) {
  for (Observer* observer : observers_) observer->on_epoch(event);
}
void Observers::on_checkpoint(const CheckpointEvent& event) {
  for (Observer* observer : observers_) observer->on_checkpoint(event);
}
void Observers::on_finish(const FinishEvent& event) {
  for (Observer* observer : observers_) observer->on_finish(event);
}

}  // namespace stoker::engine
