// SPDX-License-Identifier: Apache-2.0
// The findings of `train check`, and their consequences: advice, warnings, text and JSON. Nothing here measures
// or prints.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/system/machine.h"
#include "core/text/json.h"
#include "data/probe/file_check.h"
#include "data/probe/storage_probe.h"
#include "engine/device/device.h"
#include "engine/probe/compute_probe.h"
#include "observe/resources/hardware.h"
#include "plan/device_plan.h"

namespace stoker::train {

/// A flag with a value to try, and why.
struct Advice {
  std::string flag;  ///< "--threads 1"
  std::string reason;
};

struct CheckFacts {
  std::string version, libtorch;
  bool cuda_build = false;
  core::MachineFacts machine;  ///< with the accelerators that LibTorch sees
  std::string device;          ///< the one measured: "cpu", "cuda:0"
  observe::DriverFacts driver;
  observe::HostFacts host;
  std::vector<observe::PlacedCard> cards;  ///< in the driver's order
  engine::BlasFacts blas;
  std::string network, backend;  ///< whose operations were proven, and what came of it
  std::vector<engine::ComputeSpeed> compute;
  engine::ThreadSpeed threads;
  std::string data_dir;
  std::optional<data::StorageSpeed> storage;
  std::string storage_error;                                   ///< why there is none
  std::vector<std::pair<std::string, data::FileCheck>> files;  ///< check of each split, and the name of its samples
  std::string files_error;                                     ///< why there are none; empty: none were requested
  std::optional<plan::EpochEstimate> estimate;
  int64_t num_workers = 0;           ///< what auto takes
  std::vector<Advice> chosen;        ///< what a run with these options would choose; empty: none was set up
  std::vector<std::string> given;    ///< "--threads 2": what was requested, which is not advice
  std::vector<std::string> missing;  ///< what was requested and is not there
};

/// Flags to try: `chosen`, and without it those that suit networks in general on this machine.
std::vector<Advice> advice_from(const CheckFacts& facts);
/// The problems of the machine, each with its remedy.
std::vector<std::string> warnings_from(const CheckFacts& facts);

std::string check_text(const CheckFacts& facts);
core::Json check_json(const CheckFacts& facts);

}  // namespace stoker::train
