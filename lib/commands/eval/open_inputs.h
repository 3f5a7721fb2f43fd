// SPDX-License-Identifier: Apache-2.0
// Samples without labels that a command line names, for commands that run a trained network on them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "data/source.h"

namespace stoker::train {

/// `inputs`: files, folders, patterns, lists, a shard or an HDF5 file, whose labels are not used. `trained`: names of
/// the network's classes or targets. Throws Error{usage}, {no_input}, {data}.
std::shared_ptr<const data::Source> open_inputs(const std::vector<std::string>& inputs, config::DataOptions options,
                                                const std::vector<std::string>& trained);

}  // namespace stoker::train
