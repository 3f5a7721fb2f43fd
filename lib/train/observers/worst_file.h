// SPDX-License-Identifier: Apache-2.0
// worst.json of a run: the samples that the best evaluation was most wrong about and some ordinary ones, as small
// pictures for the report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/source.h"
#include "engine/run/events.h"

namespace stoker::train {

/// Remembers the samples of the best epoch.
class WorstFile : public engine::Observer {
 public:
  WorstFile(std::string run_dir, const config::ResolvedOptions& options,
            std::shared_ptr<const data::Source> validation);

  void on_epoch(const engine::EpochEvent& event) override;
  /// Reads the samples anew and writes the file, once the run has ended. A failure is a warning: the file is not a
  /// result.
  void write() const;

 private:
  std::string json() const;

  const std::string path_;
  const config::ResolvedOptions& options_;
  const std::shared_ptr<const data::Source> validation_;
  std::vector<engine::ShownSample> worst_, ordinary_;
  int64_t epoch_ = 0;
};

}  // namespace stoker::train
