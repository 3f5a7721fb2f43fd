// SPDX-License-Identifier: Apache-2.0
#include "engine/group/lost_rank.h"

#include <algorithm>
#include <cstdlib>

#include "core/format.h"

namespace stoker::engine {

std::string SignOfLife::text() const { return core::format("{} {} {}", number, static_cast<int64_t>(doing), process); }

SignOfLife SignOfLife::read(const std::string& text) {
  SignOfLife sign;
  char* at = nullptr;
  sign.number = std::strtoll(text.c_str(), &at, 10);
  if (!sign.is_here()) return {};
  sign.doing = static_cast<Doing>(std::strtoll(at, &at, 10));
  sign.process = std::strtoll(at, &at, 10);
  return sign;
}

LostRankFinder::LostRankFinder(int rank, int size, double timeout_seconds)
    : rank_(rank), timeout_(timeout_seconds), last_(static_cast<size_t>(size)), last_at_(static_cast<size_t>(size)) {}

double LostRankFinder::seconds_between_signs() const { return std::min(1.0, timeout_ / 16); }

void LostRankFinder::begin_wait(double now) {
  begin_ = without_long_ = now;
  has_looked_ = false;
}

std::string LostRankFinder::look(double now, const std::vector<SignOfLife>& signs) {
  const auto name = [](size_t rank, double seconds, const char* what) {
    return core::format("rank {} {} for {:.3g} s", rank, what, seconds);
  };
  std::string silent, late;
  for (size_t rank = 0; rank < signs.size(); ++rank) {
    if (static_cast<int>(rank) == rank_) continue;
    if (!has_looked_ || signs[rank].number != last_[rank].number) last_at_[rank] = now;
    last_[rank] = signs[rank];
    if (now - last_at_[rank] >= timeout_ / 2) {
      if (silent.empty()) silent = name(rank, now - last_at_[rank], "has given no sign of life");
    } else if (signs[rank].doing == SignOfLife::Doing::long_work) {
      without_long_ = now;
    } else if (signs[rank].doing == SignOfLife::Doing::computes && late.empty()) {
      late = name(rank, now - without_long_, "is alive, but the others have waited for it");
    }
  }
  has_looked_ = true;
  if (!silent.empty()) return silent;
  if (now - without_long_ < timeout_) return "";
  if (!late.empty()) return late;
  if (now - without_long_ < 2 * timeout_) return "";
  return core::format("all ranks have waited for each other for {:.3g} s: messages between them are lost",
                      now - without_long_);
}

}  // namespace stoker::engine
