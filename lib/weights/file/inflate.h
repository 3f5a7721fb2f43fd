// SPDX-License-Identifier: Apache-2.0
// The bytes of a storage as they were before they were written.
#pragma once

#include <string>

#include "weights/file/weight_file.h"

namespace stoker::weights {

/// Reads storage.bytes bytes. `name` is for messages. Throws Error{data} where the content does not inflate to that
/// many bytes or does not fit its checksum.
void read_stored(const data::ByteReader& file, const Storage& storage, const std::string& name, void* bytes);

}  // namespace stoker::weights
