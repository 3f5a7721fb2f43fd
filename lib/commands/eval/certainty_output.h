// SPDX-License-Identifier: Apache-2.0
// Confidence intervals, calibration and comparison of an evaluation as text, JSON and CSV.
#pragma once

#include <string>
#include <vector>

#include "core/text/json.h"
#include "engine/task/evaluate.h"
#include "statistics/certainty.h"

namespace stoker::train {

/// Lines for people: intervals, calibration, thresholds. `label_names`: of the labels, one per row of
/// certainty.thresholds.
std::vector<std::string> certainty_lines(const statistics::Certainty& certainty, const engine::EvalReport& report,
                                         const std::vector<std::string>& label_names);
/// Lines that name the better network. `first`, `second`: what the networks are called.
std::vector<std::string> comparison_lines(const statistics::Comparison& comparison, const engine::EvalReport& report,
                                          const std::string& first, const std::string& second);

core::Json certainty_json(const statistics::Certainty& certainty, const std::vector<std::string>& label_names);
core::Json comparison_json(const statistics::Comparison& comparison, const std::string& second);
/// The data of the report's charts: precision, recall and F1 of labels over all thresholds, or some samples with each
/// target as it is and as it is predicted. `names`: of the outputs, or of the positive class. Small, whatever the
/// evaluation.
core::Json curves_json(const statistics::EvaluatedSamples& samples, const std::vector<std::string>& names);
/// A row per bin of the reliability curve.
std::string reliability_csv(const statistics::Calibration& calibration);

}  // namespace stoker::train
