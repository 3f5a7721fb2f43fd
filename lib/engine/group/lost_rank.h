// SPDX-License-Identifier: Apache-2.0
// Which rank the others wait for in vain. Each rank says some times per second what it does; one that waits for long
// looks at what the others say. Reads no clock and sends nothing: numbers in, a verdict out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::engine {

/// What a rank says of itself.
struct SignOfLife {
  enum class Doing : int64_t {
    waits,      ///< for others
    computes,   ///< something that takes all ranks about as long: an update
    long_work,  ///< something that may take any time: start-up, a checkpoint
    ended,      ///< in good order, or after it has said why not
  };
  int64_t number = 0;  ///< grows with each sign; 0: the rank has not come yet
  Doing doing = Doing::long_work;
  int64_t process = 0;

  std::string text() const;
  static SignOfLife read(const std::string& text);  ///< default for what is none
  bool is_here() const { return number > 0; }
  bool has_ended() const { return doing == Doing::ended; }
};

/// One wait of one rank after the other. Times are seconds of a clock that stands still while this process does.
class LostRankFinder {
 public:
  LostRankFinder(int rank, int size, double timeout_seconds);

  /// A new wait, for whichever rank.
  void begin_wait(double now);
  /// The wait lasts so long that it wants to look at the others.
  bool wants_signs(double now) const { return now - begin_ >= timeout_ / 4; }
  /// `signs` [ranks]: the newest of each. Returns why no more can be waited; empty: it is still worth it.
  ///  - A rank without a new sign for half of the timeout is lost, whatever it was doing.
  ///  - A rank that gives signs is lost when all others have waited for it for the timeout and nobody does long work.
  ///  - When all wait, for as long twice, messages are lost between them.
  std::string look(double now, const std::vector<SignOfLife>& signs);

  double seconds_between_signs() const;

 private:
  const int rank_;
  const double timeout_;
  double begin_ = 0;         ///< of the wait
  double without_long_ = 0;  ///< since when nobody does long work
  bool has_looked_ = false;
  std::vector<SignOfLife> last_;
  std::vector<double> last_at_;
};

}  // namespace stoker::engine
