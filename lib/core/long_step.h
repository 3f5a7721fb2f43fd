// SPDX-License-Identifier: Apache-2.0
// A step that may take minutes reports what it is at: on a terminal in a line that is replaced, else in a line of the
// log now and then.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace stoker::core {

/// Seconds.
struct LongStepPace {
  double first = 3;    ///< until then nothing is shown: most steps are over
  double live = 1;     ///< between changes of the line of a terminal
  double lines = 30;   ///< between lines of a log
  double screen = 10;  ///< between lines where a terminal shows the log
};

class LongStep {
 public:
  /// `name` begins as a line of the log does: "backend   comparing operations".
  /// `explanation` is logged before the first of its lines, once per process; empty: nothing.
  explicit LongStep(std::string name, const LongStepPace& pace = {}, std::string explanation = "");
  ~LongStep();
  LongStep& operator=(LongStep&&) = delete;  // not copied, not moved

  /// How much is done: "12 of 58 operations".
  void set_done(std::string done);

 private:
  void follow();

  const std::string name_, explanation_;
  const LongStepPace pace_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string done_;
  bool has_ended_ = false;
  bool is_live_ = false;  ///< a live line is shown; used by the thread alone while it runs
  std::thread thread_;    ///< none where no thread can be started
};

}  // namespace stoker::core
