// SPDX-License-Identifier: Apache-2.0
// Looks at the facts of a run from every side, each with its "what if", and keeps the side that gains most.
// The verdicts: diagnosis.h; the arithmetic: step_model.h. Knows neither who asks nor who shows it.
#pragma once

#include <string>
#include <vector>

#include "observe/diagnosis/diagnosis.h"
#include "observe/diagnosis/step_model.h"

namespace stoker::observe {

class Examination {
 public:
  /// `facts` outlives it.
  explicit Examination(const DiagnosisFacts& facts);
  Diagnosis run();

 private:
  // What keeps the network from computing (examination.cpp).
  void look_at_threads();
  void look_at_contention();
  void look_at_report_and_saves();
  void look_at_copies();
  void look_at_batch();
  void look_at_device();
  void say_nothing_to_gain();
  // What keeps the data from coming (examination_input.cpp).
  void look_at_input();
  bool look_at_prefetch();
  bool look_at_storage();
  double look_at_workers();
  void look_at_stages();

  /// A side: it becomes the verdict when it gains more than those before it.
  void consider(Verdict verdict, const StepModel& changed, const std::string& knob, const std::string& value,
                const std::string& advice, std::vector<std::string> evidence);
  bool fits(double bytes) const;
  double per_update(double seconds_of_window) const;
  double stage_share(double seconds) const;
  std::string waits_text() const;
  static std::string percent_text(double share);

  const DiagnosisFacts& facts_;
  const engine::TimeSplit& times_;
  const StepModel now_;
  const double wait_share_;
  const double computing_;  ///< seconds per update
  Diagnosis best_;
};

}  // namespace stoker::observe
