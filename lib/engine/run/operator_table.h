// SPDX-License-Identifier: Apache-2.0
// Where the time of updates goes, operator by operator: adds up what a profiler recorded. Without LibTorch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stoker::engine {

/// One call of an operator on a thread of the host. What begins and ends within another call of the same thread was
/// called by it.
struct OperatorCall {
  std::string name;            ///< "aten::convolution"
  std::string shapes;          ///< shapes of its inputs: "32x64 64x64"; empty: none
  uint64_t id = 0;             ///< by which DeviceCall refers to it
  uint64_t thread = 0;         ///< which one, by any number
  int64_t begin = 0, end = 0;  ///< nanoseconds
  double seconds = 0;          ///< that it took; may be known better than by begin and end
  double device_seconds = -1;  ///< time on the device, with what it called; -1: not measured by call
};

/// One kernel or copy on a device.
struct DeviceCall {
  std::string name;
  uint64_t launched_by = 0;  ///< id of the operator; one that does not exist: none
  double seconds = 0;
};

/// Per update.
struct OperatorRow {
  std::string name, shapes;
  double calls = 0;
  double total_seconds = 0;  ///< with what it called; a call from within itself is in the outer one
  double own_seconds = 0;    ///< without
  double device_total_seconds = 0, device_own_seconds = 0;
};

class OperatorTable {
 public:
  /// The row of what the training thread did outside of all operators.
  static constexpr char kOutside[] = "(no operator)";

  /// `seconds` of the update by the clock of `thread`, which did it. `calls`: of all threads, ordered by their begin.
  void add_update(double seconds, uint64_t thread, const std::vector<OperatorCall>& calls,
                  const std::vector<DeviceCall>& on_device);

  int64_t updates() const { return updates_; }
  /// Per update; 0 before the first.
  double seconds() const;
  bool has_device() const { return has_device_; }

  enum class By { name, name_and_shapes };
  /// The largest own time first: of the device where it was measured, else of the host. By name_and_shapes without
  /// kOutside.
  std::vector<OperatorRow> rows(By by) const;

 private:
  using Key = std::pair<std::string, std::string>;  ///< name, shapes
  struct Sums {
    int64_t calls = 0;
    double own = 0, device_own = 0;
    double total[2] = {0, 0};         ///< seconds in the outermost calls of the key; in those of the name
    double device_total[2] = {0, 0};  ///< likewise
  };
  Sums& sums_of(const OperatorCall& call) { return sums_[{call.name, call.shapes}]; }

  std::map<Key, Sums> sums_;
  double seconds_ = 0, outside_ = 0;
  int64_t updates_ = 0;
  bool has_device_ = false;
};

}  // namespace stoker::engine
