// SPDX-License-Identifier: Apache-2.0
// worst.json of a run: the worst mistakes of the best evaluation and some ordinary samples, as small
// pictures for the report.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/source.h"
#include "engine/run/events.h"
#include "model/image_model.h"

namespace stoker::train {

/// Remembers the samples of the best epoch.
class WorstFile : public engine::Observer {
 public:
  WorstFile(std::string run_dir, const config::ResolvedOptions& options,
            std::shared_ptr<const data::Source> validation);

  void on_epoch(const engine::EpochEvent& event) override;
  /// Reads the samples anew and writes the file, once the run has ended. `model` takes the weights of the best
  /// checkpoint, for the heat maps of the worst. A failure is a warning: the file is not a result.
  void write(model::ImageModel& model, torch::Device device) const;

 private:
  std::string json(const std::vector<std::string>& heat) const;
  std::vector<std::string> heat_jpegs(model::ImageModel& model, torch::Device device) const;

  const std::string run_dir_, path_;
  const config::ResolvedOptions& options_;
  const std::shared_ptr<const data::Source> validation_;
  std::vector<engine::ShownSample> worst_, ordinary_;
  int64_t epoch_ = 0;
};

}  // namespace stoker::train
