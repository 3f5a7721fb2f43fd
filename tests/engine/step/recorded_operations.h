// SPDX-License-Identifier: Apache-2.0
// A double of a device's graphs for tests on a CPU: it listens below autograd, keeps each operation with the tensors
// and numbers that it was called with, and does them again in order. As on a device, nothing is done while recording:
// what operations changed is put back, and what they made is filled with NaN until a replay has written it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/device/device.h"

namespace stoker::fixtures {

class OperationRecorder : public engine::GraphRunner {
 public:
  void warm_up(const std::function<void()>& work) override;
  std::unique_ptr<engine::RecordedWork> record(const std::function<void()>& work) override;

  /// Recording throws at the first operation with this name, "aten::relu"; empty: never.
  std::string cannot_record;
  int64_t warm_ups = 0, records = 0, replays = 0;
  int64_t operations = 0;  ///< number of operations of the last record
  bool is_recording = false;
};

}  // namespace stoker::fixtures
