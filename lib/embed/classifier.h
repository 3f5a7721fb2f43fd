// SPDX-License-Identifier: Apache-2.0
// A checkpoint that answers about single images, on the CPU, as `train predict` does. Independent of C and of the
// command line.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "data/feed/normalise.h"
#include "data/source.h"
#include "deploy/inference/inference.h"

namespace stoker::embed {

/// One thread at a time.
class Classifier {
 public:
  /// `which`: best or last of a run directory. Throws Error{no_input}, Error{data}; Error{config} for networks of clips
  /// and of samples that are not bytes.
  Classifier(const std::string& run_or_checkpoint, const std::string& which);

  const std::vector<std::string>& names() const { return names_; }
  const std::string& preprocess_json() const { return preprocess_json_; }
  /// [names] the values of Task::predictions(). Throws Error{data} for a bad image.
  std::vector<float> classify(const data::SampleContent& image);

 private:
  std::vector<std::string> names_;
  std::string preprocess_json_;
  config::ResolvedOptions options_;
  deploy::Network network_;
  data::TransformPlan plan_;
  data::DecodeLimits limits_;
  data::NormalTable normal_;
};

}  // namespace stoker::embed
