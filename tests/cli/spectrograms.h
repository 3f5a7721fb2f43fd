// SPDX-License-Identifier: Apache-2.0
// HDF5 files to train on in a blink, such as spectrograms.
#pragma once

#include "tiny_data.h"

namespace stoker::cli {

/// data/{train,val}.h5 with 64 and 20 spectrograms x, float32 of 16 x 24 in deflated chunks of 8, and their classes y:
/// which half is louder.
void write_spectrograms(const Workplace& work);

}  // namespace stoker::cli
