// SPDX-License-Identifier: Apache-2.0
// One run on different numbers of devices, side by side: what each process has, what they have together, and how long
// an update takes. Plain values, words and JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "plan/memory_plan.h"

namespace stoker::plan {

/// Seconds.
struct UpdateTime {
  double compute = 0;              ///< with the data, and with what ranks wait for the slowest
  std::optional<double> exchange;  ///< that is not hidden behind it; absent: never seen, and not part of update()
  double validation = 0;
  bool is_tried = false;  ///< as many processes computed at the same time for some seconds; else predicted from others
  double update() const { return compute + exchange.value_or(0); }
};

/// A run on a number of devices of one machine; a process for each device.
struct DevicePlan {
  int64_t devices = 1;
  int64_t replicas = 1, accumulation_steps = 1, batch_size = 1;
  int64_t updates_per_epoch = 0, images_per_epoch = 0;
  int64_t num_workers = 0, prefetch_factor = 1;  ///< loader settings of each process
  double learning_rate = 0;                      ///< at its peak
  PlanInputs inputs;                             ///< inputs of the memory plan of each process
  MemoryPlan memory;                             ///< memory plan of each process
  MemoryBudget budget;                           ///< budget of each process, when as many share the machine
  std::string short_of;                          ///< "": fits
  int64_t exchange_bytes = 0;                    ///< size of the sum over ranks in each update
  std::optional<UpdateTime> time;                ///< absent: not known

  int64_t images_per_update() const { return replicas * accumulation_steps * batch_size; }
  double epoch_seconds() const { return time ? static_cast<double>(updates_per_epoch) * time->update() : 0; }
};

/// The times of some seconds of training, by one process per device at once.
struct TriedUpdate {
  int64_t devices = 1;
  int64_t batches = 1;          ///< batches of each process in an update
  double compute_seconds = 0;   ///< computing time of an update
  double exchange_seconds = 0;  ///< exchange time of an update, not hidden behind computing
  double eval_seconds = 0;      ///< duration of a validation
};
/// The time of an update of `plan`. From the try with as many devices, if there is one; else from the nearest: as long
/// for each batch, and longer where processes share `cpus` (0: each has a device of its own). The exchange then follows
/// from the nearest try that exchanged, by the bytes that a rank sends.
UpdateTime predict_update(const DevicePlan& plan, const std::vector<TriedUpdate>& tries, int64_t cpus);

/// Two tables, for people: settings and totals; times. The latter is left out where no time is known.
std::vector<std::string> device_table(const std::vector<DevicePlan>& plans);
/// One object per plan; docs/how-to/several-processes.md explains the names.
core::Json device_plans_json(const std::vector<DevicePlan>& plans);

// How long an epoch takes, as it was measured: plain values.

struct EpochEstimate {
  int64_t train_images = 0;
  int64_t batch_size = 0;  ///< images per device
  int64_t updates_measured = 0;
  double images_per_second = 0;
  double data_wait_share = 0;  ///< 0 to 1
  double epoch_seconds = 0;    ///< training alone
  double eval_seconds = 0;     ///< one validation
  int64_t epochs = 0;
  double update_seconds = 0;
  double exchange_seconds = 0;  ///< exchange time of an update, on the rank that waits least
};
STOKER_JSON_FIELDS(EpochEstimate, train_images, batch_size, updates_measured, images_per_second, data_wait_share,
                   epoch_seconds, eval_seconds, epochs, update_seconds, exchange_seconds)

}  // namespace stoker::plan
