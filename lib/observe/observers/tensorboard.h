// SPDX-License-Identifier: Apache-2.0
// A run as scalars that TensorBoard shows: one event file per process of the run. The bytes: below.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/run/events.h"

namespace stoker::observe {

// The bytes of a TensorBoard event file: TFRecord framing around protobuf messages Event and Summary, encoded by hand.
// Sources: tensorflow/core/util/event.proto and summary.proto; "TFRecords format details" in TensorFlow's guide;
// CRC-32C: RFC 3720, appendix B.4.

/// CRC-32C (Castagnoli).
uint32_t crc32c(std::string_view bytes);
/// Length, its checksum, payload, its checksum.
std::string tf_record(std::string_view payload);

struct Scalar {
  std::string tag;  ///< "train/loss": what stands before the slash groups the charts
  double value = 0;
};

// One record each. `wall_seconds`: since 1970, UTC. `step` >= 0.

/// The first record of every file: the version of the format.
std::string version_record(double wall_seconds);
/// Makes readers drop what earlier files hold from `step` on: the run resumed there.
std::string restart_record(double wall_seconds, int64_t step);
std::string scalars_record(double wall_seconds, int64_t step, const std::vector<Scalar>& scalars);

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
