// SPDX-License-Identifier: Apache-2.0
// How resolve() writes down what it chooses, and what machine and data decide.
#pragma once

#include <string>

#include "config/config.h"

namespace stoker::config {

constexpr int64_t kSmallImage = 64;  ///< pixels: from here on images are treated as photographs

/// Stores a value that was chosen. Throws Error{config} when it is out of the option's range.
void give_value(Row& row, const std::string& text, const std::string& reason);

/// Gives an automatic option its value; one that was given a value is left alone. `field` is a member of the
/// configuration's options.
template <typename Field>
void choose(Configuration& configuration, const Field& field, const std::string& text, const std::string& reason) {
  Row& row = configuration.table.row_of(field);
  if (row.is_auto()) give_value(row, text, reason);
}

/// Device, threads, workers and precision. Throws Error{unavailable} for a device that is not there.
void choose_for_machine(Configuration& configuration, const core::MachineFacts& machine);
/// Shape, scales, weights, crops and normalisation. Throws Error{config} for what only the training split says where
/// that is not read.
void choose_for_data(Configuration& configuration, const DataFacts& data);

}  // namespace stoker::config
