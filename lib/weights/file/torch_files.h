// SPDX-License-Identifier: Apache-2.0
// The two layouts in which torch.save() writes: a zip archive (PyTorch 1.6 and later), and before that pickles with the
// storages behind them.
#pragma once

#include <memory>

#include "weights/file/weight_file.h"

namespace stoker::weights {

bool is_torch_zip(const data::ByteReader& file);
bool is_torch_legacy(const data::ByteReader& file);

/// Throw Error{data} with the reason.
WeightFile open_torch_zip(std::shared_ptr<const data::ByteReader> file);
WeightFile open_torch_legacy(std::shared_ptr<const data::ByteReader> file);

}  // namespace stoker::weights
