// SPDX-License-Identifier: Apache-2.0
// Files that are given as weights and hold none that are read. Named by their first bytes, never by their names: a web
// page is saved as weights.pth as well.
#pragma once

#include "data/storage/byte_reader.h"

namespace stoker::weights {

/// Returns where the first bytes are of no kind that is named here: safetensors, whole or damaged. Throws Error{data}
/// with the kind and the next step for a pointer of Git LFS, a web page, ONNX, HDF5, an archive, JSON, text, and a file
/// that is empty or begins with zeros.
void refuse_other_kind(const data::ByteReader& file);

}  // namespace stoker::weights
