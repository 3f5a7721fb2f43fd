// SPDX-License-Identifier: Apache-2.0
#include "engine/run/operator_table.h"

#include <algorithm>
#include <unordered_map>

namespace stoker::engine {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);
constexpr size_t kOfKey = 0, kOfName = 1;  // which outermost calls a total is of

/// For each call the one that called it.
std::vector<size_t> callers_of(const std::vector<OperatorCall>& calls) {
  std::vector<size_t> callers(calls.size(), kNone);
  std::unordered_map<uint64_t, std::vector<size_t>> open;  // by thread
  for (size_t i = 0; i < calls.size(); ++i) {
    std::vector<size_t>& stack = open[calls[i].thread];
    while (!stack.empty() && calls[stack.back()].end <= calls[i].begin) stack.pop_back();
    if (!stack.empty()) callers[i] = stack.back();
    stack.push_back(i);
  }
  return callers;
}

/// For each call whether none around it has its name, and its shapes.
struct Outermost {
  bool of_key = true, of_name = true;
};
Outermost is_outermost(const std::vector<OperatorCall>& calls, const std::vector<size_t>& callers, size_t call) {
  Outermost found;
  for (size_t at = callers[call]; at != kNone; at = callers[at]) {
    if (calls[at].name != calls[call].name) continue;
    found.of_name = false;
    if (calls[at].shapes == calls[call].shapes) found.of_key = false;
  }
  return found;
}

}  // namespace

void OperatorTable::add_update(double seconds, uint64_t thread, const std::vector<OperatorCall>& calls,
                               const std::vector<DeviceCall>& on_device) {
  const std::vector<size_t> callers = callers_of(calls);
  std::vector<Outermost> outermost(calls.size());
  std::unordered_map<uint64_t, size_t> by_id;
  double outside = seconds;
  for (size_t i = 0; i < calls.size(); ++i) {
    const OperatorCall& call = calls[i];
    outermost[i] = is_outermost(calls, callers, i);
    by_id[call.id] = i;
    Sums& sums = sums_of(call);
    ++sums.calls;
    sums.own += call.seconds;
    if (outermost[i].of_key) sums.total[kOfKey] += call.seconds;
    if (outermost[i].of_name) sums.total[kOfName] += call.seconds;
    if (callers[i] != kNone) {
      sums_of(calls[callers[i]]).own -= call.seconds;
    } else if (call.thread == thread) {
      outside -= call.seconds;
    }
  }
  /// Device time of call i, and of those around it.
  const auto add_device = [&](size_t i, double device_seconds) {
    sums_of(calls[i]).device_own += device_seconds;
    for (size_t at = i; at != kNone; at = callers[at]) {
      Sums& sums = sums_of(calls[at]);
      if (outermost[at].of_key) sums.device_total[kOfKey] += device_seconds;
      if (outermost[at].of_name) sums.device_total[kOfName] += device_seconds;
    }
    has_device_ = true;
  };
  for (const DeviceCall& work : on_device) {
    const auto launcher = by_id.find(work.launched_by);
    if (launcher != by_id.end()) {
      add_device(launcher->second, work.seconds);
      continue;
    }
    Sums& sums = sums_[{work.name, ""}];  // of a recorded graph, for example
    ++sums.calls;
    sums.device_own += work.seconds;
    for (double& total : sums.device_total) total += work.seconds;
    has_device_ = true;
  }
  std::vector<double> device_own(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].device_seconds < 0) continue;
    device_own[i] += calls[i].device_seconds;
    if (callers[i] != kNone) device_own[callers[i]] -= calls[i].device_seconds;
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].device_seconds >= 0) add_device(i, std::max(0.0, device_own[i]));
  }
  outside_ += std::max(0.0, outside);
  seconds_ += seconds;
  ++updates_;
}

double OperatorTable::seconds() const { return updates_ > 0 ? seconds_ / static_cast<double>(updates_) : 0; }

std::vector<OperatorRow> OperatorTable::rows(By by) const {
  std::vector<OperatorRow> rows;
  const double count = std::max<double>(1, static_cast<double>(updates_));
  const size_t which = by == By::name ? kOfName : kOfKey;
  for (const auto& [key, sums] : sums_) {  // names lie together
    if (rows.empty() || by == By::name_and_shapes || rows.back().name != key.first) {
      rows.push_back({key.first, by == By::name ? "" : key.second});
    }
    OperatorRow& row = rows.back();
    row.calls += static_cast<double>(sums.calls) / count;
    row.own_seconds += std::max(0.0, sums.own) / count;
    row.total_seconds += sums.total[which] / count;
    row.device_own_seconds += sums.device_own / count;
    row.device_total_seconds += sums.device_total[which] / count;
  }
  if (by == By::name && updates_ > 0) {
    rows.push_back({kOutside, "", 1, outside_ / count, outside_ / count});
  }
  std::stable_sort(rows.begin(), rows.end(), [this](const OperatorRow& a, const OperatorRow& b) {
    if (has_device_ && a.device_own_seconds != b.device_own_seconds) return a.device_own_seconds > b.device_own_seconds;
    return a.own_seconds > b.own_seconds;
  });
  return rows;
}

}  // namespace stoker::engine
