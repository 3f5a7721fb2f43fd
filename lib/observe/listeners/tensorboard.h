// SPDX-License-Identifier: Apache-2.0
// A run as scalars that TensorBoard shows: one event file per process of the run. The bytes: event_file.h.
#pragma once

#include <string>
#include <vector>

#include "engine/run/events.h"
#include "observe/listeners/event_file.h"

namespace stoker::observe {

/// Writes `run_dir`/tensorboard/events.out.tfevents.<seconds>.<host>.<pid>. A resumed run begins a new file, whose
/// name sorts behind those that are there and which makes readers drop the steps that it goes through again. Steps
/// are optimizer updates. Losing a record is an error (Error{io}), as with every other record of the run.
class TensorBoardFile : public engine::Observer {
 public:
  explicit TensorBoardFile(std::string run_dir);

  void on_start(const engine::StartEvent& event) override;
  void on_report(const engine::ReportEvent& event) override;
  void on_epoch(const engine::EpochEvent& event) override;

 private:
  std::string directory_;
  std::string path_;
};

}  // namespace stoker::observe
