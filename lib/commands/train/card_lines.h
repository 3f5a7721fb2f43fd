// SPDX-License-Identifier: Apache-2.0
// The banner of a run on a card: the card and the machine around it, and what each of the things that make a card
// fast is set to.
#pragma once

#include <string>
#include <vector>

#include "config/resolution.h"
#include "observe/resources/hardware.h"

namespace stoker::train {

/// A card on which all of scripts/gpu_truth.sh has passed. docs/how-to/gpu.md lists them; a test compares.
struct TriedCard {
  const char *compute_capability, *name, *date;
};
/// Graphs and resident pixels become defaults of an architecture when it stands here. None has run yet.
const std::vector<TriedCard>& tried_cards();

/// Pinned memory, prefetch, copies, TF32, layout, optimizer, GradScaler: a line each, of at most 80 columns.
/// `is_fused`: as Optimizer::is_fused().
std::vector<std::string> card_option_lines(const config::ResolvedOptions& options, bool is_fused);

/// A line where no card of this architecture is in tried_cards(); none where the architecture is not known.
std::vector<std::string> untried_lines(const std::string& compute_capability);

/// The driver, with the libraries that LibTorch has.
observe::DriverFacts driver_and_libraries(const observe::Nvml& nvml);

/// Driver, libraries, processors, card. `names`: as Nvml::card() takes them. Appends what costs speed to `warnings`.
std::vector<std::string> hardware_screen(const std::vector<std::string>& names, std::vector<std::string>& warnings);

}  // namespace stoker::train
