// SPDX-License-Identifier: Apache-2.0
// Which layout a data folder has.
#pragma once

#include <memory>
#include <string>

#include "config/options.h"
#include "data/layout.h"

namespace stoker::data {

/// The layout that `options.dataset` names, else the first that the folder shows signs of: IDX, CSV, shards, an HDF5
/// file of the training split, class folders (of images or of videos), one HDF5 file. Throws core::Error{no_input} with
/// the expected tree where there is none.
std::unique_ptr<Layout> detect_layout(const config::DataOptions& options);

/// What may lie below --data-dir, in lines: the hint of errors about missing data.
std::string expected_data_tree(const config::DataOptions& options);

}  // namespace stoker::data
