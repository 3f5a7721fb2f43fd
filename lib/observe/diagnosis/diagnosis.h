// SPDX-License-Identifier: Apache-2.0
// From what was measured to one verdict: what limits the run, the one option to change, the value to try and how
// much that should gain. A pure function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/text/json.h"
#include "engine/run/events.h"
#include "observe/resources/resources.h"

namespace stoker::observe {

using engine::Diagnosis;
using engine::Verdict;

/// "input-bound: too few workers": as files and people have it.
const char* verdict_text(Verdict verdict);

struct AugmentationInUse {
  std::string flag;  ///< that turns it off: "--gaussian-blur", or "--no-x"
  std::string off;   ///< with this value: "0"; "" where the flag takes none
};

/// What is known of a run. Absent figures lead to verdicts that do without them.
struct DiagnosisFacts {
  engine::StepTimings times;
  std::vector<engine::RankTimes> ranks;  ///< of about the same window; empty where this rank is alone
  ResourceReading resources;
  int64_t cpus = 1;    ///< that this process may use
  bool on_cpu = true;  ///< the network computes on the CPU

  engine::ComputeCost compute = {};
  int64_t batch_size = 1, accumulation_steps = 1, replicas = 1;
  int64_t threads = 1, prefetch_factor = 4;
  bool pin_memory = true;  ///< or copies cannot be made faster by it
  bool amp = false, channels_last = true;
  bool reference_blas = false;                     ///< matrices are multiplied on the CPU by the slow library
  bool native_bfloat16 = false;                    ///< of the device that computes
  bool holds_pixels = false, holds_files = false;  ///< the cache, for at least most images
  std::vector<AugmentationInUse> augmentations;    ///< the costliest first

  int64_t images_per_epoch = 0;
  double stored_bytes = 0, pixel_bytes = 0;  ///< of all training images, as files and decoded; 0: unknown
  double free_ram_bytes = 0;                 ///< 0: unknown
  bool first_epoch = false;                  ///< of this process
  int64_t epochs_left = 0;                   ///< after this one

  std::optional<double> network_bfloat16_speed;  ///< of training the network, over float32; absent: not measured

  std::optional<double> other_layout_speed;  ///< of training in the other layout, over this one; absent: not measured

  // Ceilings, measured when they are needed.
  std::optional<double> one_thread_seconds;  ///< of forward and backward of a batch on one thread, now
  std::optional<double> cpus_seconds;        ///< the same on as many threads as CPUs
  std::optional<double> bfloat16_speed;      ///< of convolutions over float32, where the network was not measured
  std::optional<double> overhead_seconds;    ///< of an update, for whatever batch: launching operations

  /// Forward and backward of one batch, by the clock of StepTimings::judged().
  double pass_seconds() const;
};

Diagnosis diagnose(const DiagnosisFacts& facts);

/// "input-bound: too few workers (waits for data 47%, ...): --num-workers 2 should give 54% more images/s".
std::string diagnosis_text(const Diagnosis& diagnosis);
core::Json diagnosis_json(const Diagnosis& diagnosis);

}  // namespace stoker::observe
